//! The hooks' state of each thread of the application.

use ampl_agent::Thread;
use ampl_agent::call_requests::CallRequests;
use ampl_agent::meter::Meter;
use ampl_agent::partners::Recent;
use ampl_agent::requests::Requests;

use crate::clock;
use crate::displaced::Displaced;
use crate::entry::{Entry, Origin};
use crate::environment;
use crate::filled::Filled;
use crate::places::PlaceCache;
use crate::process::Process;
use crate::progress_timer::ProgressTimer;
use crate::reader::Reader;
use crate::walk::Walker;

/// One thread's state; it lives as long as the process, and serves one thread after another.
#[derive(Debug)]
pub struct ThreadState {
    /// The process it belongs to.
    pub process: &'static Process,
    /// Counting, accumulating, recording.
    pub thread: Thread,
    /// Reads the arguments of the call being recorded.
    pub reader: Reader,
    /// Arguments of a Fortran call as C would pass them.
    pub words: Vec<usize>,
    /// Where MPI puts an error code that the application does not ask for.
    pub ierror: i32,
    /// Arguments of the call being recorded, as words of the record.
    pub args: Vec<u64>,
    /// Places of its buffers, in the order of the marks that stand for them there.
    pub call_places: Vec<u64>,
    /// Values of in/out parameters before the call, as words, in the order of the parameters.
    pub before: Vec<u64>,
    /// Handles among them, and the serial numbers of the objects.
    pub held: Vec<(u64, u64)>,
    /// Finds call paths, where these tell call sites apart.
    pub walker: Option<Box<Walker>>,
    /// Words of the addresses met last.
    pub places: PlaceCache,
    /// Request handles named by the call, before it.
    pub handles: Vec<u64>,
    /// The requests behind them.
    pub named: CallRequests,
    /// Elements of an array of them after the call.
    pub after: Vec<u64>,
    /// Where MPI puts statuses that the application ignores.
    pub statuses: Vec<u64>,
    /// Statuses of the application that calls have filled.
    pub filled: Filled,
    /// Its message partners, where they matter.
    pub recent: Option<Recent>,
    /// Live requests.
    pub requests: Requests,
    /// Schedule of its polls of the tree.
    pub timer: ProgressTimer,
    /// Time for which others had its processor.
    pub displaced: Displaced,
    /// The agent's own time per call.
    pub meter: Meter,
    /// The agent's own time per local call that is only counted.
    pub local_meter: Meter,
}

impl ThreadState {
    /// State for a thread of `process`.
    pub fn new(process: &'static Process, mut thread: Thread) -> Self {
        thread.gather_up_to(process.gathers.unwrap_or(0));
        if environment::takes_whole_way() || !clock::is_invariant() {
            thread.take_whole_way();
        }
        let requests = Requests::new(process.requests.clone(), thread.number());
        Self {
            process,
            walker: Walker::new(thread.path_frames()),
            thread,
            reader: Reader::new(process.abi, &process.fortran),
            words: Vec::with_capacity(32),
            ierror: 0,
            args: Vec::with_capacity(256),
            call_places: Vec::with_capacity(8),
            before: Vec::with_capacity(64),
            held: Vec::with_capacity(4),
            places: PlaceCache::of_this_thread(),
            handles: Vec::with_capacity(64),
            named: CallRequests::default(),
            after: Vec::with_capacity(64),
            statuses: Vec::with_capacity(64),
            filled: Filled::default(),
            recent: process.shared.partners.is_some().then(Recent::default),
            requests,
            timer: ProgressTimer::new(process.gathers),
            displaced: Displaced::start(),
            meter: Meter::default(),
            local_meter: Meter::default(),
        }
    }

    /// Site of the call made at `origin`: the number of its path, where paths tell call sites apart, or its return
    /// address.
    #[inline]
    pub fn path(&mut self, origin: Origin) -> u64 {
        match &mut self.walker {
            Some(walker) => walker.path(&mut self.thread, origin),
            None => origin.address,
        }
    }
}

impl Entry {
    /// The thread's state; null before its first recorded call.
    #[inline(always)]
    pub fn state(&self) -> *mut ThreadState {
        self.thread.cast()
    }
}
