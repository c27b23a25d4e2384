//! Name-value pairs that the program registered with Adiak (`adiak_tool.h`).

use std::ffi::{CStr, c_char, c_int, c_void};

use ampl_trace::metadata::{NameValue, cut};
use serde_json::{Value, json};

/// Version of the interface that is asked for.
const VERSION: c_int = 1;
/// All categories.
const CATEGORY_ALL: c_int = 1;
/// Commands to tools, such as to write their data now.
const CATEGORY_CONTROL: c_int = 4;
/// Pairs that are kept.
const MOST_PAIRS: usize = 256;
/// Elements of a list that are kept.
const MOST_ELEMENTS: usize = 64;
/// Lists within lists that are read.
const DEEPEST: u32 = 4;

/// `adiak_type_t`
mod kind {
    use std::ffi::c_int;

    pub const LONG: c_int = 1;
    pub const ULONG: c_int = 2;
    pub const INT: c_int = 3;
    pub const UINT: c_int = 4;
    pub const DOUBLE: c_int = 5;
    pub const DATE: c_int = 6;
    pub const TIMEVAL: c_int = 7;
    pub const VERSION: c_int = 8;
    pub const PATH: c_int = 11;
    pub const RANGE: c_int = 12;
    pub const TUPLE: c_int = 15;
    pub const LONGLONG: c_int = 16;
    pub const ULONGLONG: c_int = 17;
    pub const JSON_STRING: c_int = 18;
}

/// The fields of `adiak_datatype_t` that all versions have.
#[repr(C)]
struct DataType {
    kind: c_int,
    numerical: c_int,
    elements: c_int,
    subtypes: c_int,
    subtype: *const *const DataType,
}

/// `adiak_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
union RawValue {
    long: i64,
    int: c_int,
    double: f64,
    pointer: *const c_void,
    values: *const RawValue,
}

type Callback =
    unsafe extern "C" fn(*const c_char, c_int, *const c_char, *const RawValue, *const DataType, *mut c_void);
type ListPairs = unsafe extern "C" fn(c_int, c_int, Callback, *mut c_void);

/// Pairs so far, and the number of those left out.
#[derive(Default)]
struct Found {
    pairs: Vec<NameValue>,
    left_out: u64,
}

/// The pairs that the program has registered so far, and the number of those left out; `None` where Adiak is not
/// loaded.
pub fn pairs() -> Option<(Vec<NameValue>, u64)> {
    // SAFETY: a name that ends with 0; the loader's own search.
    let list = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"adiak_list_namevals".as_ptr()) };
    if list.is_null() {
        return None;
    }
    // SAFETY: Adiak's function of that name has this type.
    let list = unsafe { std::mem::transmute::<*mut c_void, ListPairs>(list) };
    let mut found = Found::default();
    // SAFETY: the callback gets a pointer to `found` and keeps nothing.
    unsafe { list(VERSION, CATEGORY_ALL, take, (&raw mut found).cast()) };
    Some((found.pairs, found.left_out))
}

unsafe extern "C" fn take(
    name: *const c_char,
    category: c_int,
    subcategory: *const c_char,
    value: *const RawValue,
    kind: *const DataType,
    found: *mut c_void,
) {
    // SAFETY: `found` is that of `pairs`, and Adiak passes texts that end with 0 and a value of its type, or null.
    unsafe {
        let found = &mut *found.cast::<Found>();
        if category == CATEGORY_CONTROL || name.is_null() || value.is_null() || kind.is_null() {
            return;
        }
        if found.pairs.len() == MOST_PAIRS {
            found.left_out += 1;
            return;
        }
        found.pairs.push(NameValue {
            name: text(name),
            subcategory: (!subcategory.is_null()).then(|| text(subcategory)),
            value: read(&*value, &*kind, DEEPEST),
        });
    }
}

/// # Safety
/// `text` ends with 0.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller's promise.
    cut(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// `value` as JSON; null for types that are not known.
///
/// # Safety
/// `value` must be of the type `of`.
unsafe fn read(value: &RawValue, of: &DataType, depth: u32) -> Value {
    // SAFETY: the caller's promise: the type says which member is set.
    unsafe {
        match of.kind {
            kind::LONG | kind::LONGLONG | kind::DATE => json!(value.long),
            kind::ULONG | kind::ULONGLONG => json!(value.long as u64),
            kind::INT => json!(value.int),
            kind::UINT => json!(value.int as u32),
            // JSON has no infinite numbers: they become null.
            kind::DOUBLE => json!(value.double),
            kind::TIMEVAL if !value.pointer.is_null() => {
                let time = &*value.pointer.cast::<libc::timeval>();
                json!(time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
            }
            kind::VERSION..=kind::PATH | kind::JSON_STRING if !value.pointer.is_null() => {
                json!(text(value.pointer.cast()))
            }
            kind::RANGE..=kind::TUPLE if depth > 0 => elements(value, of, depth - 1),
            _ => Value::Null,
        }
    }
}

/// Elements of a list, a set, a range or a tuple; null where Adiak has none itself, as for values that the program
/// keeps.
///
/// # Safety
/// `value` must be of the type `of`, a container.
unsafe fn elements(value: &RawValue, of: &DataType, depth: u32) -> Value {
    // SAFETY: the caller's promise: a container has an array of values and one of types.
    unsafe {
        if of.subtype.is_null() || of.subtypes < 1 || value.values.is_null() || of.elements < 1 {
            return Value::Null;
        }
        let number = (of.elements as usize).min(MOST_ELEMENTS);
        let of_element = |at: usize| {
            let subtype = *of.subtype.add(at.min(of.subtypes as usize - 1));
            if subtype.is_null() { Value::Null } else { read(&*value.values.add(at), &*subtype, depth) }
        };
        Value::Array((0..number).map(of_element).collect())
    }
}
