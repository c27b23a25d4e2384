//! Sources and tags of nonblocking receives from any source or with any tag, from the calls that complete them.

use std::collections::VecDeque;

use ampl_trace::steps::{Step, Steps};
use rustc_hash::{FxHashMap, FxHashSet};

use super::acts::{Act, Begin, Receive, Terminal, gap_matters};

/// Most receives between a receive and its completion.
const FARTHEST: usize = 1 << 18;

/// Source and tag.
type Envelope = Option<(i64, i64)>;

/// Reads a thread ahead of its matching.
#[derive(Debug)]
pub struct Ahead<'a> {
    steps: Option<Steps<'a>>,
    /// Numbers of active receives by request.
    active: FxHashMap<u64, u64>,
    /// Persistent receives.
    persistent: FxHashSet<u64>,
    /// Receives from the number `first` on: the outer `None` where they are not complete.
    found: VecDeque<Option<Envelope>>,
    first: u64,
}

/// The receive of a call whose source or tag is told by its completion.
fn open(begin: &Begin) -> Option<&Receive> {
    match begin {
        Begin::Receive(receive) | Begin::Both(_, receive) => {
            Some(receive).filter(|receive| receive.is_open())
        }
        _ => None,
    }
}

/// True where a thread with these `terminals` has such receives.
pub fn is_needed(terminals: &[Terminal]) -> bool {
    let opens = |terminal: &Terminal| match &terminal.act {
        Act::Immediate(begin, _) | Act::Prepare(begin, _) => open(begin).is_some(),
        _ => false,
    };
    terminals.iter().any(opens)
}

impl<'a> Ahead<'a> {
    /// A reader of the thread with these steps.
    pub fn new(steps: Steps<'a>) -> Self {
        Self {
            steps: Some(steps),
            active: FxHashMap::default(),
            persistent: FxHashSet::default(),
            found: VecDeque::new(),
            first: 0,
        }
    }

    /// Source and tag of the next receive, in the order in which they are posted; `None` where they are not known.
    pub fn next(&mut self, terminals: &[Terminal]) -> Envelope {
        while self.found.front().is_none_or(Option::is_none) && self.found.len() < FARTHEST {
            let Some(step) = self.steps.as_mut().and_then(Iterator::next) else { break };
            self.read(&step, terminals);
        }
        self.first += 1;
        self.found.pop_front().flatten().flatten()
    }

    fn post(&mut self, request: u64) {
        self.active.insert(request, self.first + self.found.len() as u64);
        self.found.push_back(None);
    }

    fn complete(&mut self, request: u64, told: Envelope) {
        let number = self.active.remove(&request).and_then(|number| number.checked_sub(self.first));
        if let Some(found) = number.and_then(|at| self.found.get_mut(at as usize)) {
            *found = Some(told);
        }
    }

    fn read(&mut self, step: &Step, terminals: &[Terminal]) {
        let (terminal, count) = match step {
            Step::Gap(gap) => {
                if gap_matters(gap) {
                    self.steps = None;
                }
                return;
            }
            Step::Calls { terminal, count, .. } => (&terminals[*terminal as usize], *count),
        };
        match &terminal.act {
            Act::Unknown => self.steps = None,
            Act::Immediate(begin, request) if open(begin).is_some() => {
                (0..count).for_each(|_| self.post(*request));
            }
            Act::Prepare(begin, request) => {
                match open(begin) {
                    Some(_) => self.persistent.insert(*request),
                    None => self.persistent.remove(request),
                };
            }
            Act::Start(requests) if !self.persistent.is_empty() => {
                for request in requests.iter().filter(|request| self.persistent.contains(request)).copied() {
                    self.active.insert(request, self.first + self.found.len() as u64);
                    self.found.push_back(None);
                }
            }
            Act::Complete(requests) if !self.active.is_empty() => {
                requests.iter().for_each(|one| self.complete(one.request, one.told));
            }
            Act::Free(request) => self.complete(*request, None),
            _ => {}
        }
    }
}
