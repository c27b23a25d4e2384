//! Differences between MPI implementations, and the only code that reads the application's memory.
//!
//! A wrapper sees words. The table of the loaded implementation defines the bytes behind an argument and the meaning of
//! constants.

mod data;
pub(crate) mod memory;
pub(crate) mod mpich;
mod openmpi;
mod standard;

use ampl_core::mpi::Kind;
use ampl_core::mpi::predefined_index;
use ampl_core::value::{self, ObjectKind};
use ampl_trace::args::{predefined_word, status_word};

use data::Predefined;
pub use data::{Abi, FortranSentinel, Sentinel};

use crate::symbol::{next_definition, variable};

/// The interface of the MPI library behind this one; `None` if there is none we know.
pub fn detect() -> Option<&'static Abi> {
    let function = next_definition("PMPI_Init\0");
    if function.is_null() {
        return None;
    }
    if crate::resolve::module(function as u64).0.contains("libmpi_abi") {
        return Some(&standard::ABI);
    }
    let open_mpi = !variable("ompi_mpi_comm_world\0").is_null();
    Some(if open_mpi { &openmpi::ABI } else { &mpich::ABI })
}

impl Abi {
    /// Every predefined handle of the loaded library: kind, handle, word in records.
    pub fn predefined_handles(&self) -> Vec<(ObjectKind, u64, u64)> {
        let handle = |from: &Predefined| match *from {
            Predefined::Word(word) => Some(word),
            Predefined::Symbol(name) => {
                let address = variable(&format!("{name}\0"));
                (!address.is_null()).then_some(address as u64)
            }
        };
        self.predefined
            .iter()
            .filter_map(|(kind, name, from)| {
                let index = predefined_index(*kind, name)?;
                Some((*kind, handle(from)?, predefined_word(index)))
            })
            .collect()
    }

    /// The handle of the predefined object `name`, as a word to pass.
    pub fn handle(&self, kind: ObjectKind, name: &str) -> Option<usize> {
        Some(match self.find(kind, name)? {
            Predefined::Word(word) => word as usize,
            Predefined::Symbol(symbol) => variable(&format!("{symbol}\0")) as usize,
        })
        .filter(|&handle| handle != 0 || self.handle_bytes == 4)
    }

    /// The address that `sentinel` stands for; 0 where the library has no such thing.
    pub fn address(sentinel: Sentinel) -> usize {
        match sentinel {
            Sentinel::Word(word) => word,
            Sentinel::AddressOf(name) => variable(&format!("{name}\0")) as usize,
            Sentinel::ValueOf(name) => {
                let at = variable(&format!("{name}\0")) as usize;
                // SAFETY: a pointer variable of the MPI library, initialised by now.
                if at == 0 { 0 } else { unsafe { (at as *const usize).read() } }
            }
        }
    }

    /// Bytes of a handle of that kind in memory.
    pub fn handle_width(&self, kind: Kind) -> usize {
        if kind == Kind::File { 8 } else { self.handle_bytes }
    }

    /// A handle passed by value: the upper half of a narrow one's register is undefined.
    #[inline]
    pub fn handle_word(&self, kind: Kind, word: usize) -> u64 {
        if self.handle_width(kind) == 4 { u64::from(word as u32) } else { word as u64 }
    }

    /// The rank as it is recorded.
    pub fn rank(&self, rank: i32) -> i64 {
        match rank {
            rank if rank >= 0 => i64::from(rank),
            rank if rank == self.any_source => value::ANY_SOURCE,
            rank if rank == self.proc_null => value::PROC_NULL,
            rank if rank == self.root => value::ROOT,
            rank if rank == self.undefined => value::UNDEFINED,
            rank => i64::from(rank),
        }
    }

    /// The tag as it is recorded.
    pub fn tag(&self, tag: i32) -> i64 {
        if tag == self.any_tag { value::ANY_TAG } else { i64::from(tag) }
    }

    /// The value at element `index` of the array at `base`, as recorded; `None` for a null address.
    ///
    /// # Safety
    /// A non-null `base` must point to at least `index + 1` values of `kind`, as MPI reads or writes them.
    #[inline]
    pub unsafe fn load(&self, kind: Kind, base: usize, index: usize) -> Option<u64> {
        if base == 0 {
            return None;
        }
        // SAFETY: the caller's promise; MPI programs may pass unaligned addresses.
        let int = || unsafe { (base as *const i32).add(index).read_unaligned() };
        // SAFETY: as above.
        let long = || unsafe { (base as *const u64).add(index).read_unaligned() };
        Some(match kind {
            Kind::Int | Kind::Logical => i64::from(int()) as u64,
            Kind::Rank => self.rank(int()) as u64,
            Kind::Tag => self.tag(int()) as u64,
            Kind::IntOrUndefined => {
                let number = int();
                (if number == self.undefined { value::UNDEFINED } else { i64::from(number) }) as u64
            }
            Kind::Count
            | Kind::Aint
            | Kind::Offset
            | Kind::Double
            | Kind::Address
            | Kind::Attribute
            | Kind::Buffer
            | Kind::String => long(),
            Kind::Status => {
                // SAFETY: as above, for a status.
                let (source, tag) = unsafe { self.status(base, index) };
                status_word(source, tag)
            }
            handle if self.handle_width(handle) == 4 => u64::from(int() as u32),
            _ => long(),
        })
    }

    /// Bytes between two values of `kind` in an array.
    pub fn bytes(&self, kind: Kind) -> usize {
        match kind {
            Kind::Int | Kind::Logical | Kind::Rank | Kind::Tag | Kind::IntOrUndefined => 4,
            Kind::Status => self.status_bytes,
            kind if ObjectKind::of(kind).is_some() => self.handle_width(kind),
            _ => 8,
        }
    }

    /// The class of an error code that MPI has returned.
    pub fn error_class(&self, code: i32) -> i32 {
        code & self.error_class_mask
    }

    /// The error code of element `index` of the statuses at `base`.
    ///
    /// # Safety
    /// `base` must point to at least `index + 1` statuses.
    pub unsafe fn status_error(&self, base: usize, index: usize) -> i32 {
        let at = base + index * self.status_bytes + self.status_error_offset;
        // SAFETY: the field lies in the status.
        unsafe { (at as *const i32).read_unaligned() }
    }

    /// Value of an attribute that C has got as `word`: under MPI's own keys the number at that address.
    ///
    /// # Safety
    /// `word` must be what MPI has given as the attribute under `key`.
    pub unsafe fn attribute(&self, key: i32, word: u64) -> u64 {
        let number = self.number_keys.iter().find(|(known, _)| *known == key);
        // SAFETY: under that key MPI gives the address of such a number, or none.
        number.and_then(|&(_, kind)| unsafe { self.load(kind, word as usize, 0) }).unwrap_or(word)
    }

    /// Source and tag, as recorded, of element `index` of the statuses at `base`.
    ///
    /// # Safety
    /// `base` must point to at least `index + 1` statuses.
    pub unsafe fn status(&self, base: usize, index: usize) -> (i32, i32) {
        let at = base + index * self.status_bytes;
        // SAFETY: both fields lie in the status.
        let (source, tag) = unsafe {
            (
                ((at + self.status_source_offset) as *const i32).read_unaligned(),
                ((at + self.status_tag_offset) as *const i32).read_unaligned(),
            )
        };
        (self.rank(source) as i32, self.tag(tag) as i32)
    }

    /// Appends the handles of the `count` requests at `base`.
    ///
    /// # Safety
    /// `base` must point to as many requests.
    #[inline]
    pub unsafe fn requests(&self, base: usize, count: usize, out: &mut Vec<u64>) {
        // One loop for each width: within, nothing is left to decide.
        if self.handle_bytes == 4 {
            let base = base as *const u32;
            // SAFETY: the caller's promise; programs may pass unaligned addresses.
            out.extend((0..count).map(|at| u64::from(unsafe { base.add(at).read_unaligned() })));
        } else {
            let base = base as *const u64;
            // SAFETY: as above.
            out.extend((0..count).map(|at| unsafe { base.add(at).read_unaligned() }));
        }
    }

    /// Appends source and tag of the `count` statuses at `base`, as words of the record.
    ///
    /// # Safety
    /// `base` must point to as many statuses.
    #[inline]
    pub unsafe fn statuses(&self, base: usize, count: usize, out: &mut Vec<u64>) {
        let (bytes, source_at, tag_at) =
            (self.status_bytes, self.status_source_offset, self.status_tag_offset);
        // SAFETY: the field lies in a status of the caller's.
        let field = |at: usize| unsafe { (at as *const i32).read_unaligned() };
        out.extend((0..count).map(|element| {
            let at = base + element * bytes;
            let (source, tag) = (field(at + source_at), field(at + tag_at));
            if source | tag >= 0 {
                // Neither is a constant of the implementation's: those are negative.
                u64::from(source as u32) << 32 | u64::from(tag as u32)
            } else {
                status_word(self.rank(source) as i32, self.tag(tag) as i32)
            }
        }));
    }

    /// True where `address` is a constant for an ignored status or statuses.
    pub fn is_status_ignore(&self, address: usize) -> bool {
        address == self.status_ignore || address == self.statuses_ignore
    }
}

/// The text at `address`, at most `limit` bytes of it.
///
/// # Safety
/// `address` must point to a NUL-terminated string, or to `limit` bytes.
pub unsafe fn text(address: usize, limit: usize) -> String {
    // SAFETY: strnlen reads no further than the NUL or the limit.
    let bytes = unsafe {
        let length = libc::strnlen(address as *const libc::c_char, limit);
        std::slice::from_raw_parts(address as *const u8, length)
    };
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays are read as their elements are, wherever they lie.
    #[test]
    fn arrays_are_read_as_their_elements_are() {
        for abi in [&openmpi::ABI, &mpich::ABI, &standard::ABI] {
            const COUNT: usize = 9;
            // A request is 4 or 8 bytes and a status at most 32; everything may begin at any byte.
            let mut bytes: Vec<u8> = (0..32 * COUNT + 8).map(|at| (at * 151 % 256) as u8).collect();
            for (element, source, tag) in [
                (1, abi.any_source, abi.any_tag),
                (2, abi.proc_null, abi.any_tag),
                (3, 0, 0),
                (4, 7, i32::MAX),
            ] {
                let at = 3 + element * abi.status_bytes;
                for (offset, value) in [(abi.status_source_offset, source), (abi.status_tag_offset, tag)] {
                    bytes[at + offset..][..4].copy_from_slice(&value.to_ne_bytes());
                }
            }
            let base = bytes.as_ptr() as usize + 3;
            let (mut requests, mut statuses) = (vec![1], vec![2]);
            // SAFETY: so many bytes are there.
            let one = |kind, element| unsafe { abi.load(kind, base, element) }.expect("an address");
            // SAFETY: as above.
            unsafe {
                abi.requests(base, COUNT, &mut requests);
                abi.statuses(base, COUNT, &mut statuses);
            }
            let expected = |kind| (0..COUNT).map(move |element| one(kind, element));
            assert!(requests[1..].iter().copied().eq(expected(Kind::Request)), "{:?}", abi.family);
            assert!(statuses[1..].iter().copied().eq(expected(Kind::Status)), "{:?}", abi.family);
            assert_eq!(
                statuses[2],
                status_word(value::ANY_SOURCE as i32, value::ANY_TAG as i32),
                "{:?}",
                abi.family
            );
        }
    }
}
