//! The object that a word stands for: words are slots, which the next object takes when one is freed.

use rustc_hash::FxHashMap;

/// Uses of a word by all threads of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// First thread that makes or frees its object; `shared` where another does, too.
    thread: u32,
    shared: bool,
    makes: u32,
    frees: u32,
    /// The object that it stands for, the first one that was made.
    object: Option<u32>,
}

/// Uses of all words of one kind of a rank, by whichever thread.
#[derive(Clone, Debug, Default)]
pub struct Words {
    touched: FxHashMap<u64, Touch>,
}

impl Words {
    fn touch(&mut self, thread: u32, word: u64) -> &mut Touch {
        let touch = self.touched.entry(word).or_insert(Touch { thread, ..Touch::default() });
        touch.shared |= touch.thread != thread;
        touch
    }

    /// Notes that `thread` makes an object of that word.
    pub fn made(&mut self, thread: u32, word: u64, object: u32) {
        let touch = self.touch(thread, word);
        if touch.makes == 0 {
            touch.object = Some(object);
        }
        touch.makes = touch.makes.saturating_add(1);
    }

    /// Notes that `thread` frees the word's object.
    pub fn freed(&mut self, thread: u32, word: u64) {
        let touch = self.touch(thread, word);
        touch.frees = touch.frees.saturating_add(1);
        if touch.makes == 0 {
            // It stood for an object whose making was not seen: what is made next is not its only one.
            touch.makes = 1;
        }
    }

    /// The object, where it is the only one that the word ever stands for.
    pub fn only(&self, word: u64) -> Option<u32> {
        let touch = self.touched.get(&word)?;
        if touch.makes == 1 { touch.object } else { None }
    }

    /// The object that `thread` names by `word`, of which `own` is what it made last of that word itself.
    ///
    /// The order of calls of different threads is not known: an object that threads share is known where the word
    /// stands for no other.
    fn named(&self, thread: u32, word: u64, own: Option<u32>) -> Option<u32> {
        let touch = self.touched.get(&word)?;
        if touch.thread == thread && !touch.shared {
            return own;
        }
        if touch.makes == 1 && touch.frees <= 1 { touch.object } else { None }
    }
}

/// Objects that words stand for in one thread, call by call.
#[derive(Clone, Debug)]
pub struct Scope {
    thread: u32,
    /// The object, and how often it must be freed.
    own: FxHashMap<u64, (u32, u32)>,
    /// True where MPI gives out one object several times.
    counted: bool,
}

impl Scope {
    /// Scope of a thread at its beginning; of objects that are `counted`, the same may be given again.
    pub fn new(thread: u32, counted: bool) -> Self {
        Self { thread, own: FxHashMap::default(), counted }
    }

    /// Notes that the word stands for a new object.
    pub fn made(&mut self, word: u64, object: u32) {
        let times = self.own.get(&word).map_or(0, |&(_, times)| times);
        self.own.insert(word, (object, if self.counted { times.saturating_add(1) } else { 1 }));
    }

    /// Notes that the word's object was freed.
    pub fn freed(&mut self, word: u64) {
        if let Some((_, times)) = self.own.get_mut(&word) {
            *times -= 1;
            if *times == 0 {
                self.own.remove(&word);
            }
        }
    }

    /// Forgets all words.
    pub fn lose(&mut self) {
        self.own.clear();
    }

    /// Object that the word stands for here; `None` where it is not known.
    pub fn get(&self, words: &Words, word: u64) -> Option<u32> {
        words.named(self.thread, word, self.own.get(&word).map(|&(object, _)| object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_what_was_made_last() {
        let (mut words, mut scope) = (Words::default(), Scope::new(0, false));
        assert_eq!(scope.get(&words, 1), None);
        for object in [4, 5] {
            words.made(0, 1, object);
            scope.made(1, object);
            assert_eq!(scope.get(&words, 1), Some(object));
            words.freed(0, 1);
            scope.freed(1);
            assert_eq!(scope.get(&words, 1), None);
        }
        scope.made(1, 6);
        scope.lose();
        assert_eq!((scope.get(&words, 1), words.only(1)), (None, None));
    }

    #[test]
    fn a_group_that_is_given_twice_is_freed_twice() {
        let (mut words, mut scope) = (Words::default(), Scope::new(0, true));
        for object in [0, 1] {
            words.made(0, 7, object);
            scope.made(7, object);
        }
        scope.freed(7);
        assert_eq!(scope.get(&words, 7), Some(1));
        scope.freed(7);
        assert_eq!(scope.get(&words, 7), None);
    }

    #[test]
    fn what_threads_reuse_is_not_known() {
        let mut words = Words::default();
        words.made(0, 1, 10);
        words.freed(1, 1);
        words.made(0, 2, 11);
        words.freed(0, 2);
        words.made(0, 2, 12);
        words.made(1, 3, 13);
        words.made(0, 3, 14);
        let mut scope = Scope::new(0, false);
        [(1, 10), (2, 12), (3, 14)].iter().for_each(|&(word, object)| scope.made(word, object));
        let other = Scope::new(1, false);
        // Made once; made twice by one thread; by two.
        assert_eq!([1, 2, 3].map(|word| scope.get(&words, word)), [Some(10), Some(12), None]);
        assert_eq!([1, 2, 3].map(|word| other.get(&words, word)), [Some(10), None, None]);
    }
}
