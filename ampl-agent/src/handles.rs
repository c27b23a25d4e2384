//! Maps handles to objects: numbers that mean the same in every run.

use ampl_core::value::ObjectKind;
use ampl_trace::args::is_predefined;
use rustc_hash::FxHashMap;

use crate::numbers::Numbers;

/// An object behind a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The word that stands for it in records ([`ampl_trace::args`]).
    pub word: u64,
    /// Facts that calls need: size and rank of a communicator, bytes of a datatype.
    pub facts: [u64; 2],
    /// Number that distinguishes it from all objects that have or had its handle, or its word.
    pub serial: u64,
}

/// All objects of a process by handle.
#[derive(Debug)]
pub struct Handles {
    objects: FxHashMap<(u8, u64), Object>,
    /// How often the program must free a handle before the object is gone, beyond once: MPI may give
    /// out one object several times (`MPI_Comm_group`).
    further: FxHashMap<(u8, u64), u64>,
    /// Of the live objects, by kind.
    numbers: [Numbers; ObjectKind::COUNT],
    /// Serial number of the last object defined.
    serial: u64,
    generation: u64,
    groups: Groups,
}

impl Default for Handles {
    fn default() -> Self {
        Self {
            objects: FxHashMap::default(),
            further: FxHashMap::default(),
            numbers: std::array::from_fn(|_| Numbers::from(1)),
            serial: 0,
            generation: 0,
            groups: Groups::default(),
        }
    }
}

/// Groups of communicators, which MPI has given to ampl, and their members.
#[derive(Debug, Default)]
struct Groups {
    /// By the communicator's word: the group's handle and size.
    live: FxHashMap<u64, Group>,
    /// Handles of groups whose communicator is gone.
    retired: Vec<u64>,
    /// Ranks of the world by communicator's word and rank there, as far as they have been asked for.
    worlds: FxHashMap<(u64, u32), Option<u32>>,
}

/// The group of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its handle.
    pub handle: u64,
    /// Its ranks.
    pub ranks: u32,
}

/// As many translated ranks are remembered; then all are forgotten.
const MOST_WORLDS: usize = 1 << 16;

impl Handles {
    /// The object behind `handle`.
    pub fn get(&self, kind: ObjectKind, handle: u64) -> Option<Object> {
        self.objects.get(&(kind as u8, handle)).copied()
    }

    /// Makes `handle` stand for the predefined object of record word `word`.
    pub fn predefine(&mut self, kind: ObjectKind, handle: u64, word: u64, facts: [u64; 2]) {
        self.objects.insert((kind as u8, handle), Object { word, facts, serial: 0 });
    }

    /// Makes `handle` stand for a new object, whatever it stood for.
    pub fn define(&mut self, kind: ObjectKind, handle: u64, facts: [u64; 2]) -> Object {
        self.serial += 1;
        let object = Object { word: self.numbers[kind as usize].take(), facts, serial: self.serial };
        if let Some(before) = self.objects.insert((kind as u8, handle), object) {
            self.generation += 1;
            self.retire(kind, before);
            if !is_predefined(before.word) {
                self.numbers[kind as usize].give(before.word);
            }
        }
        object
    }

    /// Notes facts of the object behind `handle`.
    pub fn learn(&mut self, kind: ObjectKind, handle: u64, facts: [u64; 2]) -> Option<Object> {
        let object = self.objects.get_mut(&(kind as u8, handle))?;
        object.facts = facts;
        Some(*object)
    }

    /// MPI has given `handle` to the program: a new object, or one more reference to one it has.
    ///
    /// Earlier facts of the object are dropped: the program may have freed it unseen (in a callback, by its profiling
    /// name), and this is another.
    pub fn given(&mut self, kind: ObjectKind, handle: u64, unknown: [u64; 2]) {
        use ObjectKind::{Errhandler, Group, Info, Type};
        let twice = matches!(kind, Group | Type | Errhandler | Info);
        match self.objects.get_mut(&(kind as u8, handle)) {
            Some(object) if is_predefined(object.word) => {}
            Some(object) if twice => {
                object.facts = unknown;
                self.generation += 1;
                *self.further.entry((kind as u8, handle)).or_default() += 1;
            }
            _ => {
                self.define(kind, handle, unknown);
            }
        }
    }

    /// Drops `handle`, which the program has given back, if it still stands for the object of that serial number; with
    /// the last reference to the object, it stands for nothing.
    ///
    /// MPI may have given the handle to another thread before this one notes the end: that object stays.
    pub fn forget(&mut self, kind: ObjectKind, handle: u64, serial: u64) {
        if let Some(object) = self.end(kind, handle, serial) {
            self.numbers[kind as usize].give(object.word);
        }
    }

    /// As [`forget`](Self::forget), for an object that was freed in a call which has no place in the sequence: its
    /// number is given to no other, which a reader would take for it.
    pub fn lose(&mut self, kind: ObjectKind, handle: u64, serial: u64) {
        self.end(kind, handle, serial);
    }

    /// Ends the object whose last reference has been given back; returns it if the program made it.
    fn end(&mut self, kind: ObjectKind, handle: u64, serial: u64) -> Option<Object> {
        if self.get(kind, handle).is_none_or(|object| object.serial != serial) {
            return None;
        }
        if let Some(further) = self.further.get_mut(&(kind as u8, handle)) {
            *further -= 1;
            if *further == 0 {
                self.further.remove(&(kind as u8, handle));
            }
            return None;
        }
        // A predefined object survives: only a reference to it was given back.
        let made = self.get(kind, handle).is_some_and(|object| !is_predefined(object.word));
        let object = if made { self.objects.remove(&(kind as u8, handle)) } else { None }?;
        self.generation += 1;
        self.retire(kind, object);
        Some(object)
    }

    /// The group of the communicator that `word` stands for, if it has been [left](Self::put_group).
    pub fn group(&self, word: u64) -> Option<Group> {
        self.groups.live.get(&word).copied()
    }

    /// Leaves the group of the communicator that `word` stands for. It is given back, to be freed, once the
    /// communicator is gone, or at once if there is one already.
    pub fn put_group(&mut self, word: u64, group: Group) -> Group {
        let kept = *self.groups.live.entry(word).or_insert(group);
        if kept != group {
            self.groups.retired.push(group.handle);
        }
        kept
    }

    fn retire(&mut self, kind: ObjectKind, object: Object) {
        if kind == ObjectKind::Comm {
            self.groups.worlds.retain(|&(word, _), _| word != object.word);
        }
        if let (ObjectKind::Comm, Some(group)) = (kind, self.groups.live.remove(&object.word)) {
            self.groups.retired.push(group.handle);
        }
    }

    /// Gives every group back: no rank is translated any more.
    pub fn retire_groups(&mut self) {
        let live = std::mem::take(&mut self.groups.live);
        self.groups.retired.extend(live.into_values().map(|group| group.handle));
    }

    /// A group that is not needed any more.
    pub fn take_retired(&mut self) -> Option<u64> {
        self.groups.retired.pop()
    }

    /// The rank of the world that is `rank` of a communicator, if that has been noted; `Some(None)` for a process
    /// of another world.
    pub fn world_rank(&self, word: u64, rank: u32) -> Option<Option<u32>> {
        self.groups.worlds.get(&(word, rank)).copied()
    }

    /// Notes the result of [`world_rank`](Self::world_rank) from now on.
    pub fn note_world_rank(&mut self, word: u64, rank: u32, world: Option<u32>) {
        if self.groups.worlds.len() >= MOST_WORLDS {
            self.groups.worlds.clear();
        }
        self.groups.worlds.insert((word, rank), world);
    }

    /// Changes whenever a handle changes its meaning: caches of another generation are stale.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

const WAYS: usize = 64;

/// An entry of the cache: which kind and handle, and what they stand for.
#[derive(Clone, Copy, Debug)]
struct Known {
    kind: u64,
    handle: u64,
    object: Object,
}

/// No object is of that kind.
const EMPTY: Known =
    Known { kind: u64::MAX, handle: 0, object: Object { word: 0, facts: [0; 2], serial: 0 } };

/// A thread's direct-mapped cache in front of [`Handles`], and before it the latest object of each kind: most
/// calls name the same few.
#[derive(Debug)]
pub struct HandleCache {
    latest: [Known; ObjectKind::COUNT],
    entries: Box<[Known; WAYS]>,
    generation: u64,
}

impl Default for HandleCache {
    fn default() -> Self {
        Self { latest: [EMPTY; ObjectKind::COUNT], entries: Box::new([EMPTY; WAYS]), generation: 0 }
    }
}

impl HandleCache {
    #[inline]
    fn slot(kind: ObjectKind, handle: u64) -> usize {
        ((handle ^ handle >> 6 ^ handle >> 12).wrapping_add(kind as u64 * 7) % WAYS as u64) as usize
    }

    /// The cached object, if the cache is of `generation` and has it.
    #[inline(always)]
    pub fn get(&mut self, kind: ObjectKind, handle: u64, generation: u64) -> Option<&Object> {
        let latest = &self.latest[kind as usize];
        if self.generation == generation && latest.is(kind, handle) {
            return Some(&self.latest[kind as usize].object);
        }
        self.search(kind, handle, generation)
    }

    /// As [`HandleCache::get`], for an object that is not the latest of its kind.
    fn search(&mut self, kind: ObjectKind, handle: u64, generation: u64) -> Option<&Object> {
        if self.generation != generation {
            self.generation = generation;
            self.latest.fill(EMPTY);
            self.entries.fill(EMPTY);
            return None;
        }
        let known = self.entries[Self::slot(kind, handle)];
        let latest = &mut self.latest[kind as usize];
        known.is(kind, handle).then(|| {
            *latest = known;
            &latest.object
        })
    }

    /// Remembers `object` of the current generation.
    pub fn put(&mut self, kind: ObjectKind, handle: u64, object: Object) {
        let known = Known { kind: kind as u64, handle, object };
        self.entries[Self::slot(kind, handle)] = known;
        self.latest[kind as usize] = known;
    }
}

impl Known {
    #[inline(always)]
    fn is(&self, kind: ObjectKind, handle: u64) -> bool {
        self.handle == handle && self.kind == kind as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an object given back by the thread that had it.
    fn forget(handles: &mut Handles, kind: ObjectKind, handle: u64) {
        let object = handles.get(kind, handle).expect("a live object");
        handles.forget(kind, handle, object.serial);
    }

    fn names(handles: &Handles, kind: ObjectKind, handle: u64) -> Option<(u64, [u64; 2])> {
        handles.get(kind, handle).map(|object| (object.word, object.facts))
    }

    #[test]
    fn a_handle_given_to_another_before_its_end_is_told_stays_the_others() {
        let mut handles = Handles::default();
        let mine = handles.define(ObjectKind::Comm, 0x84, [0; 2]);
        // Another thread is given it twice, the second time under the number of the first.
        handles.given(ObjectKind::Comm, 0x84, [0; 2]);
        forget(&mut handles, ObjectKind::Comm, 0x84);
        handles.given(ObjectKind::Comm, 0x84, [0; 2]);
        let others = handles.get(ObjectKind::Comm, 0x84);
        assert_eq!(others.map(|object| object.word), Some(mine.word));
        handles.forget(ObjectKind::Comm, 0x84, mine.serial);
        assert_eq!(handles.get(ObjectKind::Comm, 0x84), others);
    }

    #[test]
    fn an_object_given_twice_lives_until_it_is_freed_twice() {
        let mut handles = Handles::default();
        for _ in 0..2 {
            handles.given(ObjectKind::Group, 0x88, [0; 2]);
        }
        let first = handles.get(ObjectKind::Group, 0x88);
        forget(&mut handles, ObjectKind::Group, 0x88);
        assert!(first.is_some() && handles.get(ObjectKind::Group, 0x88) == first);
        forget(&mut handles, ObjectKind::Group, 0x88);
        assert_eq!(handles.get(ObjectKind::Group, 0x88), None);
    }

    #[test]
    fn an_end_that_nobody_saw_leaves_nothing_behind() {
        let mut handles = Handles::default();
        handles.given(ObjectKind::Comm, 0x84, [0; 2]);
        handles.learn(ObjectKind::Comm, 0x84, [4, 1]);
        handles.given(ObjectKind::Comm, 0x84, [0; 2]);
        assert_eq!(names(&handles, ObjectKind::Comm, 0x84), Some((2, [0; 2])));
        handles.given(ObjectKind::Type, 0x84, [0; 2]);
        handles.learn(ObjectKind::Type, 0x84, [8, 0]);
        let before = handles.generation();
        handles.given(ObjectKind::Type, 0x84, [0; 2]);
        assert_eq!(names(&handles, ObjectKind::Type, 0x84), Some((1, [0; 2])));
        assert_ne!(handles.generation(), before);
    }

    #[test]
    fn a_group_goes_with_its_communicator() {
        let mut handles = Handles::default();
        let group = |handle| Group { handle, ranks: 4 };
        let first = handles.define(ObjectKind::Comm, 0x84, [4, 0]).word;
        assert_eq!(handles.put_group(first, group(7)), group(7));
        // Another thread was quicker.
        assert_eq!(handles.put_group(first, group(8)), group(7));
        assert_eq!((handles.take_retired(), handles.take_retired()), (Some(8), None));
        handles.note_world_rank(first, 2, Some(9));
        handles.forget(ObjectKind::Type, 0x84, 0);
        assert_eq!(handles.group(first), Some(group(7)));
        forget(&mut handles, ObjectKind::Comm, 0x84);
        assert_eq!((handles.group(first), handles.take_retired()), (None, Some(7)));
        // Facts of the first do not hold for the second, whose handle and number are the same.
        let second = handles.define(ObjectKind::Comm, 0x84, [4, 0]).word;
        assert_eq!((second, handles.group(second), handles.world_rank(second, 2)), (first, None, None));
        handles.put_group(second, group(9));
        handles.given(ObjectKind::Comm, 0x84, [0; 2]);
        assert_eq!(handles.take_retired(), Some(9), "an end that nobody saw");
    }

    /// Programs that make and free objects in the same order name them alike, whatever the handles.
    #[test]
    fn numbers_do_not_depend_on_handles() {
        let run = |handle: fn(u64) -> u64| {
            let (mut handles, mut words) = (Handles::default(), Vec::new());
            for (kind, object, made) in [
                (ObjectKind::Comm, 0, true),
                (ObjectKind::Comm, 1, true),
                (ObjectKind::Type, 2, true),
                (ObjectKind::Comm, 3, true),
                (ObjectKind::Comm, 1, false),
                (ObjectKind::Comm, 0, false),
                (ObjectKind::Comm, 4, true),
                (ObjectKind::Comm, 5, true),
                (ObjectKind::Comm, 6, true),
            ] {
                match made {
                    true => words.push(handles.define(kind, handle(object), [0; 2]).word),
                    false => forget(&mut handles, kind, handle(object)),
                }
            }
            words
        };
        assert_eq!(run(|object| object), [1, 2, 1, 3, 1, 2, 4]);
        // Addresses that are used again as soon as they are free.
        assert_eq!(run(|object| 0x7f00 - 64 * [0, 1, 2, 3, 0, 1, 5][object as usize]), [1, 2, 1, 3, 1, 2, 4]);
    }

    #[test]
    fn a_reused_handle_is_a_new_object() {
        let (mut handles, mut cache) = (Handles::default(), HandleCache::default());
        let first = handles.define(ObjectKind::Comm, 0x84, [4, 0]);
        cache.put(ObjectKind::Comm, 0x84, first);
        assert_eq!(cache.get(ObjectKind::Comm, 0x84, handles.generation()), Some(&first));
        let other = handles.define(ObjectKind::Comm, 0x88, [4, 1]);
        cache.put(ObjectKind::Comm, 0x88, other);
        for (handle, object) in [(0x84, first), (0x88, other), (0x84, first)] {
            assert_eq!(cache.get(ObjectKind::Comm, handle, handles.generation()), Some(&object));
        }
        forget(&mut handles, ObjectKind::Comm, 0x84);
        assert_eq!(handles.get(ObjectKind::Comm, 0x84), None);
        let second = handles.define(ObjectKind::Comm, 0x84, [2, 1]);
        assert_eq!((first.word, other.word, second.word), (1, 2, 1), "its number is the lowest that is free");
        assert_eq!(names(&handles, ObjectKind::Comm, 0x84), Some((1, [2, 1])));
        assert_eq!(cache.get(ObjectKind::Comm, 0x84, handles.generation()), None);
        assert_eq!(handles.get(ObjectKind::Type, 0x84), None);
    }
}
