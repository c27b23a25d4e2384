//! Mapped libraries and their build ids, from the notes that the linker put into them.

use std::ffi::CStr;

use ampl_trace::metadata::{Library, cut};

use crate::environment::escaped;

/// Type of a note that holds a build id (gABI, note section; binutils, NT_GNU_BUILD_ID).
const NT_GNU_BUILD_ID: u32 = 3;
/// Longest build id, bytes: SHA-256's length twice.
const LONGEST_ID: usize = 64;

/// Libraries that are mapped, in the order of loading, without the program itself.
pub fn mapped() -> Vec<Library> {
    let mut found = Vec::new();
    each(&mut |path, build_id| {
        // The kernel's own has no file.
        if path.contains('/') {
            found.push(Library { path: cut(path), build_id });
        }
    });
    found
}

/// Build id of the program.
pub fn own_build_id() -> Option<String> {
    let (mut first, mut id) = (true, None);
    each(&mut |_, build_id| {
        if std::mem::take(&mut first) {
            id = build_id;
        }
    });
    id
}

type Visit<'a> = &'a mut dyn FnMut(String, Option<String>);

/// Calls `visit` with path and build id of every loaded module; the program comes first, with an empty path.
fn each(mut visit: Visit) {
    unsafe extern "C" fn step(info: *mut libc::dl_phdr_info, _: usize, visit: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record with that many headers, and `visit` is the closure below.
        let (info, headers, name, visit) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info, headers, CStr::from_ptr(info.dlpi_name), &mut *visit.cast::<Visit>())
        };
        let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
        let id = notes.filter_map(|header| {
            let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
            // SAFETY: a note segment is mapped with its module, readable, and no module is unloaded meanwhile.
            build_id(unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) }, header.p_align)
        });
        let id = id.map(hexadecimal).next();
        visit(escaped(name.to_bytes()), id);
        0
    }
    // SAFETY: the callback gets a pointer to the closure and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(step), (&raw mut visit).cast()) };
}

/// The build id among notes that lie at multiples of `align`.
fn build_id(mut notes: &[u8], align: u64) -> Option<&[u8]> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (name, description) = (word(0) as usize, word(4) as usize);
        let begin = (12 + name).next_multiple_of(align) - 12;
        let end = begin.checked_add(description)?;
        let found = rest.get(begin..end)?;
        if word(8) == NT_GNU_BUILD_ID
            && rest.get(..name)? == b"GNU\0"
            && (1..=LONGEST_ID).contains(&found.len())
        {
            return Some(found);
        }
        notes = rest.get((12 + end).next_multiple_of(align) - 12..)?;
    }
}

/// `bytes` in hexadecimal digits.
pub fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], description: &[u8], align: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            bytes.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(align), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        for align in [4, 8] {
            let mut notes = note(1, b"GNU\0", &[9; 16], align);
            assert_eq!(build_id(&notes, align as u64), None);
            notes.extend(note(NT_GNU_BUILD_ID, b"Go\0\0", &[1; 8], align));
            notes.extend(note(NT_GNU_BUILD_ID, b"GNU\0", &[7, 8, 9], align));
            assert_eq!(build_id(&notes, align as u64), Some(&[7, 8, 9][..]));
            for end in 0..notes.len() {
                // Cut or damaged notes end the search.
                let _ = build_id(&notes[..end], align as u64);
            }
        }
        assert_eq!(build_id(&[0xff; 64], 4), None);
        assert_eq!(hexadecimal([0, 10, 255]), "000aff");
    }

    #[test]
    fn the_c_library_is_mapped() {
        let found = mapped();
        assert!(found.iter().any(|library| library.path.contains("libc.so")), "{found:?}");
    }
}
