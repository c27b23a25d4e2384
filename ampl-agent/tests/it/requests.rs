//! Threads that make requests, hand them to each other and complete them, all at once, with handles that are used again
//! at once: every call names those that the program gave it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use ampl_agent::call_requests::CallRequests;
use ampl_agent::requests::{Request, RequestTables, Requests};

const THREADS: usize = 4;
const STEPS: u64 = 20_000;
const NULL: (u64, u64) = (0, 7);

/// Source of handles: the last given up first, as MPI does.
#[derive(Debug, Default)]
struct Mpi {
    free: Mutex<Vec<u64>>,
    given: AtomicU64,
}

impl Mpi {
    fn handle(&self) -> u64 {
        let free = self.free.lock().unwrap().pop();
        free.unwrap_or_else(|| 0x1000 + 64 * self.given.fetch_add(1, Ordering::Relaxed))
    }

    fn reclaim(&self, handles: &[u64]) {
        self.free.lock().unwrap().extend_from_slice(handles);
    }
}

/// A request as the program has it: its handle, and its name when it was made.
type Made = (u64, u64);

/// The thread's next random number.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed >> 16
}

struct Program {
    requests: Requests,
    named: CallRequests,
    /// Requests that it has made, or was handed.
    has: Vec<Made>,
    inbox: Receiver<Made>,
    outboxes: Vec<Sender<Made>>,
    mpi: Arc<Mpi>,
    names: Arc<Mutex<HashSet<u64>>>,
}

impl Program {
    fn make(&mut self, terminal: u32) {
        let handle = self.mpi.handle();
        let number = self.requests.make(handle, Request::default(), Some(terminal));
        assert!(self.names.lock().unwrap().insert(number), "{number:#x} is another's name");
        self.has.push((handle, number));
    }

    /// A call that names the thread's requests from `from` on and completes the first `ends` of them.
    fn call(&mut self, from: usize, ends: usize) {
        let (handles, numbers): (Vec<u64>, Vec<u64>) = self.has[from..].iter().copied().unzip();
        self.requests.name(&handles, NULL, true, &mut self.named);
        assert_eq!(self.named.words(), numbers);
        for number in &numbers[..ends] {
            self.names.lock().unwrap().remove(number);
        }
        // Inside of MPI: from here on others may get these handles.
        self.mpi.reclaim(&handles[..ends]);
        if ends % 2 == 1 {
            thread::yield_now();
        }
        for (&place, &handle) in self.named.places()[..ends].iter().zip(&handles) {
            self.requests.end(place, handle);
        }
        self.requests.give_back(&mut self.named);
        self.has.drain(from..from + ends);
    }

    fn run(mut self, mut seed: u64, hands_over: bool) -> Self {
        for _ in 0..STEPS {
            self.has.extend(self.inbox.try_iter());
            match next(&mut seed) % 8 {
                0..3 => self.make((next(&mut seed) % 3) as u32),
                3 | 4 if hands_over => {
                    let to = next(&mut seed) as usize % THREADS;
                    if let Some(made) = self.has.pop() {
                        self.outboxes[to].send(made).unwrap();
                    }
                }
                _ => {
                    let from = self.has.len().saturating_sub(next(&mut seed) as usize % 6);
                    let ends = (self.has.len() - from).min(next(&mut seed) as usize % 6);
                    self.call(from, ends);
                }
            }
            if self.has.len() > 200 {
                self.call(0, 150);
            }
        }
        self
    }
}

fn run(hands_over: bool) {
    let (tables, mpi) = (Arc::new(RequestTables::new(true)), Arc::new(Mpi::default()));
    let names = Arc::default();
    let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let program = |(number, inbox)| Program {
        requests: Requests::new(tables.clone(), number as u32),
        named: CallRequests::default(),
        has: Vec::new(),
        inbox,
        outboxes: outboxes.clone(),
        mpi: mpi.clone(),
        names: Arc::clone(&names),
    };
    let programs: Vec<Program> = inboxes.into_iter().enumerate().map(program).collect();
    let mut ended: Vec<Program> = thread::scope(|scope| {
        let running = (1..)
            .zip(programs)
            .map(|(seed, program)| scope.spawn(move || program.run(0x9E37_79B9 * seed, hands_over)));
        running.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for program in &mut ended {
        program.has.extend(program.inbox.try_iter());
        program.call(0, program.has.len());
    }
    assert!(names.lock().unwrap().is_empty());
    assert!(ended.iter_mut().all(|program| program.requests.is_empty()));
}

#[test]
fn threads_that_complete_what_they_have_made() {
    run(false);
}

#[test]
fn threads_that_complete_what_any_of_them_has_made() {
    run(true);
}
