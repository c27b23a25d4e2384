//! Call paths of a thread: how recursion folds in them, and the number that stands for each.

use rustc_hash::FxHashMap;

/// Most paths with a number; further ones count as their innermost frame: the table of sites has no room for them
/// either.
const MOST_PATHS: usize = 4096;
/// Set in the numbers of paths, and in no address.
const PATH: u64 = 1 << 63;

/// A path as it is met on the way up the stack: of every function the innermost frame.
///
/// The first of equal ones counts, wherever the others are. So what comes out depends neither on how often a function,
/// or a chain of them, calls itself nor in which order several do; and the first frames are known before the rest of
/// the stack is.
#[derive(Clone, Debug)]
pub struct Folding {
    most: usize,
    functions: Vec<u64>,
    frames: Vec<u64>,
}

impl Folding {
    /// A path of at most `most` frames, with none yet.
    pub fn new(most: usize) -> Self {
        Self { most, functions: Vec::with_capacity(most), frames: Vec::with_capacity(most) }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.functions.clear();
        self.frames.clear();
    }

    /// The next frame outwards: where its function begins, and the address in it that is returned to. Whether it is
    /// the first of its function.
    #[inline]
    pub fn push(&mut self, function: u64, address: u64) -> bool {
        let new = !self.is_full() && !self.functions.contains(&function);
        if new {
            self.functions.push(function);
            self.frames.push(address);
        }
        new
    }

    /// True where the path has as many frames as it may.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.frames.len() >= self.most
    }

    /// Return addresses, innermost first.
    pub fn frames(&self) -> &[u64] {
        &self.frames
    }

    /// Where their functions begin.
    pub fn functions(&self) -> &[u64] {
        &self.functions
    }
}

/// The paths that a thread has met.
#[derive(Debug, Default)]
pub struct Paths {
    numbers: FxHashMap<Box<[u64]>, u64>,
    frames: Vec<Box<[u64]>>,
}

impl Paths {
    /// Number of the path of these return addresses, innermost first, to be used as a call's return address; a path of
    /// one frame is that address itself.
    pub fn number(&mut self, frames: &[u64]) -> u64 {
        if let Some(&number) = self.numbers.get(frames) {
            return number;
        }
        match frames {
            [address, _, ..] if self.frames.len() == MOST_PATHS => *address,
            [] => 0,
            [address] => *address,
            _ => {
                let number = PATH | self.frames.len() as u64;
                self.frames.push(frames.into());
                self.numbers.insert(frames.into(), number);
                number
            }
        }
    }

    /// The return addresses that a number or an address stands for.
    pub fn frames(&self, number: u64) -> Box<[u64]> {
        let path = (number & PATH != 0).then(|| self.frames.get((number & !PATH) as usize)).flatten();
        path.cloned().unwrap_or_else(|| [number].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fold(stack: &[u64], most: usize) -> Vec<u64> {
        let mut path = Folding::new(most);
        for &function in stack {
            path.push(function, function);
        }
        path.frames().to_vec()
    }

    /// By the definition: a function counts where no frame further in is of it.
    fn oracle(stack: &[u64], most: usize) -> Vec<u64> {
        let counts = |&(at, function): &(usize, &u64)| !stack[..at].contains(function);
        stack.iter().enumerate().filter(counts).map(|(_, &function)| function).take(most).collect()
    }

    proptest! {
        #[test]
        fn any_depth_of_recursion_is_one_path(
            inner in prop::collection::vec(0u64..6, 0..6),
            block in prop::collection::vec(0u64..6, 1..5),
            outer in prop::collection::vec(0u64..6, 0..6),
            (times, most) in (1usize..40, 1usize..8),
        ) {
            let stack = |times: usize| [&inner[..], &block.repeat(times), &outer].concat();
            let folded = fold(&stack(times), most);
            prop_assert_eq!(&folded, &oracle(&stack(times), most));
            prop_assert_eq!(&folded, &fold(&stack(1), most), "however often");
            prop_assert_eq!(&folded, &fold(&folded, most), "once is enough");
        }
    }

    #[test]
    fn what_counts_is_the_innermost_call_of_a_function() {
        let mut path = Folding::new(3);
        let frames = [(1, 11), (1, 12), (2, 21), (1, 13), (2, 22), (3, 31), (4, 41)];
        let new = frames.map(|(function, address)| path.push(function, address));
        assert_eq!(new, [true, false, true, false, false, true, false]);
        assert_eq!(path.frames(), [11, 21, 31]);
        path.clear();
        assert!(!path.is_full() && path.frames().is_empty());
    }

    #[test]
    fn numbers_stand_for_paths() {
        let mut paths = Paths::default();
        assert_eq!(paths.number(&[0x1000]), 0x1000);
        let (one, other) = (paths.number(&[0x1000, 0x2000]), paths.number(&[0x1000, 0x3000]));
        assert_ne!(one, other);
        assert_eq!(paths.number(&[0x1000, 0x2000]), one);
        assert_eq!((*paths.frames(one)).to_vec(), [0x1000, 0x2000]);
        assert_eq!((*paths.frames(0x1000)).to_vec(), [0x1000]);
        for outer in 0..2 * MOST_PATHS as u64 {
            paths.number(&[0x1000, 0x2000 + outer]);
        }
        assert_eq!(paths.number(&[0x1000, 0x2001 + MOST_PATHS as u64]), 0x1000, "the table is full");
        assert_eq!(paths.number(&[0x1000, 0x3000]), other);
    }
}
