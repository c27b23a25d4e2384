//! NCCL, and RCCL, whose functions have the same names: calls as they are enqueued, which go on to the library's own.
//!
//! A call puts work into a stream of the device and returns. Its region is as long as that takes: nothing here knows when
//! the transfer begins or ends. It is no call of MPI, and none of MPI's times have it.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use ampl_core::device_call::DeviceCall;
use ampl_core::hook_source::HookSource;
use ampl_trace::metadata::DeviceCalls;

use super::interposed::{self, Outermost};
use super::numbered::Numbered;
use crate::api;
use crate::contain::contained;
use crate::symbol::in_search_order;

const SOURCE: HookSource = HookSource::Nccl;
/// Beginnings of the libraries' file names.
const LIBRARIES: [&str; 2] = ["libnccl.", "librccl."];
/// `ncclSystemError`: the answer where no library is.
const NO_LIBRARY: c_int = 2;
/// Regions that say what was enqueued: the program's own need numbers, too.
const MOST_CALLS: usize = 512;
/// Communicators that have numbers.
const MOST_COMMUNICATORS: usize = 1024;
/// Metric of the bytes that calls enqueue.
const BYTES: &std::ffi::CStr = c"nccl.bytes";

type Comm = *mut c_void;
type Stream = *mut c_void;
type From = *const c_void;
type To = *mut c_void;

/// `ncclUniqueId`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId([c_char; 128]);

/// Calls of a function by this process.
struct Total {
    calls: AtomicU64,
    bytes: AtomicU64,
    /// Number of the region that stands for calls without further words.
    region: AtomicI32,
}

static CALLS: Numbered<MOST_CALLS> = Numbered::new();
static COMMUNICATORS: [AtomicUsize; MOST_COMMUNICATORS] = [const { AtomicUsize::new(0) }; MOST_COMMUNICATORS];
/// Communicators so far, those without a number, too.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static METRIC: AtomicU32 = AtomicU32::new(0);

/// A new communicator has its next number, wherever its memory was in use before.
fn begun(comm: Comm) -> Option<u32> {
    ended(comm);
    let number = BEGUN.fetch_add(1, Ordering::Relaxed);
    COMMUNICATORS.get(number)?.store(comm as usize, Ordering::Relaxed);
    Some(number as u32)
}

fn ended(comm: Comm) {
    if let Some(number) = known(comm) {
        COMMUNICATORS[number].store(0, Ordering::Relaxed);
    }
}

fn known(comm: Comm) -> Option<usize> {
    let begun = BEGUN.load(Ordering::Relaxed).min(MOST_COMMUNICATORS);
    COMMUNICATORS[..begun].iter().rposition(|own| own.load(Ordering::Relaxed) == comm as usize)
}

/// The number of a communicator; one that was made unseen begins here.
fn number(comm: Comm) -> Option<u32> {
    known(comm).map_or_else(|| begun(comm), |number| Some(number as u32))
}

/// Meaning of a call.
#[derive(Clone, Copy)]
enum What {
    /// It enqueues so many elements of a type, on a communicator.
    Data(usize, c_int, Comm),
    /// A group of calls begins.
    GroupBegins,
    /// A group of calls ends, which enqueues it.
    GroupEnds,
    /// It makes a communicator, which is at that place then.
    Makes(*const Comm),
    /// It ends a communicator.
    Ends(Comm),
    /// Another one.
    Other,
}

/// A call of a function that the program makes; its region ends with it.
struct Call {
    outermost: Option<Outermost>,
    region: c_int,
    what: What,
}

impl Call {
    fn begin(of: Of, what: What) -> Option<Self> {
        let outermost = Outermost::begin(SOURCE)?;
        let region = contained(|| region(of, what)).unwrap_or(0);
        api::enter(region);
        outermost.enter();
        Some(Self { outermost: Some(outermost), region, what })
    }

    /// It has returned `result`.
    ///
    /// # Safety
    /// Where it makes a communicator and has succeeded, that is at its place.
    unsafe fn end(self, result: c_int) {
        const SUCCESS: c_int = 0;
        const IN_PROGRESS: c_int = 7;
        let what = self.what;
        drop(self);
        match what {
            What::GroupBegins => api::enter(group()),
            What::GroupEnds => api::exit(group()),
            What::Makes(place) if [SUCCESS, IN_PROGRESS].contains(&result) => {
                // SAFETY: the caller's promise.
                if let Some(&comm) = unsafe { place.as_ref() }
                    && !comm.is_null()
                {
                    begun(comm);
                }
            }
            What::Ends(comm) => ended(comm),
            What::Data(..) | What::Makes(_) | What::Other => {}
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.outermost = None;
        api::exit(self.region);
    }
}

/// Counts the call, and returns the number of its region.
fn region(of: Of, what: What) -> c_int {
    let total = &TOTALS[of as usize];
    total.calls.fetch_add(1, Ordering::Relaxed);
    let What::Data(count, datatype, comm) = what else { return plain(of) };
    let call = DeviceCall {
        function: NAMES[of as usize],
        datatype,
        count: count as u64,
        communicator: number(comm),
    };
    let bytes = call.bytes().unwrap_or(0);
    total.bytes.fetch_add(bytes, Ordering::Relaxed);
    api::ampl_metric_add(metric(), bytes as f64);
    let words = [of as u64, call.count, datatype as u64, call.communicator.map_or(u64::MAX, u64::from)];
    let key =
        words.iter().fold(1u64, |key, word| (key ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let named = CALLS.number(key.max(1), || api::region_number(call.to_string().as_bytes()));
    named.filter(|&region| region != 0).unwrap_or_else(|| plain(of))
}

/// The number of the region of a function without further words.
fn plain(of: Of) -> c_int {
    by_name(&TOTALS[of as usize].region, NAMES[of as usize])
}

fn by_name(place: &AtomicI32, name: &str) -> c_int {
    let known = place.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let made = api::region_number(name.as_bytes());
    place.store(made, Ordering::Relaxed);
    made
}

fn metric() -> c_int {
    let known = METRIC.load(Ordering::Relaxed);
    if known != 0 {
        return known as c_int;
    }
    // SAFETY: a C string.
    let made = unsafe { api::ampl_metric_register(BYTES.as_ptr()) };
    METRIC.store(made as u32, Ordering::Relaxed);
    made
}

/// True where the process has the library, and its functions can be stood before.
pub fn is_there() -> bool {
    let found = in_search_order("ncclGroupStart\0");
    if found.is_null() {
        // SAFETY: forgets that it is not there.
        unsafe { libc::dlerror() };
    }
    !found.is_null()
}

/// Functions that were called so far, in the order of their names here.
pub fn totals() -> Vec<DeviceCalls> {
    let all = NAMES.iter().zip(&TOTALS).map(|(name, total)| DeviceCalls {
        function: (*name).to_owned(),
        calls: total.calls.load(Ordering::Relaxed),
        bytes: total.bytes.load(Ordering::Relaxed),
    });
    all.filter(|total| total.calls > 0).collect()
}

/// The region of groups of calls, as long as the group.
fn group() -> c_int {
    static REGION: AtomicI32 = AtomicI32::new(0);
    contained(|| by_name(&REGION, "ncclGroup")).unwrap_or(0)
}

/// Defines functions of NCCL's: name, parameters, and what their call means.
macro_rules! interposed {
    ($($name:ident($($parameter:ident: $kind:ty),*) $what:expr;)+) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, clippy::enum_variant_names, reason = "names of the library")]
        enum Of { $($name),+ }

        const NAMES: [&str; [$(Of::$name),+].len()] = [$(stringify!($name)),+];
        static TOTALS: [Total; NAMES.len()] = [const {
            Total { calls: AtomicU64::new(0), bytes: AtomicU64::new(0), region: AtomicI32::new(0) }
        }; NAMES.len()];

        $(
            /// # Safety
            /// The program calls it as the library's.
            // SAFETY: the library's name and type.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the library's names and parameters")]
            pub unsafe extern "C-unwind" fn $name($($parameter: $kind),*) -> c_int {
                static NEXT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
                let next = interposed::next(&NEXT, concat!(stringify!($name), "\0"), &LIBRARIES);
                // SAFETY: null or the library's function of that name.
                let next = unsafe {
                    std::mem::transmute::<*const (), Option<unsafe extern "C-unwind" fn($($kind),*) -> c_int>>(next)
                };
                let Some(next) = next else { return NO_LIBRARY };
                let call = Call::begin(Of::$name, $what);
                // SAFETY: the program's own arguments.
                let result = unsafe { next($($parameter),*) };
                if let Some(call) = call {
                    // SAFETY: the library keeps what its interface promises.
                    unsafe { call.end(result) };
                }
                result
            }
        )+
    };
}

interposed! {
    ncclAllReduce(send: From, receive: To, count: usize, kind: c_int, operation: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclReduce(
        send: From, receive: To, count: usize, kind: c_int, operation: c_int, root: c_int, comm: Comm, stream: Stream
    ) What::Data(count, kind, comm);
    ncclReduceScatter(send: From, receive: To, count: usize, kind: c_int, operation: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclBroadcast(send: From, receive: To, count: usize, kind: c_int, root: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclBcast(buffer: To, count: usize, kind: c_int, root: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclAllGather(send: From, receive: To, count: usize, kind: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    // RCCL
    ncclAllToAll(send: From, receive: To, count: usize, kind: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclSend(send: From, count: usize, kind: c_int, peer: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclRecv(receive: To, count: usize, kind: c_int, peer: c_int, comm: Comm, stream: Stream)
        What::Data(count, kind, comm);
    ncclGroupStart() What::GroupBegins;
    ncclGroupEnd() What::GroupEnds;
    ncclCommInitRank(comm: *mut Comm, ranks: c_int, id: UniqueId, rank: c_int) What::Makes(comm);
    ncclCommInitRankConfig(comm: *mut Comm, ranks: c_int, id: UniqueId, rank: c_int, config: *mut c_void)
        What::Makes(comm);
    ncclCommInitAll(comms: *mut Comm, devices: c_int, list: *const c_int) What::Other;
    ncclCommSplit(comm: Comm, color: c_int, key: c_int, made: *mut Comm, config: *mut c_void) What::Makes(made);
    ncclCommFinalize(comm: Comm) What::Other;
    ncclCommDestroy(comm: Comm) What::Ends(comm);
    ncclCommAbort(comm: Comm) What::Ends(comm);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicators_are_numbered_in_their_order() {
        let [one, other] = [0x10, 0x20].map(std::ptr::without_provenance_mut);
        let first = number(one);
        assert_eq!([number(one), number(other), number(one)], [first, first.map(|first| first + 1), first]);
        ended(one);
        // The same memory, and another communicator.
        assert_eq!(begun(one), first.map(|first| first + 2));
        assert_eq!(number(one), first.map(|first| first + 2));
        for at in 0..2 * MOST_COMMUNICATORS {
            begun(std::ptr::without_provenance_mut(0x1000 + at));
        }
        assert_eq!(number(std::ptr::without_provenance_mut(0x999)), None);
    }
}
