//! Messages whose both sides are known: a table of them, and the sides of each rank in the order of its calls.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ampl_analysis::matching::{At, Half, Job, Outcome, Terminal, Visitor, play};
use ampl_analysis::messages::Comm;
use ampl_reader::selection::Selection;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::Timed;

use crate::columns::{Cell, Column, RowWriter, Type};

/// Sides that are held in memory before they go to a file, some 60 MB.
const HELD: usize = 1 << 20;
/// Numbers of a side in the file.
const WORDS: usize = 7;

/// One side of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Number of the message, from 1.
    pub number: u64,
    /// True of the sender's.
    pub sends: bool,
    /// The thread that sends, or that completes the receive.
    pub thread: u32,
    /// Number of the call that posts or starts it.
    pub posted: u64,
    /// Number of the call that completes it; `None` where none does.
    pub done: Option<u64>,
    /// Rank of the world at the other end.
    pub other: u32,
    /// Communicator: index into [`Sides::comms`].
    pub comm: u32,
    /// True where both the call that sends and the one that completes the receive have times and are asked for.
    pub shown: bool,
    /// Tag.
    pub tag: i64,
    /// Bytes that are sent, where these are known.
    pub bytes: Option<u64>,
}

impl Side {
    /// Number of the call at which it is shown: the one that sends, or that completes the receive.
    pub fn seq(&self) -> u64 {
        if self.sends { self.posted } else { self.done.unwrap_or(self.posted) }
    }

    fn words(&self) -> [u64; WORDS] {
        let some = |value: Option<u64>| value.map_or(u64::MAX, |value| value.min(u64::MAX - 1));
        let ends = u64::from(self.other) << 32 | u64::from(self.thread);
        let number = self.number << 2 | u64::from(self.shown) << 1 | u64::from(self.sends);
        [number, ends, self.posted, some(self.done), self.tag as u64, some(self.bytes), self.comm.into()]
    }

    fn of(words: [u64; WORDS]) -> Self {
        let some = |word: u64| (word != u64::MAX).then_some(word);
        Self {
            number: words[0] >> 2,
            shown: words[0] & 2 != 0,
            comm: words[6] as u32,
            sends: words[0] & 1 != 0,
            thread: words[1] as u32,
            posted: words[2],
            done: some(words[3]),
            other: (words[1] >> 32) as u32,
            tag: words[4] as i64,
            bytes: some(words[5]),
        }
    }
}

/// Sides of a rank's messages, by the calls at which they are shown.
#[derive(Debug, Default)]
pub struct AtCalls(Vec<Side>);

impl AtCalls {
    /// The sides at a call of a thread.
    pub fn of(&self, thread: u32, seq: u64) -> &[Side] {
        let key = |side: &Side| (side.thread, side.seq());
        let from = self.0.partition_point(|side| key(side) < (thread, seq));
        let length = self.0[from..].partition_point(|side| key(side) == (thread, seq));
        &self.0[from..from + length]
    }
}

/// Sides of messages by rank; what does not fit in memory is in a file without a name.
#[derive(Debug)]
pub struct Sides {
    held: Vec<Vec<Side>>,
    count: usize,
    most: usize,
    file: Option<File>,
    /// Directory of that file.
    directory: PathBuf,
    /// Of each rank, places in the file and numbers of sides.
    parts: Vec<Vec<(u64, usize)>>,
    end: u64,
    /// Communicators of the messages; of `MPI_COMM_SELF` with the rank.
    pub comms: Vec<(Comm, u32)>,
}

impl Sides {
    fn new(ranks: u32, most: usize, directory: &Path) -> Self {
        let each = || (0..ranks).map(|_| Vec::new()).collect();
        let parts = (0..ranks).map(|_| Vec::new()).collect();
        let directory = directory.to_owned();
        Self { held: each(), count: 0, most, file: None, directory, parts, end: 0, comms: Vec::new() }
    }

    fn add(&mut self, rank: u32, side: Side) -> io::Result<()> {
        let Some(held) = self.held.get_mut(rank as usize) else { return Ok(()) };
        held.push(side);
        self.count += 1;
        if self.count >= self.most { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.directory)?),
        };
        for (held, parts) in self.held.iter_mut().zip(&mut self.parts).filter(|(held, _)| !held.is_empty()) {
            let bytes: Vec<u8> = held.iter().flat_map(Side::words).flat_map(u64::to_le_bytes).collect();
            file.write_all(&bytes)?;
            parts.push((self.end, held.len()));
            self.end += bytes.len() as u64;
            held.clear();
        }
        self.count = 0;
        Ok(())
    }

    /// The sides of `rank` that are shown; they are taken out.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn take(&mut self, rank: u32) -> io::Result<AtCalls> {
        let Some(held) = self.held.get_mut(rank as usize) else { return Ok(AtCalls::default()) };
        let mut sides = std::mem::take(held);
        if let Some(file) = &mut self.file {
            for (place, count) in std::mem::take(&mut self.parts[rank as usize]) {
                let mut bytes = vec![0; count * WORDS * 8];
                file.seek(SeekFrom::Start(place))?;
                file.read_exact(&mut bytes)?;
                sides.extend(bytes.chunks_exact(WORDS * 8).map(|side| {
                    let mut words = [0; WORDS];
                    for (word, bytes) in words.iter_mut().zip(side.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                    Side::of(words)
                }));
            }
        }
        sides.retain(|side| side.shown);
        sides.sort_by_key(|side| (side.thread, side.seq(), side.number));
        Ok(AtCalls(sides))
    }
}

/// A visitor that passes each message to `each`, until it fails.
struct Each<F> {
    each: F,
    times: bool,
    number: u64,
    failed: Option<io::Error>,
}

impl<F: FnMut(u64, &Half<()>, &Half<()>) -> io::Result<()>> Visitor for Each<F> {
    type Stamp = ();

    fn wants_times(&self) -> bool {
        self.times
    }

    fn enter(&mut self, _actor: u32, _at: &At, _count: u64, _terminal: &Terminal) {}

    fn message(&mut self, send: &Half<()>, receive: &Half<()>) {
        if self.failed.is_none() {
            self.number += 1;
            self.failed = (self.each)(self.number, send, receive).err();
        }
    }
}

/// Passes every message of `trace` whose both sides are known to `each`, with its number, sender's and receiver's
/// side; `times` asks for those of the calls.
///
/// # Errors
/// The first error of `each`.
pub fn visit(
    trace: &Trace,
    comms: &Communicators,
    times: bool,
    each: impl FnMut(u64, &Half<()>, &Half<()>) -> io::Result<()>,
) -> io::Result<Outcome<()>> {
    let job = Job::of(trace);
    let mut visitor = Each { each, times, number: 0, failed: None };
    let outcome = play(job.ranks, &job.sources(), comms, &mut visitor);
    visitor.failed.map_or(Ok(outcome), Err)
}

/// The sides of all messages of `trace`, by rank; `selection` tells which are shown. The file that takes what does not
/// fit in memory is in `directory`.
///
/// # Errors
/// Errors of that file.
pub fn sides(
    trace: &Trace,
    comms: &Communicators,
    selection: &Selection,
    directory: &Path,
) -> io::Result<Sides> {
    let takes = |at: Option<At>| {
        at.is_some_and(|at| {
            let in_time = |timed: Timed| selection.takes_time(timed.start_ns, timed.duration_ns);
            selection.takes_rank(at.rank) && at.timed.is_some_and(in_time)
        })
    };
    let mut found = Sides::new(trace.run.ranks, HELD, directory);
    let outcome = visit(trace, comms, true, |number, send, receive| {
        let shown = takes(Some(send.posted)) && takes(receive.done);
        let side = |half: &Half<()>| Side {
            number,
            sends: !half.receives,
            thread: if half.receives { half.done.unwrap_or(half.posted) } else { half.posted }.thread,
            posted: half.posted.seq,
            done: half.done.map(|at| at.seq),
            other: if half.receives { half.channel.from } else { half.channel.to },
            comm: half.channel.comm,
            shown,
            tag: half.channel.tag,
            bytes: send.payload.bytes,
        };
        found.add(send.posted.rank, side(send))?;
        found.add(receive.posted.rank, side(receive))
    })?;
    found.comms = outcome.comms;
    Ok(found)
}

const COLUMNS: [Column; 10] = [
    Column::every("source", Type::Int32),
    Column::every("source_thread", Type::Int32),
    Column::every("send_seq", Type::Int64),
    Column::every("dest", Type::Int32),
    Column::every("dest_thread", Type::Int32),
    Column::every("receive_seq", Type::Int64),
    Column::some("send_done_seq", Type::Int64),
    Column::some("receive_done_seq", Type::Int64),
    Column::every("tag", Type::Int64),
    Column::some("bytes", Type::Int64),
];

/// Writes the messages of `trace` that a rank asked for sends or receives.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    trace: &Trace,
    comms: &Communicators,
    selection: &Selection,
    out: impl Write + Send,
) -> io::Result<u64> {
    let mut rows = RowWriter::new(out, "messages", &COLUMNS)?;
    let mut written = 0;
    visit(trace, comms, false, |_, send, receive| {
        let (from, to) = (send.posted, receive.posted);
        if !selection.takes_rank(from.rank) && !selection.takes_rank(to.rank) {
            return Ok(());
        }
        written += 1;
        let seq = |at: Option<At>| Cell::int(at.map(|at| at.seq as i64));
        rows.push(&[
            Cell::Int(from.rank.into()),
            Cell::Int(from.thread.into()),
            Cell::Int(from.seq as i64),
            Cell::Int(to.rank.into()),
            Cell::Int(to.thread.into()),
            Cell::Int(to.seq as i64),
            seq(send.done),
            seq(receive.done),
            Cell::Int(send.channel.tag),
            Cell::int(send.payload.bytes.map(|bytes| bytes as i64)),
        ])
    })?;
    rows.close()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_come_back_at_their_calls() {
        let dir = tempfile::tempdir().unwrap();
        for most in [2, 5, 1000] {
            let mut sides = Sides::new(3, most, dir.path());
            let side = |number: u64| Side {
                number,
                sends: number.is_multiple_of(2),
                thread: (number % 2) as u32,
                posted: 100 - number / 4,
                done: (!number.is_multiple_of(3)).then_some(200 - number),
                other: number as u32,
                comm: 7,
                shown: !number.is_multiple_of(5),
                tag: -3,
                bytes: (!number.is_multiple_of(4)).then_some(number),
            };
            for number in 1..40 {
                sides.add((number % 3) as u32, side(number)).unwrap();
            }
            for rank in 0..3u32 {
                let found = sides.take(rank).unwrap();
                let own = |number: &u64| (number % 3) as u32 == rank && !number.is_multiple_of(5);
                for (thread, seq) in (0..2).flat_map(|thread| (80..210).map(move |seq| (thread, seq))) {
                    let here = |side: &Side| (side.thread, side.seq()) == (thread, seq);
                    let expected: Vec<Side> = (1..40).filter(own).map(side).filter(here).collect();
                    assert_eq!(found.of(thread, seq), expected, "at most {most}");
                }
                assert_eq!(found.0.len(), (1..40).filter(own).count());
            }
        }
    }
}
