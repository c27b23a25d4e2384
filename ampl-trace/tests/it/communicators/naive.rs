//! A job whose ranks make communicators by chance: a global model knows all their members.

use super::*;
use std::cell::RefCell;

mod told;

/// A communicator as the model has it.
#[derive(Clone, Debug)]
pub struct Comm {
    pub function: &'static str,
    pub first: Vec<u32>,
    pub second: Option<Vec<u32>>,
    dims: Option<Vec<u32>>,
}

impl Comm {
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.first.iter().chain(self.second.iter().flatten()).copied()
    }
}

/// Communicators that ranks should find.
#[derive(Debug)]
pub struct Truth {
    pub comms: Vec<Comm>,
    /// Communicators that each rank makes, in its order.
    pub made: Vec<Vec<usize>>,
    /// Communicators that are made, and that barriers name; `None` is the world.
    pub named: Vec<Vec<Option<usize>>>,
}

/// A recorded call: function, words, and which communicator a reader should name, if any.
type Record = (&'static str, Vec<u64>, Option<Option<usize>>);

#[derive(Debug, Default)]
struct Rank {
    calls: Vec<Record>,
    /// Words in use, of communicators and groups.
    used: [BTreeSet<u64>; 2],
    words: HashMap<usize, u64>,
}

impl Rank {
    fn word(&mut self, kind: usize) -> u64 {
        let word = (1..).find(|word| !self.used[kind].contains(word)).unwrap();
        self.used[kind].insert(word);
        word
    }
}

/// A call that is not recorded, or the first of all that are not.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    pub rank: u32,
    index: usize,
    pub all_behind: bool,
}

#[derive(Debug)]
pub struct Model {
    random: RefCell<ChaCha8Rng>,
    ranks: Vec<Rank>,
    comms: Vec<Comm>,
    live: Vec<usize>,
}

fn named(name: &str) -> u64 {
    use ampl_core::{mpi::predefined_index, value::ObjectKind};
    let kind = if name.contains("GROUP") { ObjectKind::Group } else { ObjectKind::Comm };
    let kind = if name.contains("INFO") { ObjectKind::Info } else { kind };
    ampl_trace::args::predefined_word(predefined_index(kind, name).unwrap())
}

/// Ranks of a host.
const HOST: u32 = 3;
/// Way to make a group that a reader cannot follow.
pub const UNTOLD: u32 = 3;

impl Model {
    pub fn new(seed: u64, ranks: u32) -> Self {
        Self {
            random: RefCell::new(ChaCha8Rng::seed_from_u64(seed)),
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            comms: Vec::new(),
            live: Vec::new(),
        }
    }

    fn below(&self, limit: u32) -> u32 {
        self.random.borrow_mut().random_range(0..limit)
    }

    fn shuffled<T: Clone>(&self, all: &[T]) -> Vec<T> {
        let mut all = all.to_vec();
        all.shuffle(&mut *self.random.borrow_mut());
        all
    }

    fn get(&self, comm: Option<usize>) -> Comm {
        comm.map_or_else(
            || Comm { function: "", first: (0..self.ranks.len() as u32).collect(), second: None, dims: None },
            |comm| self.comms[comm].clone(),
        )
    }

    fn word(&self, rank: u32, comm: Option<usize>) -> u64 {
        comm.map_or_else(|| named("MPI_COMM_WORLD"), |comm| self.ranks[rank as usize].words[&comm])
    }

    fn call(&mut self, rank: u32, function: &'static str, words: Vec<u64>) {
        self.ranks[rank as usize].calls.push((function, words, None));
    }

    /// `rank` makes `comm`, or nothing, by those words.
    fn make(&mut self, rank: u32, function: &'static str, mut words: Vec<u64>, comm: Option<usize>) {
        let own = &mut self.ranks[rank as usize];
        let word = comm.map_or_else(|| named("MPI_COMM_NULL"), |_| own.word(0));
        words.push(word);
        if function.contains("idup") {
            words.push(0);
        }
        if let Some(comm) = comm {
            own.words.insert(comm, word);
        }
        own.calls.push((function, words, comm.map(Some)));
    }

    /// `rank` makes a group.
    fn group(&mut self, rank: u32, function: &'static str, mut words: Vec<u64>, empty: bool) -> u64 {
        let own = &mut self.ranks[rank as usize];
        let word = if empty { named("MPI_GROUP_EMPTY") } else { own.word(1) };
        words.push(word);
        own.calls.push((function, words, None));
        word
    }

    fn free_group(&mut self, rank: u32, group: u64) {
        self.ranks[rank as usize].used[1].remove(&group);
        self.call(rank, "MPI_Group_free", vec![group, named("MPI_GROUP_NULL")]);
    }

    fn add(&mut self, function: &'static str, first: Vec<u32>, second: Option<Vec<u32>>) -> usize {
        self.comms.push(Comm { function, first, second, dims: None });
        self.live.push(self.comms.len() - 1);
        self.comms.len() - 1
    }

    /// Ranks of a communicator ask for their numbers.
    fn ask(&mut self, comm: usize) {
        let Comm { first, second, .. } = self.get(Some(comm));
        for side in [Some(first), second].into_iter().flatten() {
            for (number, &rank) in side.iter().enumerate() {
                let word = self.word(rank, Some(comm));
                self.call(rank, "MPI_Comm_rank", vec![word, number as u64]);
                self.call(rank, "MPI_Comm_size", vec![word, side.len() as u64]);
            }
        }
    }

    pub fn use_it(&mut self, comm: usize) {
        for rank in self.get(Some(comm)).all().collect::<Vec<_>>() {
            let word = self.word(rank, Some(comm));
            self.ranks[rank as usize].calls.push(("MPI_Barrier", vec![word], Some(Some(comm))));
        }
    }

    pub fn free(&mut self, comm: usize) {
        self.live.retain(|&live| live != comm);
        for rank in self.get(Some(comm)).all().collect::<Vec<_>>() {
            let own = &mut self.ranks[rank as usize];
            let word = own.words.remove(&comm).unwrap();
            own.used[0].remove(&word);
            self.call(rank, "MPI_Comm_free", vec![word, named("MPI_COMM_NULL")]);
        }
    }

    /// All ranks of `parent` make `parts`: each rank's words, and the communicators that result.
    fn collective(
        &mut self,
        function: &'static str,
        parent: Option<usize>,
        words: impl Fn(u32) -> Vec<u64>,
        parts: Vec<(Vec<u32>, Option<Vec<u32>>)>,
    ) -> Vec<usize> {
        let made: Vec<usize> =
            parts.into_iter().map(|(first, second)| self.add(function, first, second)).collect();
        for rank in self.get(parent).all().collect::<Vec<_>>() {
            let comm = made.iter().copied().find(|&comm| self.comms[comm].all().any(|other| other == rank));
            let words = [vec![self.word(rank, parent)], words(rank)].concat();
            self.make(rank, function, words, comm);
        }
        made
    }

    pub fn dup(&mut self, parent: Option<usize>) -> usize {
        let functions = ["MPI_Comm_dup", "MPI_Comm_idup", "MPI_Comm_dup_with_info"];
        let function = functions[self.below(3) as usize];
        let info = if function.ends_with("info") { vec![named("MPI_INFO_NULL")] } else { Vec::new() };
        let Comm { first, second, dims, .. } = self.get(parent);
        let made = self.collective(function, parent, |_| info.clone(), vec![(first, second)])[0];
        self.comms[made].dims = dims;
        made
    }

    fn split(&mut self, parent: Option<usize>) {
        let Comm { first, second, .. } = self.get(parent);
        let all: Vec<u32> = first.iter().chain(second.iter().flatten()).copied().collect();
        let chosen: HashMap<u32, (u32, i64)> =
            all.iter().map(|&rank| (rank, (self.below(4), i64::from(self.below(5)) - 2))).collect();
        let side = |side: &[u32], colour| {
            let mut mine: Vec<u32> = side.iter().copied().filter(|rank| chosen[rank].0 == colour).collect();
            mine.sort_by_key(|rank| chosen[rank].1);
            mine
        };
        // The last colour is `MPI_UNDEFINED`.
        let parts = (0..3).map(|colour| (side(&first, colour), second.as_ref().map(|it| side(it, colour))));
        let whole = |(first, second): &(Vec<u32>, Option<Vec<u32>>)| {
            !first.is_empty() && second.as_ref().is_none_or(|second| !second.is_empty())
        };
        let parts = parts.filter(whole).collect();
        let words = |rank: u32| {
            let (colour, key) = chosen[&rank];
            vec![if colour == 3 { UNDEFINED as u64 } else { colour.into() }, key as u64]
        };
        self.collective("MPI_Comm_split", parent, words, parts);
    }

    fn shared(&mut self, parent: Option<usize>) {
        let Comm { first, .. } = self.get(parent);
        let hosts: BTreeSet<u32> = first.iter().map(|&rank| rank / HOST).collect();
        let of = |of: u32| {
            let mut mine: Vec<u32> = first.iter().copied().filter(|&rank| rank / HOST == of).collect();
            mine.reverse();
            (mine, None)
        };
        let key = |rank: u32| first.iter().position(|&other| other == rank).unwrap() as i64;
        let words = |rank: u32| vec![1, -key(rank) as u64, named("MPI_INFO_NULL")];
        let made = self.collective("MPI_Comm_split_type", parent, words, hosts.into_iter().map(of).collect());
        made.into_iter().for_each(|comm| self.ask(comm));
    }

    /// The group of some ranks of `parent`, in one of the ways to make it; groups to be freed.
    fn some(&mut self, rank: u32, parent: Option<usize>, chosen: &[u32], way: u32) -> Vec<u64> {
        let Comm { first, .. } = self.get(parent);
        let place = |rank: &u32| first.iter().position(|other| other == rank).unwrap() as u64;
        let places: Vec<u64> = chosen.iter().map(place).collect();
        let word = self.word(rank, parent);
        let whole = self.group(rank, "MPI_Comm_group", vec![word], false);
        let list = |places: &[u64]| [&[places.len() as u64, places.len() as u64][..], places].concat();
        let ranges = |places: &[u64]| {
            let all: Vec<u64> = places.iter().flat_map(|&place| [place, place, 1]).collect();
            [vec![places.len() as u64, all.len() as u64], all].concat()
        };
        let mut groups = vec![whole];
        match way {
            0 => {
                let words = [vec![whole], list(&places)].concat();
                groups.push(self.group(rank, "MPI_Group_incl", words, places.is_empty()));
            }
            1 => {
                let words = [vec![whole], ranges(&places)].concat();
                groups.push(self.group(rank, "MPI_Group_range_incl", words, places.is_empty()));
            }
            // The group of a window, whose members calls do not determine.
            UNTOLD => groups.push(self.group(rank, "MPI_Win_get_group", vec![1], places.is_empty())),
            _ => {
                let (left, right) = places.split_at(places.len() / 2);
                let one = [vec![whole], list(left)].concat();
                let one = self.group(rank, "MPI_Group_incl", one, left.is_empty());
                let other = [vec![whole], list(right)].concat();
                let other = self.group(rank, "MPI_Group_incl", other, right.is_empty());
                groups.extend([one, other]);
                groups.push(self.group(rank, "MPI_Group_union", vec![one, other], places.is_empty()));
            }
        }
        groups
    }

    fn create(&mut self, parent: Option<usize>) {
        let Comm { first, .. } = self.get(parent);
        let chosen = self.shuffled(&first);
        let cut = self.below(first.len() as u32 + 1) as usize;
        let (left, rest) = chosen.split_at(cut);
        let (right, _) = rest.split_at(self.below(rest.len() as u32 + 1) as usize);
        let parts = [left, right].map(<[u32]>::to_vec);
        let way = self.below(3);
        let mut passed = HashMap::new();
        let mut used = Vec::new();
        for &rank in &first {
            let own = parts.iter().find(|part| part.contains(&rank)).cloned().unwrap_or_default();
            let groups = self.some(rank, parent, &own, way);
            passed.insert(rank, *groups.last().unwrap());
            used.push((rank, groups));
        }
        let whole = parts.into_iter().filter(|part| !part.is_empty()).map(|part| (part, None)).collect();
        self.collective("MPI_Comm_create", parent, |rank| vec![passed[&rank]], whole);
        self.give_back(used);
    }

    fn give_back(&mut self, used: Vec<(u32, Vec<u64>)>) {
        let empty = named("MPI_GROUP_EMPTY");
        for (rank, groups) in used {
            let made = groups.into_iter().filter(|&group| group != empty);
            made.for_each(|group| self.free_group(rank, group));
        }
    }

    fn create_group(&mut self, parent: Option<usize>) {
        let Comm { first, .. } = self.get(parent);
        let chosen = self.shuffled(&first);
        let chosen = chosen[..=self.below(first.len() as u32) as usize].to_vec();
        let (tag, way) = (u64::from(self.below(2)), self.below(3));
        self.create_group_of(parent, &chosen, tag, |_| way);
    }

    /// The ranks of a group, which each gets in a way of its own, make a communicator.
    pub fn create_group_of(
        &mut self,
        parent: Option<usize>,
        chosen: &[u32],
        tag: u64,
        way: impl Fn(u32) -> u32,
    ) -> usize {
        let comm = self.add("MPI_Comm_create_group", chosen.to_vec(), None);
        for &rank in chosen {
            let groups = self.some(rank, parent, chosen, way(rank));
            let words = vec![self.word(rank, parent), *groups.last().unwrap(), tag];
            self.make(rank, "MPI_Comm_create_group", words, Some(comm));
            self.give_back(vec![(rank, groups)]);
        }
        comm
    }

    fn cart(&mut self, parent: Option<usize>) {
        let Comm { first, .. } = self.get(parent);
        let rows = 1 + self.below(first.len() as u32);
        let columns = 1 + self.below(first.len() as u32 / rows);
        let reorder = self.below(2);
        let mut mine = first[..(rows * columns) as usize].to_vec();
        if reorder > 0 {
            mine = self.shuffled(&first)[..mine.len()].to_vec();
        }
        let words = |_| {
            let [rows, columns, reorder] = [rows, columns, reorder].map(u64::from);
            vec![2, 2, rows, columns, 2, 0, 1, reorder]
        };
        let made = self.collective("MPI_Cart_create", parent, words, vec![(mine, None)])[0];
        self.comms[made].dims = Some(vec![rows, columns]);
        if reorder > 0 {
            self.ask(made);
        }
    }

    fn sub(&mut self, parent: usize) {
        let Comm { first, dims, .. } = self.get(Some(parent));
        let dims = dims.unwrap();
        let keep: Vec<bool> = dims.iter().map(|_| self.below(2) > 0).collect();
        let coordinates = |place: usize| {
            let mut rest = place as u32;
            let mut all: Vec<u32> = Vec::new();
            for &extent in dims.iter().rev() {
                all.insert(0, rest % extent);
                rest /= extent;
            }
            all
        };
        let mut parts: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for (place, &rank) in first.iter().enumerate() {
            let fixed = coordinates(place).into_iter().zip(&keep).filter(|(_, keep)| !**keep);
            parts.entry(fixed.map(|(at, _)| at).collect()).or_default().push(rank);
        }
        let flags: Vec<u64> = keep.iter().map(|&keep| keep.into()).collect();
        let words = |_| [vec![flags.len() as u64], flags.clone()].concat();
        let parts = parts.into_values().map(|part| (part, None)).collect();
        for made in self.collective("MPI_Cart_sub", Some(parent), words, parts) {
            let kept = dims.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(&extent, _)| extent);
            self.comms[made].dims = Some(kept.collect());
        }
    }

    /// Two groups without a rank in common, in a third communicator: one between them.
    fn between(&mut self) {
        let disjoint = |one: usize, other: usize| {
            let (one, other) = (&self.comms[one], &self.comms[other]);
            let apart = one.first.iter().all(|rank| !other.first.contains(rank));
            apart && one.second.is_none() && other.second.is_none()
        };
        let pairs: Vec<(usize, usize)> = (self.live.iter())
            .flat_map(|&one| self.live.iter().map(move |&other| (one, other)))
            .filter(|&(one, other)| one < other && disjoint(one, other))
            .collect();
        let Some(&(one, other)) = pairs.get(self.below(pairs.len() as u32 + 1) as usize) else { return };
        let leaders = [one, other].map(|comm| self.below(self.comms[comm].first.len() as u32));
        let tag = self.below(2);
        self.between_of([one, other], leaders, tag);
    }

    /// One between those two, with these leaders.
    pub fn between_of(&mut self, locals: [usize; 2], leaders: [u32; 2], tag: u32) {
        let sides = locals.map(|comm| self.comms[comm].first.clone());
        let comm = self.add("MPI_Intercomm_create", sides[0].clone(), Some(sides[1].clone()));
        for (side, local) in locals.into_iter().enumerate() {
            let leader = sides[1 - side][leaders[1 - side] as usize];
            for (number, &rank) in sides[side].iter().enumerate() {
                let lead = number as u32 == leaders[side];
                // Others may pass anything.
                let peer = if lead { named("MPI_COMM_WORLD") } else { named("MPI_COMM_NULL") };
                let remote = if lead { leader } else { 77 };
                let words =
                    vec![self.word(rank, Some(local)), leaders[side].into(), peer, remote.into(), tag.into()];
                self.make(rank, "MPI_Intercomm_create", words, Some(comm));
            }
        }
    }

    fn merge(&mut self, parent: usize) {
        let Comm { first, second, .. } = self.get(Some(parent));
        let second = second.unwrap();
        let highs = [self.below(2), self.below(2)];
        let turned = if highs[0] == highs[1] { self.below(2) > 0 } else { highs[0] > highs[1] };
        let order = if turned { [second, first.clone()] } else { [first.clone(), second] }.concat();
        let words = |rank: u32| vec![highs[usize::from(!first.contains(&rank))].into()];
        let made = self.collective("MPI_Intercomm_merge", Some(parent), words, vec![(order, None)])[0];
        self.ask(made);
    }

    /// Plays a random event.
    pub fn step(&mut self) {
        let at = self.below(self.live.len() as u32 + 1) as usize;
        let parent = self.live.get(at).copied();
        let between = self.get(parent).second.is_some();
        match (self.below(12), parent) {
            (0, _) => drop(self.dup(parent)),
            (1 | 2, _) => self.split(parent),
            (3, _) if !between => self.shared(parent),
            (4, _) if !between => self.create(parent),
            (5, _) if !between => self.create_group(parent),
            (6, _) if !between => self.cart(parent),
            (7, Some(parent)) if self.comms[parent].dims.is_some() => self.sub(parent),
            (8, _) => self.between(),
            (9, Some(parent)) if between => self.merge(parent),
            (10, Some(parent)) => self.free(parent),
            (11, Some(parent)) => self.ask(parent),
            (_, Some(parent)) => self.use_it(parent),
            _ => {}
        }
    }
}
