//! Guesses of words from signatures before them: writer and reader guess alike.

use rustc_hash::FxHashMap;

use super::relative_args::{Layout, Role, Slot};
use super::shared_part::Head;

/// Remembers the signatures of a group's first rank as they go by.
#[derive(Default)]
pub struct Guess {
    /// The words of all signatures so far.
    words: Vec<u64>,
    /// Beginning and head of the last signature of a function, by function and site.
    by_site: FxHashMap<(u16, u32), (usize, Head)>,
    by_function: FxHashMap<u16, (usize, Head)>,
    by_role: [u64; Role::COUNT],
    /// Beginning of this signature; `model` is that of one like it.
    begin: usize,
    model: Option<usize>,
}

impl Guess {
    /// Number of words that a signature probably has.
    pub fn length(&self, function: u16, flags: u8, site: u32) -> u32 {
        let last = self.by_site.get(&(function, site)).or_else(|| self.by_function.get(&function));
        match last {
            Some((_, head)) if head.flags == flags => head.words,
            _ => {
                let mut layout = Layout::new(function, flags);
                // As if all arrays were empty.
                let mut least = 0;
                while layout.next(Some(0)).param != 127 {
                    least += 1;
                }
                least
            }
        }
    }

    /// The path that a signature probably has.
    pub fn path(&self, function: u16, site: u32) -> u32 {
        self.by_site.get(&(function, site)).map_or(0, |(_, head)| head.path)
    }

    /// Begins a signature.
    pub fn begin(&mut self, head: Head) {
        self.begin = self.words.len();
        let like = |last: Option<&(usize, Head)>| {
            last.filter(|(_, last)| (last.flags, last.words) == (head.flags, head.words)).map(|&(at, _)| at)
        };
        let by_function = self.by_function.insert(head.function, (self.begin, head));
        let by_site = self.by_site.insert((head.function, head.site), (self.begin, head));
        self.model = like(by_site.as_ref()).or_else(|| like(by_function.as_ref()));
    }

    /// Index of the word that the next one is guessed from, if there is a signature like this one.
    pub fn model(&self) -> Option<usize> {
        self.model.map(|model| model + self.words.len() - self.begin)
    }

    /// Guess of the next word of this signature, at `slot`.
    pub fn word(&self, slot: Slot) -> u64 {
        match self.model() {
            Some(model) => self.words[model],
            None if slot.element > 0 => self.words[self.words.len() - 1],
            None => self.by_role[slot.role as usize],
        }
    }

    /// Takes the next word.
    pub fn learn(&mut self, slot: Slot, word: u64) {
        self.by_role[slot.role as usize] = word;
        self.words.push(word);
    }

    /// The last word of this signature, if there is one.
    pub fn before(&self) -> Option<u64> {
        self.words.get(self.begin..).and_then(|words| words.last()).copied()
    }
}
