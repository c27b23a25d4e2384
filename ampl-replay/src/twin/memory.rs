//! Memory that stands for the program's buffers.
//!
//! All messages are sent from one reserve and received into another, from a base in its inside, so that negative lower
//! bounds find room. Pages that no message touches cost nothing.

use std::collections::HashMap;

use memmap2::{MmapMut, MmapOptions};
use rand::rngs::SmallRng;
use rand::{RngCore as _, SeedableRng as _};

/// First length that is tried for a reserve, bytes.
const MOST: usize = 1 << 36;
/// Least length that a replay goes on with.
const LEAST: usize = 1 << 26;
/// Largest part of a reserve that gets random contents.
const FILLED: usize = 1 << 26;

/// Buffers of a rank.
#[derive(Debug)]
pub struct Memory {
    send: MmapMut,
    receive: MmapMut,
    /// Reserves for data at absolute addresses that lie far apart.
    far: Vec<MmapMut>,
    /// Bytes behind the send base that are random.
    filled: usize,
    random: SmallRng,
    /// Memory that MPI has given, by the recorded address.
    pub given: HashMap<String, usize>,
    /// Memory that MPI uses until it is taken back: windows, attached buffers.
    lent: HashMap<String, MmapMut>,
}

fn reserve(length: usize) -> Option<MmapMut> {
    MmapOptions::new().len(length).no_reserve_swap().map_anon().ok()
}

/// Reserves no length of which the system gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory(pub usize);

impl Memory {
    /// Two reserves, as large as the system gives.
    pub fn new(seed: u64) -> Result<Self, NoMemory> {
        let mut length = MOST;
        let (send, receive) = loop {
            match (reserve(length), reserve(length)) {
                (Some(send), Some(receive)) => break (send, receive),
                _ if length > LEAST => length /= 2,
                _ => return Err(NoMemory(length)),
            }
        };
        let random = SmallRng::seed_from_u64(seed);
        let (given, lent) = (HashMap::new(), HashMap::new());
        let mut memory = Self { send, receive, far: Vec::new(), filled: 0, random, given, lent };
        memory.fill(1 << 12);
        Ok(memory)
    }

    fn base(&self) -> usize {
        self.send.len() / 4
    }

    /// Most bytes that lie behind a buffer's address.
    fn room(&self) -> usize {
        self.send.len() - self.base()
    }

    /// Makes the first `bytes` of what is sent random: numbers that no arithmetic is slow with.
    fn fill(&mut self, bytes: usize) {
        let (base, until) = (self.base(), bytes.min(FILLED).next_multiple_of(8));
        if until <= self.filled {
            return;
        }
        for word in self.send[base + self.filled..base + until].chunks_exact_mut(8) {
            // As a double it is in [1, 2).
            word.copy_from_slice(&(self.random.next_u64() >> 12 | 0x3ff << 52).to_ne_bytes());
        }
        self.filled = until;
    }

    /// Address of `bytes` to send.
    pub fn source(&mut self, bytes: usize) -> Result<usize, NoMemory> {
        self.fill(bytes);
        if bytes > self.room() { Err(NoMemory(bytes)) } else { Ok(self.send.as_ptr() as usize + self.base()) }
    }

    /// Address of room for `bytes` to receive.
    pub fn target(&self, bytes: usize) -> Result<usize, NoMemory> {
        if bytes > self.room() {
            return Err(NoMemory(bytes));
        }
        Ok(self.receive.as_ptr() as usize + self.base())
    }

    /// Address from which data at absolute addresses, `extent` bytes from `lower` on, lie in memory of this process.
    pub fn absolute(&mut self, sends: bool, lower: i64, extent: usize) -> Result<usize, NoMemory> {
        let from = if extent <= self.room() {
            if sends { self.source(extent)? } else { self.target(extent)? }
        } else {
            if !self.far.iter().any(|reserve| reserve.len() >= extent) {
                self.far.push(reserve(extent).ok_or(NoMemory(extent))?);
            }
            let found = self.far.iter().find(|reserve| reserve.len() >= extent).expect("just made");
            found.as_ptr() as usize
        };
        Ok(from.wrapping_sub(lower as usize))
    }

    /// Memory of its own under a name, in place of what had that name.
    pub fn lend(&mut self, name: String, bytes: usize) -> Result<usize, NoMemory> {
        let map = reserve(bytes.max(1)).ok_or(NoMemory(bytes))?;
        let address = map.as_ptr() as usize;
        self.lent.insert(name, map);
        Ok(address)
    }

    /// Address of what is lent under that name.
    pub fn lent(&self, name: &str) -> Option<usize> {
        self.lent.get(name).map(|map| map.as_ptr() as usize)
    }

    /// Gives another name to what is lent.
    pub fn rename(&mut self, from: &str, to: String) {
        if let Some(map) = self.lent.remove(from) {
            self.lent.insert(to, map);
        }
    }

    /// Takes back what is lent under that name.
    pub fn take_back(&mut self, name: &str) {
        self.lent.remove(name);
    }
}
