//! Statuses that calls have filled, for calls that read one: each stays where MPI has filled it.

use std::collections::HashMap;

use ampl_core::value::Value;
use ampl_replay::completions::source_and_tag_of;

use super::ffi::STATUS_BYTES;

/// Statuses that are kept.
const MOST: usize = 1 << 13;

/// The last statuses.
#[derive(Debug)]
pub struct Statuses {
    /// Whole words.
    memory: Vec<u64>,
    /// Status to be filled next.
    next: usize,
    /// Addresses by source and tag.
    found: HashMap<(i64, i64), usize>,
}

impl Statuses {
    /// Room, without any status.
    pub fn new() -> Self {
        Self { memory: vec![0; MOST * STATUS_BYTES / 8], next: 0, found: HashMap::new() }
    }

    /// Address of a status of that source and tag.
    pub fn address(&self, source: i64, tag: i64) -> Option<usize> {
        self.found.get(&(source, tag)).copied()
    }

    /// Address of room for `number` statuses, which will have the recorded `values`; `None` of more than are kept.
    pub fn room(&mut self, number: usize, values: Option<&Value>) -> Option<usize> {
        if number > MOST {
            return None;
        }
        if self.next + number > MOST {
            self.next = 0;
        }
        let first = self.memory.as_mut_ptr() as usize + self.next * STATUS_BYTES;
        self.next += number;
        let one = values.map(std::slice::from_ref).unwrap_or_default();
        let values = if let Some(Value::List(all)) = values { &all[..] } else { one };
        for (at, value) in values.iter().enumerate().take(number) {
            if let Some(told) = source_and_tag_of(value) {
                self.found.insert(told, first + at * STATUS_BYTES);
            }
        }
        Some(first)
    }
}
