//! A process whose threads make random calls, as a program with MPI would, and the trace that must be read of them.

mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use ampl_agent::buffers::VARIES;
use ampl_agent::journal::{Identity, Journal};
use ampl_agent::repeats::{Given, Outcome};
use ampl_agent::requests::{Request, RequestTables, Requests};
use ampl_agent::shared::Shared;
use ampl_agent::thread::Span;
use ampl_agent::{CallEnd, Thread};
use ampl_core::config::Config;
use ampl_core::draw::Keep;
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::mpi::{Function, PREDEFINED, ids};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::args::{predefined_word, status_word};
use ampl_trace::places::{may_vary, other};
use ampl_trace::record::{CALL_ERROR, CALL_MISS};
use ampl_trace::request;
use ampl_trace::timing::Settings;
use proptest::prelude::*;

pub use read::check;

/// Threads of a process.
pub const THREADS: usize = 3;
/// Ranks of the job.
pub const RANKS: u32 = 64;
/// Buffers of the program.
const BUFFERS: u64 = 4;
const NULL: u64 = 0x2c00_0000;
const EXACT: Settings = Settings { error: 0.0, floor_ns: 0 };

/// A thread's next step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A send, maybe in vain.
    Send {
        tag: u64,
        site: u64,
        fails: bool,
        buffer: u64,
    },
    /// A call whose times are not stored.
    Receive,
    /// A poll that finds nothing.
    Poll {
        tag: u64,
    },
    /// A request is made.
    Make {
        tag: u64,
        site: u64,
        buffer: u64,
    },
    /// One of the live requests is waited for.
    Wait {
        which: usize,
    },
    /// So many of them are.
    WaitAll {
        most: usize,
    },
    /// A call that is only counted.
    Local,
    Pause,
    Resume,
    /// A window ends.
    Barrier,
    /// The oldest undecided window is kept, or not, or as drawn.
    Judge(Option<bool>),
}

/// Steps of the threads, with loops in loops.
pub fn program() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        8 => (0..4u64, 0..3u64, prop::bool::weighted(0.1), 0..BUFFERS)
            .prop_map(|(tag, site, fails, buffer)| Step::Send { tag, site, fails, buffer }),
        1 => Just(Step::Receive),
        3 => (0..2u64).prop_map(|tag| Step::Poll { tag }),
        6 => (0..2u64, 0..2u64, 0..BUFFERS)
            .prop_map(|(tag, site, buffer)| Step::Make { tag, site, buffer }),
        4 => (0..8usize).prop_map(|which| Step::Wait { which }),
        2 => (0..5usize).prop_map(|most| Step::WaitAll { most }),
        1 => Just(Step::Local),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        3 => Just(Step::Barrier),
        2 => prop::option::of(any::<bool>()).prop_map(Step::Judge),
    ];
    let leaf = (0..THREADS, step).prop_map(|step| vec![step]);
    let nested = leaf.prop_recursive(4, 64, 6, |inner| {
        let body = prop::collection::vec(inner, 1..6).prop_map(|parts| parts.concat());
        (body, 1..7usize).prop_map(|(body, times)| body.repeat(times))
    });
    prop::collection::vec(nested, 0..10).prop_map(|parts| {
        let mut steps = parts.concat();
        steps.truncate(1200);
        steps
    })
}

/// Values that differ on every rank, though the ranks do the same.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Where the program is loaded, at a page.
    pub base: u64,
    /// The first handle of a request, and from one to the next.
    pub handles: (u64, u64),
    /// True where the handle that was given back last is used first.
    pub last_first: bool,
    /// How likely a window is drawn.
    pub drawn: f64,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub struct Made {
    thread: usize,
    seq: u64,
    function: Function,
    offset: u64,
    flags: u8,
    /// The words that it must be decoded as, requests by their identity.
    words: Vec<u64>,
    recorded: bool,
    /// The requests that it has ended.
    ends: Vec<u64>,
    window: u64,
    start: u64,
    end: u64,
}

/// Requests of the threads, which are numbered from `first`.
fn requests(first: u32) -> Vec<Requests> {
    let tables = Arc::new(RequestTables::new(true));
    (first..).take(THREADS).map(|number| Requests::new(tables.clone(), number)).collect()
}

/// The process.
pub struct Process {
    pub shared: Arc<Shared>,
    pub threads: Vec<Thread>,
    look: Look,
    /// Live requests, as each thread has them.
    requests: Vec<Requests>,
    named: ampl_agent::call_requests::CallRequests,
    /// Identities and handles of the live ones.
    live: Vec<(u64, u64)>,
    free: Vec<u64>,
    /// Requests that there have been.
    identities: u64,
    sequence: [u64; THREADS],
    window: u64,
    judged: u64,
    /// Decisions about windows; a draw that holds counts as kept.
    pub decisions: BTreeMap<u64, bool>,
    paused: bool,
    now: u64,
    /// Calls that took the short way; `None` where none may.
    pub short: Option<u64>,
    /// All calls in their order.
    pub made: Vec<Made>,
}

impl Process {
    /// A process with that configuration beside marker and selection; times of `MPI_Recv` are not stored.
    pub fn new(after: bool, config: &str, look: Look) -> Self {
        let selection = if after { "retrospective" } else { "predictive" };
        let config = format!(
            "[sampling]\nselection = \"{selection}\"\n[window]\nmarker = \"mpi:MPI_Barrier\"\n\
             [[site]]\nmatch = \"MPI_Recv\"\ntrace = \"aggregate\"\n{config}"
        );
        let (config, _) = Config::parse(&config).expect("a valid configuration");
        let plan = Plan::new(config, RANKS).expect("ranks of the job");
        let identity = Identity { ranks: RANKS, ..Identity::default() };
        let journal = Arc::new(Journal::in_memory(&identity).expect("memory").unmeasured());
        let module = |address: u64| ("/bin/app".to_owned(), address & 0xfff);
        let shared = Arc::new(Shared::new(journal, plan, Rank(0), module));
        shared.direct(Directive {
            update: 1,
            first_window: WindowId(1),
            seed: 7,
            mechanism: ampl_core::config::Mechanism::Global,
            strata: vec![StratumDirective {
                group: 0,
                stratum: 0,
                size: 8,
                probability: look.drawn,
                policy: 1,
            }],
            divided: Vec::new(),
        });
        let thread = |number| Thread::new(shared.clone(), number as u32, 0).expect("room");
        let mut threads: Vec<Thread> = (0..THREADS).map(thread).collect();
        // Each lies where its word says.
        (0..BUFFERS).for_each(|buffer| threads[0].place(other(None, buffer), other(None, buffer)));
        Self {
            threads,
            shared: shared.clone(),
            look,
            requests: requests(0),
            named: Default::default(),
            live: Vec::new(),
            free: Vec::new(),
            identities: 0,
            sequence: [0; THREADS],
            window: 0,
            judged: 0,
            decisions: BTreeMap::new(),
            paused: false,
            now: 0,
            short: None,
            made: Vec::new(),
        }
    }

    /// From here on up to `most` windows gather before they are closed.
    #[allow(dead_code)] // Not every test that has this module does.
    pub fn gather(&mut self, most: usize) {
        self.threads.iter_mut().for_each(|thread| thread.gather_up_to(most));
    }

    /// From here on requests are made on threads whose numbers have no room in a request's.
    #[allow(dead_code)] // Not every test that has this module does.
    pub fn crowd(&mut self) {
        self.requests = requests(1 << 14);
    }

    /// The call of `function` at that site; `words` have the numbers of requests as [`Requests`] gives them.
    fn call(&mut self, thread: usize, function: Function, site: u64, flags: u8, words: &[u64], made: Called) {
        let address = self.look.base + 0x40 + 16 * site;
        self.now += 2 + site;
        let start = self.now;
        self.window += u64::from(function == ids::MPI_BARRIER);
        let state = &mut self.threads[thread];
        let may_be_short = self.short.is_some() && made.makes.is_none() && made.ends.is_empty();
        // Buffers are apart, as in memory.
        let raw = |&word: &u64| if may_vary(word) { word << 4 } else { word } as usize;
        let told: Vec<usize> = words.iter().map(raw).collect();
        let settled = if may_be_short {
            state.may_begin_shortly(function, address, told.first().copied().unwrap_or(0))
        } else {
            None
        };
        let begun_shortly = settled.filter(|_| state.begin_shortly(function, start));
        if begun_shortly.is_none() {
            state.enter(function, address, start);
        }
        let given = Given { function, flags, address, generation: 0, words: &told, value: None };
        let tells = may_be_short && flags & CALL_ERROR == 0;
        if let (Some(site), true) = (begun_shortly, tells) {
            // As long as any call; the whole way finds the same.
            let end = self.now + 1 + self.now % 5;
            let span = Span { start, end, timed: true, apart: false };
            let outcome = state.foresee(site, &given, &span);
            if outcome.is_some_and(|outcome| state.leave_shortly(site, flags, &outcome, &span)) {
                self.short = self.short.map(|calls| calls + 1);
                self.now = end;
                let shown = made.shown.unwrap_or_else(|| words.to_vec());
                return self.note(thread, (function, flags, address), shown, true, Vec::new(), (start, end));
            }
        }
        let mut terminal = None;
        let places: Vec<u64> = words.iter().copied().filter(|&word| may_vary(word)).collect();
        let marked: Vec<u64> = words.iter().map(|&word| if may_vary(word) { VARIES } else { word }).collect();
        let tells = tells && state.records();
        if let Some(outcome) = tells.then(|| state.repeated(&given)).flatten() {
            terminal = Some(outcome.terminal);
        } else if state.records() {
            terminal = state.terminal(function, address, flags, &marked, &places);
            if let (Some(terminal), true) = (terminal, tells) {
                state.repeats(&given, &Outcome { terminal, sent: 0, received: 0 });
            }
        }
        let mut shown = made.shown.unwrap_or_else(|| words.to_vec());
        if let Some(handle) = made.makes {
            let maker = terminal.map(|terminal| terminal.number);
            let slot = request::told(self.requests[thread].make(handle, Request::default(), maker));
            let (told, others) = marked.split_last().expect("the request");
            assert_eq!(*told, 0);
            if terminal.is_some() && slot > 0 {
                terminal = state.terminal(function, address, flags, &[others, &[slot]].concat(), &places);
            }
            self.identities += 1;
            self.live.push((self.identities, handle));
            *shown.last_mut().expect("the request") = self.identities;
        }
        let mut ends = Vec::new();
        for (element, handle) in made.ends.into_iter().enumerate() {
            self.requests[thread].end(self.named.places()[element], handle);
            let at = self.live.iter().position(|&(_, live)| live == handle).expect("a live request");
            ends.push(self.live.remove(at).0);
            self.free.push(handle);
        }
        self.requests[thread].give_back(&mut self.named);
        self.now += 1 + self.now % 5;
        let (end, timed) = (self.now, true);
        state.leave(&CallEnd {
            function,
            address,
            start,
            end,
            sent: 0,
            received: 0,
            flags,
            terminal,
            timed,
            apart: false,
        });
        let recorded = terminal.is_some();
        self.note(thread, (function, flags, address), shown, recorded, ends, (start, end));
    }

    /// Notes a call that has been made.
    fn note(
        &mut self,
        thread: usize,
        (function, flags, address): (Function, u8, u64),
        words: Vec<u64>,
        recorded: bool,
        ends: Vec<u64>,
        (start, end): (u64, u64),
    ) {
        self.made.push(Made {
            thread,
            seq: self.sequence[thread],
            function,
            offset: address - self.look.base,
            flags,
            words,
            recorded,
            ends,
            window: self.window,
            start,
            end,
        });
        self.sequence[thread] += 1;
    }

    fn handle(&mut self) -> u64 {
        let next = self.look.handles.0 + self.look.handles.1 * (self.live.len() + self.free.len()) as u64;
        match self.free.is_empty() {
            true => next,
            false if self.look.last_first => self.free.pop().expect("one"),
            false => self.free.remove(0),
        }
    }

    /// Does `step` on `thread`.
    pub fn step(&mut self, thread: usize, step: Step) {
        let world = predefined("MPI_COMM_WORLD");
        let (null, byte) = (predefined("MPI_REQUEST_NULL"), predefined("MPI_BYTE"));
        match step {
            Step::Send { tag, site, fails, buffer } => {
                let words = [13, other(None, buffer), 1, byte, 0, tag, world];
                let (flags, words) = if fails { (CALL_ERROR, &words[..]) } else { (0, &words[1..]) };
                self.call(thread, ids::MPI_SEND, site, flags, words, Called::default());
            }
            Step::Receive => {
                let words = [0x1000, 1, byte, 0, 3, world, status_word(0, 3)];
                self.call(thread, ids::MPI_RECV, 7, 0, &words, Called::default());
            }
            Step::Poll { tag } => {
                self.call(thread, ids::MPI_IPROBE, 8, CALL_MISS, &[0, tag, world], Called::default());
            }
            Step::Make { tag, site, buffer } => {
                let words = [other(None, buffer), 1, byte, 0, tag, world, 0];
                let makes = Some(self.handle());
                self.call(thread, ids::MPI_ISEND, site, 0, &words, Called { makes, ..Called::default() });
            }
            Step::Wait { which } => {
                let Some(&(identity, handle)) = self.live.get(which % self.live.len().max(1)) else { return };
                self.requests[thread].name(&[handle], (NULL, null), true, &mut self.named);
                let words = [self.named.words()[0], null, status_word(-1, -1)];
                let shown = Some([&[identity], &words[1..]].concat());
                let called = Called { shown, ends: vec![handle], ..Called::default() };
                self.call(thread, ids::MPI_WAIT, 9, 0, &words, called);
            }
            Step::WaitAll { most } => {
                let (identities, handles): (Vec<u64>, Vec<u64>) =
                    self.live.iter().rev().take(most).copied().unzip();
                self.requests[thread].name(&handles, (NULL, null), true, &mut self.named);
                let numbers = self.named.words().to_vec();
                let count = handles.len() as u64;
                let words = |requests: &[u64]| {
                    let nulls = vec![null; requests.len()];
                    let statuses = vec![status_word(-1, -1); requests.len()];
                    [&[count, count], requests, &[count], &nulls, &[count], &statuses].concat()
                };
                let called = Called { shown: Some(words(&identities)), ends: handles, ..Called::default() };
                self.call(thread, ids::MPI_WAITALL, 10, 0, &words(&numbers), called);
            }
            Step::Local => {
                self.now += 1;
                self.threads[thread].local(ids::MPI_COMM_RANK, self.look.base + 0x400, self.now);
                self.sequence[thread] += 1;
            }
            Step::Pause | Step::Resume => {
                self.now += 1;
                self.paused = matches!(step, Step::Pause);
                self.threads[thread].control(i32::from(!self.paused), self.now);
            }
            Step::Barrier => {
                self.call(thread, ids::MPI_BARRIER, 11, 0, &[world], Called::default());
            }
            Step::Judge(keep) => {
                if self.judged < self.window {
                    let decided = keep.map(|kept| (Keep { kept, probability: 0.5 }, 1));
                    // Windows are decided only after they are reported.
                    self.threads[0].close_gathered();
                    self.threads[0].judged(WindowId(self.judged), decided);
                    self.decisions.insert(self.judged, keep.unwrap_or(true));
                    self.judged += 1;
                }
            }
        }
    }

    /// The end of the run, as it is brought home.
    pub fn finish(&mut self) {
        self.now += 5;
        for thread in &mut self.threads[1..] {
            thread.hand_over();
        }
        self.threads[0].finish(self.now);
        self.threads.iter_mut().for_each(Thread::finish_structure);
        self.shared.journal.mark_finalized();
    }

    /// The journal as it is now.
    pub fn bytes(&self) -> Vec<u8> {
        self.shared.journal.contents().expect("a readable journal").bytes().to_vec()
    }
}

/// Effect of a call on requests.
#[derive(Default)]
struct Called {
    /// Words as they must be read, where they differ from the recorded ones.
    shown: Option<Vec<u64>>,
    makes: Option<u64>,
    ends: Vec<u64>,
}

/// The word of the predefined object of that name.
pub fn predefined(name: &str) -> u64 {
    let index = PREDEFINED.iter().position(|&(_, have)| have == name);
    predefined_word(index.unwrap_or_else(|| panic!("{name}")) as u16)
}
