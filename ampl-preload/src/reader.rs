//! A call's arguments as C would pass them, and the memory behind them, whatever the language.
//!
//! Hooks and encoding know C's calls only. For a Fortran call [`Reader::as_c`] makes the words that C
//! would have passed: values for what Fortran passes by reference, C's handles and special addresses.
//! Arrays and outputs stay in memory and are read through [`Reader::load`], for both languages.

use ampl_core::mpi::{Direction, Function, Kind, Length, Param, ids};
use ampl_core::value::{ObjectKind, UNDEFINED};

use crate::abi::{Abi, text};
use crate::fortran::Fortran;
use crate::symbol::{Language, Symbol};

/// How values lie in a call's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    C,
    Fortran,
    /// As Fortran, but addresses are default integers: functions of MPI-1 that MPI-3 removed.
    OldFortran,
}

/// Reads the arguments of one call.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    abi: &'static Abi,
    fortran: &'static Fortran,
    layout: Layout,
    /// Index that the call has for the first of its requests.
    first: u8,
}

/// The C parameters that a Fortran call leaves out, which come first.
fn left_out(function: Function) -> usize {
    match function {
        ids::MPI_INIT | ids::MPI_INIT_THREAD | ids::MPI_INFO_CREATE_ENV => 2,
        _ => 0,
    }
}

/// Position of `ierror` among a Fortran call's words; beyond all of them where there is none.
pub fn ierror_index(function: Function) -> usize {
    match function {
        ids::MPI_PCONTROL => usize::MAX,
        _ => function.spec().params.len() - left_out(function),
    }
}

/// True where a Fortran call passes that parameter as CHARACTER, with a hidden length behind the others.
fn is_character(param: &Param) -> bool {
    param.kind == Kind::String || matches!(param.name, "argv" | "array_of_commands" | "array_of_argv")
}

fn has_old_addresses(function: Function) -> bool {
    matches!(
        function,
        ids::MPI_ADDRESS
            | ids::MPI_ATTR_GET
            | ids::MPI_ATTR_PUT
            | ids::MPI_KEYVAL_CREATE
            | ids::MPI_TYPE_EXTENT
            | ids::MPI_TYPE_HINDEXED
            | ids::MPI_TYPE_HVECTOR
            | ids::MPI_TYPE_LB
            | ids::MPI_TYPE_STRUCT
            | ids::MPI_TYPE_UB
    )
}

impl Reader {
    /// A reader of C calls, until [`Reader::for_call`] changes it.
    pub fn new(abi: &'static Abi, fortran: &'static Fortran) -> Self {
        Self { abi, fortran, layout: Layout::C, first: 0 }
    }

    /// The same for a call of `symbol`.
    #[inline]
    pub fn for_call(self, symbol: &Symbol) -> Self {
        let layout = match symbol.language {
            Language::C => Layout::C,
            Language::Fortran if has_old_addresses(symbol.function) => Layout::OldFortran,
            Language::Fortran => Layout::Fortran,
        };
        let first = match symbol.language {
            Language::C => 0,
            Language::Fortran if symbol.is_f08() && self.fortran.f08_indices_from_zero => 0,
            Language::Fortran => 1,
        };
        Self { layout, first, ..self }
    }

    /// True where the call is Fortran's.
    #[inline]
    pub fn is_fortran(&self) -> bool {
        self.layout != Layout::C
    }

    /// Fills `out` with the words of a Fortran call as C would pass them, `ierror` and hidden lengths
    /// behind them as they are.
    ///
    /// # Safety
    /// `words` must be the arguments of a Fortran call of `symbol`.
    pub unsafe fn as_c(&self, symbol: &Symbol, words: &[usize], out: &mut Vec<usize>) {
        let params = symbol.function.spec().params;
        out.clear();
        out.resize(left_out(symbol.function), 0);
        for (index, &word) in words.iter().enumerate() {
            let converted = match params.get(out.len()) {
                None => word,
                // `mpi` and mpif.h declare it as a buffer, and write nothing (MPI-4.1 §3.6).
                Some(param) if param.name == "buffer_addr" && !symbol.is_f08() => 0,
                // SAFETY: a descriptor's first word is the buffer's address.
                Some(param) if param.kind == Kind::Buffer && symbol.passes_descriptors() => unsafe {
                    self.fortran.buffer(self.long(word, 0).unwrap_or(0) as usize)
                },
                Some(param) if param.kind == Kind::Buffer => self.fortran.buffer(word),
                // SAFETY: Fortran passes its scalar inputs by reference.
                Some(param) if is_by_value_in_c(param) => unsafe {
                    self.load(raw(param.kind), word, 0).unwrap_or(0) as usize
                },
                Some(_) => word,
            };
            debug_assert_eq!(out.len(), index + left_out(symbol.function));
            out.push(converted);
        }
    }

    /// # Safety
    /// A non-null `base` must point to as many 64-bit words.
    unsafe fn long(&self, base: usize, index: usize) -> Option<u64> {
        // SAFETY: the caller's promise.
        (base != 0).then(|| unsafe { (base as *const u64).add(index).read_unaligned() })
    }

    /// The value at element `index` of the array at `base`, as recorded (handles as C's); `None` for a null address.
    ///
    /// # Safety
    /// A non-null `base` must point to at least `index + 1` values of `kind`, as MPI reads or writes them.
    #[inline]
    pub unsafe fn load(&self, kind: Kind, base: usize, index: usize) -> Option<u64> {
        // SAFETY: the caller's promise; Fortran's handles are default integers.
        unsafe {
            match (self.layout, kind) {
                (Layout::C, kind) => self.abi.load(kind, base, index),
                (Layout::OldFortran, Kind::Aint | Kind::Address | Kind::Attribute) => {
                    self.abi.load(Kind::Int, base, index)
                }
                (_, kind) if ObjectKind::of(kind).is_some() => {
                    let integer = self.abi.load(Kind::Int, base, index)?;
                    Some(self.fortran.handle(kind, integer as i32))
                }
                (_, kind) => self.abi.load(kind, base, index),
            }
        }
    }

    /// Puts the handles of the `count` requests at `base` into `out`, as C has them; `null` where there is no array.
    ///
    /// # Safety
    /// A non-null `base` must point to as many requests.
    #[inline]
    pub unsafe fn requests(&self, base: usize, count: usize, null: u64, out: &mut Vec<u64>) {
        out.clear();
        if base == 0 {
            out.resize(count, null);
        } else if self.layout == Layout::C {
            // SAFETY: the caller's promise.
            unsafe { self.abi.requests(base, count, out) };
        } else {
            // SAFETY: the caller's promise.
            let handle = |element| unsafe { self.load(Kind::Request, base, element) }.unwrap_or(null);
            out.extend((0..count).map(handle));
        }
    }

    /// Appends source and tag of the `count` statuses at `base`, as words of the record.
    ///
    /// # Safety
    /// `base` must point to as many statuses.
    #[inline]
    pub unsafe fn statuses(&self, base: usize, count: usize, out: &mut Vec<u64>) {
        // SAFETY: the caller's promise; a status is the same in both languages.
        unsafe { self.abi.statuses(base, count, out) };
    }

    /// Bytes between two values of `kind` in an array.
    pub fn bytes(&self, kind: Kind) -> usize {
        match (self.layout, kind) {
            (Layout::OldFortran, Kind::Aint | Kind::Address | Kind::Attribute) => 4,
            (Layout::Fortran | Layout::OldFortran, kind) if ObjectKind::of(kind).is_some() => 4,
            (_, kind) => self.abi.bytes(kind),
        }
    }

    /// The error code of element `index` of the statuses at `base`.
    ///
    /// # Safety
    /// `base` must point to at least `index + 1` statuses.
    pub unsafe fn status_error(&self, base: usize, index: usize) -> i32 {
        // SAFETY: the caller's promise; a status is the same in both languages.
        unsafe { self.abi.status_error(base, index) }
    }

    /// Value of the attribute under `key`, for which MPI has given the word `value`.
    ///
    /// # Safety
    /// The call that has given it must have found it.
    pub unsafe fn attribute(&self, key: i32, value: u64) -> u64 {
        match self.layout {
            // SAFETY: the caller's promise.
            Layout::C => unsafe { self.abi.attribute(key, value) },
            // Fortran gets the number itself.
            Layout::Fortran | Layout::OldFortran => value,
        }
    }

    /// The index of a request in its array, from 0, where the call has written `said`; `MPI_UNDEFINED` stays.
    pub fn index(&self, said: u64) -> u64 {
        let undefined = UNDEFINED as u64;
        // MPICH 4.1's Fortran adds its one to MPI_UNDEFINED too.
        if said == undefined || (self.first == 1 && said == undefined.wrapping_add(1)) {
            return undefined;
        }
        said.wrapping_sub(u64::from(self.first))
    }

    /// True where `address` is a constant for an ignored status or statuses.
    pub fn is_status_ignore(&self, address: usize) -> bool {
        match self.layout {
            Layout::C => self.abi.is_status_ignore(address),
            _ => self.fortran.is_status_ignore(address),
        }
    }

    /// True where there is no status at `address`.
    pub fn ignores_status(&self, address: usize) -> bool {
        address == 0 || self.is_status_ignore(address)
    }

    /// True where `address` is a constant that stands for no array.
    pub fn is_no_array(&self, address: usize) -> bool {
        match self.layout {
            Layout::C => address == 0 || self.fortran.is_no_array_in_c(address),
            _ => address == 0 || self.fortran.is_no_array(address),
        }
    }

    /// The text that the parameter number `index` of `function` points to, at most `limit` bytes of it;
    /// Fortran's without the blanks it is padded with.
    ///
    /// # Safety
    /// `words` must be the words of the call, as C would pass them, with the text there.
    pub unsafe fn text(&self, function: Function, words: &[usize], index: usize, limit: usize) -> String {
        let address = words[index];
        if !self.is_fortran() {
            // SAFETY: a C string.
            return unsafe { text(address, limit) };
        }
        let params = function.spec().params;
        let before = params[left_out(function).min(index)..index].iter().filter(|p| is_character(p)).count();
        let length = words.get(params.len() + 1 + before).map_or(0, |&word| word as u32 as usize);
        // SAFETY: CHARACTER of that length.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, length.min(limit)) };
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii_end();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The kind under which an integer is read as the implementation has it, its constants included.
fn raw(kind: Kind) -> Kind {
    match kind {
        Kind::Rank | Kind::Tag | Kind::IntOrUndefined | Kind::Logical => Kind::Int,
        kind => kind,
    }
}

/// True where C passes the value itself where Fortran passes its address.
fn is_by_value_in_c(param: &Param) -> bool {
    let single = param.direction == Direction::In && param.length == Length::One;
    single
        && match param.kind {
            Kind::String | Kind::Status | Kind::Buffer => false,
            // User functions are passed as they are in both languages, what they are given is an integer in Fortran.
            Kind::Address => param.name == "extra_state",
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::mpich;

    #[test]
    fn fortran_words_become_those_of_c() {
        let fortran = Box::leak(Box::new(Fortran::new(&mpich::ABI, "")));
        static SEND: Symbol = Symbol::new(ids::MPI_SEND.0, Language::Fortran, &["mpi_send_\0"]);
        let reader = Reader::new(&mpich::ABI, fortran).for_call(&SEND);
        let (count, datatype, dest, tag, comm) =
            (3i32, 0x4c00_0405i32, mpich::ABI.proc_null, 7i32, 0x4400_0000i32);
        let at = |value: &i32| std::ptr::from_ref(value) as usize;
        let words = [0x1234, at(&count), at(&datatype), at(&dest), at(&tag), at(&comm), 0];
        let mut out = Vec::new();
        // SAFETY: every address is of a live value.
        unsafe { reader.as_c(&SEND, &words, &mut out) };
        assert_eq!(out[..2], [0x1234, 3]);
        assert_eq!(out[2], 0x4c00_0405);
        assert_eq!(out[3] as i32, mpich::ABI.proc_null, "constants stay the implementation's");
        assert_eq!(ierror_index(ids::MPI_SEND), 6);
        assert_eq!(reader.index(1), 0);
        assert_eq!(reader.index(UNDEFINED as u64), UNDEFINED as u64);
    }

    #[test]
    fn texts_end_before_their_padding() {
        let fortran = Box::leak(Box::new(Fortran::new(&mpich::ABI, "")));
        static SET: Symbol = Symbol::new(ids::MPI_INFO_SET.0, Language::Fortran, &["mpi_info_set_\0"]);
        let reader = Reader::new(&mpich::ABI, fortran).for_call(&SET);
        let (key, value) = (*b"key   ", *b"a value ");
        // Handle, key, value, ierror, and the two lengths.
        let words = [0, key.as_ptr() as usize, value.as_ptr() as usize, 0, 6, 8];
        // SAFETY: both texts are as long as their lengths say.
        let texts = unsafe { [1, 2].map(|index| reader.text(ids::MPI_INFO_SET, &words, index, 100)) };
        assert_eq!(texts, ["key", "a value"]);
    }
}
