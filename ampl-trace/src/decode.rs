//! The stored calls of a rank, one at a time.

use ampl_core::mpi::{FUNCTION_COUNT, Function};

use crate::args::{Named, decode};
use crate::error::ReadError;
use crate::model::RankTrace;
use crate::record::{CALL_ERROR, CALL_UNFINISHED};
use crate::varint::Reader;

/// One call of a kept window.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Position among the thread's sequenced calls, from 0: calls of dropped windows count too.
    pub seq: u64,
    /// The thread, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// The function.
    pub function: Function,
    /// Every input by name.
    pub args: Named,
    /// Every output by name.
    pub out: Named,
    /// Failed polls folded into this entry; 1 for an ordinary call.
    pub count: u32,
    /// The error it returned; 0 is `MPI_SUCCESS`.
    pub code: i64,
    /// The window it ended in.
    pub window: u64,
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// Duration, nanoseconds; `None` if it had not returned.
    pub duration_ns: Option<u64>,
    /// Index into [`RankTrace::sites`].
    pub site: Option<u32>,
}

/// Reads a rank's stored calls in constant memory.
#[derive(Debug)]
pub struct Calls<'a> {
    calls: Reader<'a>,
    times: Reader<'a>,
    clock: i64,
    threads: Vec<Position>,
    failed: bool,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    window: u64,
    next_seq: u64,
}

impl<'a> Calls<'a> {
    /// The calls of `rank`.
    pub fn new(rank: &'a RankTrace) -> Self {
        Self {
            calls: Reader::new(&rank.calls),
            times: Reader::new(&rank.times),
            clock: 0,
            threads: Vec::new(),
            failed: false,
        }
    }

    fn position(&mut self, thread: u64) -> Option<&mut Position> {
        let thread = usize::try_from(thread).ok().filter(|&thread| thread < 1 << 16)?;
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Position::default());
        }
        self.threads.get_mut(thread)
    }

    fn read(&mut self) -> Option<Call> {
        let function = loop {
            match self.calls.get()? {
                0 => {
                    let thread = self.calls.get()?;
                    let opened = Position { window: self.calls.get()?, next_seq: self.calls.get()? };
                    *self.position(thread)? = opened;
                    if self.calls.is_empty() {
                        return None;
                    }
                }
                number => break usize::try_from(number - 1).ok().filter(|&f| f < FUNCTION_COUNT)?,
            }
        };
        let function = Function(function as u16);
        let flags = u8::try_from(self.calls.get()?).ok()?;
        let thread = self.calls.get()?;
        let site = self.calls.get()?.checked_sub(1).map(|site| site as u32);
        let count = u32::try_from(self.calls.get()?).ok()?;
        let length = self.calls.get()?;
        let mut words = Vec::new();
        for _ in 0..length {
            words.push(self.calls.get_signed()? as u64);
        }
        let (code, words) = if flags & CALL_ERROR != 0 {
            let (&code, rest) = words.split_first()?;
            (code as i64, rest)
        } else {
            (0, &words[..])
        };
        let (args, out) = decode(function.spec(), flags, words)?;
        self.clock = self.clock.wrapping_add(self.times.get_signed()?);
        let duration = self.times.get()?;
        let position = self.position(thread)?;
        let Position { window, next_seq: seq } = *position;
        position.next_seq = seq.wrapping_add(u64::from(count.max(1)));
        Some(Call {
            seq,
            thread: thread as u32,
            function,
            args,
            out,
            count,
            code,
            window,
            start_ns: self.clock,
            duration_ns: (flags & CALL_UNFINISHED == 0).then_some(duration),
            site,
        })
    }
}

impl Iterator for Calls<'_> {
    type Item = Result<Call, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.calls.is_empty() {
            return None;
        }
        let call = self.read();
        if call.is_none() && !self.calls.is_empty() {
            self.failed = true;
            return Some(Err(ReadError::Malformed { what: "call", at: self.calls.position() }));
        }
        call.map(Ok)
    }
}
