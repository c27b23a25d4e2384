//! MPI as the replayer reaches it: rsmpi's raw interface, this MPI's handles and constants by name, and calls of any
//! function by its name.
//!
//! Calls of the trace go to the functions `MPI_*`, so that a tool may record them. What the replayer itself needs goes
//! to `PMPI_*`, which tools do not see.

use std::ffi::{CString, c_int, c_void};
use std::mem::{size_of, transmute, transmute_copy};

use ampl_core::mpi::ObjectKind;
use ampl_core::mpi::constants::AbiFamily;
use ampl_replay::shares::Own;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Equivalence;

unsafe extern "C" {
    fn ampl_replay_handle(index: c_int, word: *mut usize) -> c_int;
    fn ampl_replay_constant(index: c_int, word: *mut isize) -> c_int;
    fn ampl_replay_width(kind: c_int) -> c_int;
    fn ampl_replay_family() -> c_int;
}

/// Constants whose values differ between MPIs, in the order of the table that `build.rs` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Constant {
    AnySource,
    AnyTag,
    ProcNull,
    Root,
    Undefined,
    InPlace,
    Unweighted,
}

impl Constant {
    /// Its value in this MPI; `None` where it has none.
    pub fn word(self) -> Option<usize> {
        let mut word = 0isize;
        // SAFETY: the function writes one word.
        let known = unsafe { ampl_replay_constant(self as c_int, &raw mut word) };
        (known != 0).then_some(word as usize)
    }
}

/// Handle of the predefined object of that index in the table; `None` where this MPI has none.
pub fn predefined(index: usize) -> Option<usize> {
    let mut word = 0usize;
    // SAFETY: the function writes one word.
    let known = unsafe { ampl_replay_handle(index as c_int, &raw mut word) };
    (known != 0).then_some(word)
}

/// Bytes of a handle of that kind in memory.
pub fn handle_width(kind: ObjectKind) -> usize {
    // SAFETY: the function only computes.
    unsafe { ampl_replay_width(kind as c_int) as usize }
}

/// The bytes of whole words.
pub fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    let bytes = size_of_val(words);
    // SAFETY: every byte of a word may be read and written as one.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), bytes) }
}

/// Binary interface that this replayer is built for.
pub fn family() -> AbiFamily {
    // SAFETY: the function only computes.
    AbiFamily::ALL[unsafe { ampl_replay_family() } as usize]
}

/// Bytes of a status.
pub const STATUS_BYTES: usize = size_of::<ffi::MPI_Status>();

/// A function of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routine(*const c_void);

/// Most arguments of a function of MPI.
pub const MOST_ARGUMENTS: usize = 16;

fn look_up(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: a lookup of a name in what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const())
}

/// True where the library itself has the function: a tool in front of it may define more.
pub fn has(name: &str) -> bool {
    look_up(&format!("P{name}")).is_some()
}

impl Routine {
    /// The function of that name, a tool's where one is in front; `None` where this MPI lacks it.
    pub fn of(name: &str) -> Option<Self> {
        if has(name) { look_up(name).map(Self) } else { None }
    }

    /// Calls it with `words`, and returns its error code. Each word is an argument as the table of functions describes
    /// it; pointers must point to as much memory as the function reads and writes.
    pub fn call(self, words: &[usize]) -> i32 {
        let mut all = [0usize; MOST_ARGUMENTS];
        all[..words.len()].copy_from_slice(words);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all;
        type Any = unsafe extern "C-unwind" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) -> c_int;
        // SAFETY: every argument of an MPI function is passed as an integer word, an int in its lower half; the callee
        // ignores what is behind its last. Pointers are those of the caller's promise.
        unsafe { transmute::<*const c_void, Any>(self.0)(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) }
    }
}

fn world() -> ffi::MPI_Comm {
    SimpleCommunicator::world().as_raw()
}

/// Rank and number of ranks in the world.
pub fn place() -> (u32, u32) {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI has begun; each writes one int.
    unsafe {
        ffi::PMPI_Comm_rank(world(), &raw mut rank);
        ffi::PMPI_Comm_size(world(), &raw mut size);
    }
    (rank as u32, size as u32)
}

/// A communicator of all ranks that only the replayer uses.
#[derive(Clone, Copy, Debug)]
pub struct Private(ffi::MPI_Comm);

impl Private {
    /// Made by all ranks together.
    pub fn new() -> Self {
        let mut comm = world();
        // SAFETY: MPI has begun, and all ranks come here.
        unsafe { ffi::PMPI_Comm_dup(world(), &raw mut comm) };
        Self(comm)
    }

    /// Sums over all ranks, on rank 0; elsewhere the own values.
    pub fn sum(self, values: &mut [u64], rank: u32) {
        let sum = mpi::collective::SystemOperation::sum().as_raw();
        self.reduce(values, rank, sum);
    }

    /// The largest of all ranks, on rank 0; elsewhere the own values.
    pub fn largest(self, values: &mut [u64], rank: u32) {
        let max = mpi::collective::SystemOperation::max().as_raw();
        self.reduce(values, rank, max);
    }

    fn reduce(self, values: &mut [u64], rank: u32, operation: ffi::MPI_Op) {
        let own = values.to_vec();
        let into = if rank == 0 { values.as_mut_ptr().cast() } else { std::ptr::null_mut() };
        let kind = u64::equivalent_datatype().as_raw();
        // SAFETY: both buffers hold as many values.
        unsafe {
            ffi::PMPI_Reduce(own.as_ptr().cast(), into, own.len() as c_int, kind, operation, 0, self.0);
        }
    }

    /// Rank 0's value on every rank.
    pub fn share(self, value: &mut u64) {
        let kind = u64::equivalent_datatype().as_raw();
        // SAFETY: the buffer is one value.
        unsafe { ffi::PMPI_Bcast((&raw mut *value).cast(), 1, kind, 0, self.0) };
    }

    /// Frees it, by all ranks together.
    pub fn free(mut self) {
        // SAFETY: it was made by `new`.
        unsafe { ffi::PMPI_Comm_free(&raw mut self.0) };
    }
}

fn handle<T>(word: usize) -> T {
    assert!(size_of::<T>() <= size_of::<usize>());
    // SAFETY: a handle is at most a word, and its bytes are the word's lower ones.
    unsafe { transmute_copy(&word) }
}

/// True where the request is complete; it stays as it is.
pub fn is_complete(request: usize) -> bool {
    let mut flag = 0;
    // SAFETY: the handle is one that MPI has given.
    unsafe {
        ffi::PMPI_Request_get_status(handle(request), &raw mut flag, ffi::RSMPI_STATUS_IGNORE);
    }
    flag != 0
}

/// True where a message is there.
pub fn has_arrived(source: usize, tag: usize, comm: usize) -> bool {
    let mut flag = 0;
    let (source, tag) = (source as c_int, tag as c_int);
    // SAFETY: the handle is one that MPI has given.
    unsafe {
        ffi::PMPI_Iprobe(source, tag, handle(comm), &raw mut flag, ffi::RSMPI_STATUS_IGNORE);
    }
    flag != 0
}

/// Extent of a datatype, and the lower bound and extent of its data; `None` where it is none.
pub fn extents(datatype: usize) -> Option<(i64, i64, i64)> {
    let (mut lower, mut extent, mut true_lower, mut true_extent) = (0, 0, 0, 0);
    // SAFETY: each writes two numbers.
    let codes = unsafe {
        [
            ffi::PMPI_Type_get_extent(handle(datatype), &raw mut lower, &raw mut extent),
            ffi::PMPI_Type_get_true_extent(handle(datatype), &raw mut true_lower, &raw mut true_extent),
        ]
    };
    // MPI_Aint is i64 with one MPI, isize with another.
    #[allow(clippy::unnecessary_cast)]
    let told = (extent as i64, true_lower as i64, true_extent as i64);
    (codes == [0, 0]).then_some(told)
}

/// Bytes of the data of an element of a datatype; 0 where it is none.
pub fn type_bytes(datatype: usize) -> u64 {
    let mut bytes = 0;
    // SAFETY: the function writes one number.
    let code = unsafe { ffi::PMPI_Type_size_x(handle(datatype), &raw mut bytes) };
    // MPI_Count is i64 with one MPI, isize with another.
    #[allow(clippy::unnecessary_cast)]
    let bytes = bytes as i64;
    if code == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Rank in a communicator, and its number of ranks; `None` where it has two groups.
pub fn place_in(comm: usize) -> Option<(usize, usize)> {
    let (mut rank, mut size, mut has_two) = (0, 0, 0);
    // SAFETY: the handle is one that MPI has given; each writes one int.
    unsafe {
        ffi::PMPI_Comm_test_inter(handle(comm), &raw mut has_two);
        ffi::PMPI_Comm_rank(handle(comm), &raw mut rank);
        ffi::PMPI_Comm_size(handle(comm), &raw mut size);
    }
    (has_two == 0).then_some((rank as usize, size as usize))
}

/// Sums that every rank of a communicator passes, in the order of their ranks; all of them come here.
pub fn gather_all(comm: usize, own: Own, ranks: usize) -> Vec<Own> {
    let (own, mut all) = ([own.sends, own.receives, own.unit], vec![[0u64; 3]; ranks]);
    let kind = u64::equivalent_datatype().as_raw();
    // SAFETY: the buffers hold three words, and three of every rank.
    unsafe {
        ffi::PMPI_Allgather(own.as_ptr().cast(), 3, kind, all.as_mut_ptr().cast(), 3, kind, handle(comm))
    };
    all.into_iter().map(|[sends, receives, unit]| Own { sends, receives, unit }).collect()
}

/// MPI's own text for an error code.
pub fn error_text(code: i32) -> String {
    let mut text = [0u8; 4096];
    let mut length = 0;
    // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING of any library.
    unsafe { ffi::PMPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    String::from_utf8_lossy(&text[..(length.max(0) as usize).min(text.len())]).into_owned()
}

/// Ends all ranks, where MPI runs; the process in any case.
pub fn abort(code: i32) -> ! {
    if is_running() {
        // SAFETY: MPI runs.
        unsafe { ffi::PMPI_Abort(world(), code) };
    }
    std::process::exit(code)
}

/// Ends MPI, by a call that no tool sees.
pub fn finalize() {
    // SAFETY: MPI runs.
    unsafe { ffi::PMPI_Finalize() };
}

/// True between `MPI_Init` and `MPI_Finalize`.
pub fn is_running() -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: both may be called at any time.
    unsafe {
        ffi::PMPI_Initialized(&raw mut begun);
        ffi::PMPI_Finalized(&raw mut ended);
    }
    begun != 0 && ended == 0
}

/// A function of the program's that MPI calls: one that does nothing takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// Operation on data.
    Operation,
    /// Copy of an attribute.
    Copy,
    /// Anything whose arguments need no answer.
    Nothing,
    /// Status of a generalized request.
    Query,
}

impl Callback {
    /// Its address.
    pub fn word(self) -> usize {
        match self {
            Self::Operation => operation as *const c_void as usize,
            Self::Copy => copy as *const c_void as usize,
            Self::Nothing => nothing as *const c_void as usize,
            Self::Query => query as *const c_void as usize,
        }
    }
}

extern "C" fn operation(
    _in: *const c_void,
    _inout: *mut c_void,
    _length: *const c_int,
    _type: *const c_void,
) {
}

extern "C" fn nothing() -> c_int {
    0
}

extern "C" fn copy(_: usize, _: usize, _: usize, _: usize, _: usize, flag: *mut c_int) -> c_int {
    // SAFETY: MPI passes where the flag is to be.
    unsafe { *flag = 0 };
    0
}

extern "C" fn query(_state: *const c_void, status: *mut ffi::MPI_Status) -> c_int {
    // SAFETY: MPI passes the status to be filled.
    unsafe {
        ffi::PMPI_Status_set_elements(status, u8::equivalent_datatype().as_raw(), 0);
        ffi::PMPI_Status_set_cancelled(status, 0);
        (*status).MPI_SOURCE = ffi::RSMPI_UNDEFINED;
        (*status).MPI_TAG = ffi::RSMPI_UNDEFINED;
    }
    0
}

/// Has the next call that completes requests see `array` in place of its own, at whose positions `used` tells what goes
/// back; false where the library of masks is not loaded.
pub fn mask(array: &[u8], used: &[u8], width: usize) -> bool {
    let Some(found) = look_up("ampl_replay_mask") else { return false };
    type Set = unsafe extern "C" fn(*const u8, *const u8, usize, usize);
    let set = MASK_OF.with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.0.clear();
        kept.0.extend_from_slice(array);
        kept.1.clear();
        kept.1.extend_from_slice(used);
        (kept.0.as_ptr(), kept.1.as_ptr())
    });
    // SAFETY: the library's own function, which remembers the arrays for the next call; they live until then.
    unsafe { transmute::<*const c_void, Set>(found)(set.0, set.1, used.len(), width) };
    true
}

thread_local! {
    /// Arrays that the library of masks refers to.
    static MASK_OF: std::cell::RefCell<(Vec<u8>, Vec<u8>)> = const { std::cell::RefCell::new((Vec::new(), Vec::new())) };
}
