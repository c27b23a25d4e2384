//! Instances of collectives: calls of all ranks of a communicator with the same ordinal.

use rustc_hash::FxHashMap;

use super::At;
use super::collectives::Needs;

/// Number of an instance.
pub type InstanceId = u32;

/// Key of an instance: communicator, 0 or one more than the ordinal of a persistent constructor, ordinal.
pub type Key = (u32, u64, u64);

/// A rank's call of a collective.
#[derive(Clone, Debug)]
pub struct Arrival<S> {
    /// Thread, by its number in the job.
    pub actor: u32,
    /// The call that begins it.
    pub at: At,
    /// Terminal that has its arguments: of a persistent one, of its constructor.
    pub arguments: u32,
    /// State of the thread when it arrived.
    pub stamp: S,
    /// True where the call itself waits.
    pub blocking: bool,
}

/// An instance.
#[derive(Clone, Debug)]
pub struct Instance<S> {
    /// Key.
    pub key: Key,
    /// Ranks of the communicator.
    pub size: u32,
    /// Arrivals in no order.
    pub arrivals: Vec<Arrival<S>>,
    /// The root, a rank of the world.
    pub root: Option<u32>,
    /// Latest of all stamps.
    pub latest: S,
    /// True once nobody else can arrive.
    pub complete: bool,
    /// Threads that wait.
    pub waiting: Vec<u32>,
    /// Arrivals whose ranks have not left it.
    unfinished: u32,
}

/// Instances that are not complete, or that some rank has not left.
#[derive(Debug)]
pub struct Instances<S> {
    open: Vec<Option<Instance<S>>>,
    free: Vec<InstanceId>,
    by_key: FxHashMap<Key, InstanceId>,
    /// Number of collectives by rank and communicator.
    counts: FxHashMap<(u32, u32), u64>,
}

impl<S> Default for Instances<S> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            counts: FxHashMap::default(),
        }
    }
}

impl<S> Instances<S> {
    /// The ordinal of the next collective of `rank` on a communicator.
    pub fn ordinal(&mut self, rank: u32, comm: u32) -> u64 {
        let count = self.counts.entry((rank, comm)).or_default();
        *count += 1;
        *count - 1
    }

    /// The instance of that number.
    pub fn get(&self, id: InstanceId) -> &Instance<S> {
        self.open[id as usize].as_ref().expect("an instance lives until all have left it")
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, id: InstanceId) -> &mut Instance<S> {
        self.open[id as usize].as_mut().expect("an instance lives until all have left it")
    }

    /// Adds an arrival; `latest` takes over its stamp.
    pub fn arrive(
        &mut self,
        key: Key,
        size: u32,
        arrival: Arrival<S>,
        latest: impl FnOnce(&mut S, &S),
    ) -> InstanceId
    where
        S: Clone,
    {
        let id = match self.by_key.get(&key) {
            Some(&id) => id,
            None => {
                let new = Instance {
                    key,
                    size,
                    arrivals: Vec::new(),
                    root: None,
                    latest: arrival.stamp.clone(),
                    complete: false,
                    waiting: Vec::new(),
                    unfinished: 0,
                };
                let id = match self.free.pop() {
                    Some(free) => {
                        self.open[free as usize] = Some(new);
                        free
                    }
                    None => {
                        self.open.push(Some(new));
                        self.open.len() as InstanceId - 1
                    }
                };
                self.by_key.insert(key, id);
                id
            }
        };
        let instance = self.get_mut(id);
        latest(&mut instance.latest, &arrival.stamp);
        instance.arrivals.push(arrival);
        instance.unfinished += 1;
        id
    }

    /// Marks an instance complete: a further arrival begins another.
    pub fn complete(&mut self, id: InstanceId) {
        let instance = self.get_mut(id);
        instance.complete = true;
        let key = instance.key;
        self.by_key.remove(&key);
        self.drop_unused(id);
    }

    /// One rank has left it.
    pub fn leave(&mut self, id: InstanceId) {
        let instance = self.get_mut(id);
        instance.unfinished = instance.unfinished.saturating_sub(1);
        self.drop_unused(id);
    }

    fn drop_unused(&mut self, id: InstanceId) {
        if self.open[id as usize].as_ref().is_some_and(|own| own.complete && own.unfinished == 0) {
            self.open[id as usize] = None;
            self.free.push(id);
        }
    }

    /// Instances that are not complete.
    pub fn incomplete(&self) -> impl Iterator<Item = (InstanceId, &Instance<S>)> {
        let all = (0..).zip(&self.open).filter_map(|(id, own)| Some((id, own.as_ref()?)));
        all.filter(|(_, own)| !own.complete)
    }
}

impl<S> Instance<S> {
    /// True where the rank `own` has arrived.
    pub fn has(&self, own: u32) -> bool {
        self.arrivals.iter().any(|arrival| arrival.at.rank == own)
    }

    /// True where a rank that needs those may leave it; `lower` has the ranks below it.
    pub fn lets_go(&self, own: u32, needs: Needs, lower: impl Fn(u32) -> bool, lost: &[bool]) -> bool {
        if self.complete {
            return true;
        }
        match needs {
            Needs::Others => true,
            Needs::All => false,
            Needs::RootNeedsAll => self.root.is_some_and(|root| root != own),
            Needs::Root => match self.root {
                Some(root) => {
                    root == own || self.has(root) || lost.get(root as usize).is_some_and(|&lost| lost)
                }
                None => true,
            },
            Needs::Lower => lower(own),
        }
    }
}
