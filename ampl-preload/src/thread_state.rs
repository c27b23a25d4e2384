//! The hooks' state of each thread of the application.

use ampl_agent::Thread;
use ampl_agent::call_requests::CallRequests;
use ampl_agent::meter::Meter;
use ampl_agent::partners::Recent;
use ampl_agent::requests::Requests;
use ampl_core::mpi::Function;

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
    /// Finds the ways that calls come to their sites by, where paths do not tell sites apart.
    pub ways: Option<Box<Walker>>,
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
            ways: if thread.tells_ways() { Walker::of_ways() } else { None },
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

    /// Way by which the call made at `origin` has come to its site; `None` where it is to be [found](Self::new_way).
    #[inline(always)]
    pub fn known_way(&self, origin: Origin) -> Option<u8> {
        self.ways.as_ref().map_or(Some(0), |ways| ways.known_way(origin))
    }

    /// Way by which the call made at `origin` has come to its site.
    #[cold]
    pub fn new_way(&mut self, function: Function, origin: Origin) -> u8 {
        self.ways.as_mut().map_or(0, |ways| ways.way(&mut self.thread, function, origin))
    }

    /// Serves the calling thread from here on.
    pub fn move_to_this_thread(&mut self) {
        self.walker.iter_mut().chain(&mut self.ways).for_each(|walker| walker.move_to_this_thread());
    }
}

impl Entry {
    /// The thread's state; null before its first recorded call.
    #[inline(always)]
    pub fn state(&self) -> *mut ThreadState {
        self.thread.cast()
    }
}
