//! Functions of this very process, for tests of call sites.

use std::fs;

use object::{Object, ObjectSymbol};

/// The file whose name has `part` among those that this process has loaded, and its address.
pub fn loaded(part: &str) -> (String, u64) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains(part)).unwrap();
    let base = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    (line[line.find('/').unwrap()..].to_owned(), base)
}

/// The module, offset and length of `atoi`, which has a symbol but no line information.
pub fn atoi() -> (String, u64, u64) {
    let (libc, _) = loaded("/libc.so.6");
    let data = fs::read(&libc).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let atoi = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("atoi")).unwrap();
    (libc, atoi.address(), atoi.size())
}
