//! State of a walk along the stack: the path, and the words that it depends on.

use std::ops::Range;

use ampl_agent::paths::Folding;

/// Place of a frame's rbp: programs that were compiled without frame pointers have anything in it, so it is read only
/// when needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bp {
    /// In the register, at the call.
    #[default]
    Live,
    /// On the stack.
    At(u64),
}

/// A path, and where on the stack the addresses of its frames are.
#[derive(Clone, Debug)]
pub struct Track {
    /// The path.
    pub path: Folding,
    /// Of every frame where its function begins, and where its return address is.
    places: Vec<(u64, u64)>,
}

impl Track {
    /// No frame yet, and at most so many.
    pub fn new(most: usize) -> Self {
        Self { path: Folding::new(most), places: Vec::with_capacity(most) }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.path.clear();
        self.places.clear();
    }

    /// The next frame outwards ([`Folding::push`]), whose address is at `place`.
    #[inline]
    pub fn push(&mut self, function: u64, address: u64, place: u64) {
        if self.path.push(function, address) {
            self.places.push((function, place));
        }
    }

    /// Becomes `other`; takes no memory, as a clone would.
    pub fn take_over(&mut self, other: &Self) {
        self.clear();
        other.frames().for_each(|(function, address, place)| self.push(function, address, place));
    }

    /// Frame by frame: function, address and place.
    pub fn frames(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.places
            .iter()
            .zip(self.path.frames())
            .map(|(&(function, place), &address)| (function, address, place))
    }
}

/// The words that a way depends on.
#[derive(Debug, Default)]
pub struct Reads {
    /// Where may be read: from the call to the end of the thread's stack.
    pub within: Range<u64>,
    /// Places and words, as many as there is room for.
    pub words: Vec<(u64, u64)>,
    /// How many of them a memo has room for, and one.
    pub room: usize,
    /// True where the way depends on rbp at the call, too.
    pub needs_bp: bool,
}

impl Reads {
    /// The word at `place`; `None` if it is not one of the stack's.
    #[inline]
    pub fn read(&mut self, place: u64) -> Option<u64> {
        if !place.is_multiple_of(8) || !self.within.contains(&place) || self.within.end - place < 8 {
            return None;
        }
        // SAFETY: an aligned word of the calling thread's stack, above everything that is being changed.
        let word = unsafe { (place as *const u64).read_volatile() };
        if self.words.len() < self.room {
            self.words.push((place, word));
        }
        Some(word)
    }

    /// Value of rbp, given `live` in the register.
    pub fn bp(&mut self, bp: Bp, live: u64) -> Option<u64> {
        match bp {
            Bp::Live => {
                self.needs_bp = true;
                Some(live)
            }
            Bp::At(place) => self.read(place),
        }
    }
}
