//! Stretches of time in functions of MPI: of stored calls, and of blocks of them where these are enough.

use ampl_core::mpi::FUNCTIONS;
use ampl_reader::Rank;
use ampl_trace::record::CALL_UNFINISHED;
use ampl_trace::time_index::{CallReader, Chunk};
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::Decoder;

use super::stored::{Damaged, Stored};

/// A stretch of time in a function of MPI.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index of its function.
    pub function: u16,
    /// Start, nanoseconds since T0; of several calls, that of the first.
    pub start_ns: i64,
    /// End; of several calls, that of the last.
    pub end_ns: i64,
    /// Time in the calls, where there are several, all of them between start and end.
    pub several_ns: Option<u64>,
}

/// Stored calls, or time in them, for a timeline.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Calls of MPI that end in a window, by index, of a thread, by index.
    Calls {
        /// The window.
        window: Option<usize>,
        /// The thread.
        thread: usize,
        /// Number of calls.
        calls: u64,
    },
    /// Time in MPI, in calls that end in that window.
    Time(Option<usize>, Span),
}

impl Stored<'_> {
    /// Passes the stored calls of MPI to `each`: those of an index together where `is_one` accepts the start of the
    /// first, the end of the last, and the start of their window.
    pub fn spans(
        &self,
        is_one: impl Fn(i64, i64, i64) -> bool,
        mut each: impl FnMut(Event),
    ) -> Result<(), Damaged> {
        let Some(index) = &self.index else { return self.decoded_spans(each) };
        let mut reader = self.reader(index);
        for chunk in index.chunks() {
            let Some(thread) = self.thread(chunk.thread) else { continue };
            let window = self.window(chunk.window);
            let functions = chunk.functions().ok_or(Damaged)?;
            let calls = functions.iter().filter(|(function, _)| is_mpi(*function));
            let calls: u64 = calls.map(|(_, calls)| calls).sum();
            if calls > 0 {
                each(Event::Calls { window, thread, calls });
            }
            self.chunk_spans(&mut reader, chunk, (window, thread), &is_one, &mut each).ok_or(Damaged)?;
        }
        Ok(())
    }

    fn chunk_spans(
        &self,
        reader: &mut CallReader<'_>,
        chunk: &Chunk<'_>,
        (window, thread): (Option<usize>, usize),
        is_one: impl Fn(i64, i64, i64) -> bool,
        mut each: impl FnMut(Event),
    ) -> Option<()> {
        let begin = window.map_or(i64::MAX, |window| self.windows()[window].start_ns);
        let signatures = &self.rank.structure.threads[thread].signatures;
        let mut whole = Some(());
        chunk.blocks(|block, sums| {
            if !chunk.is_unfinished && is_one(block.low_ns, block.high_ns, begin) {
                for &(function, ns) in sums.iter().filter(|(function, ns)| is_mpi(*function) && *ns > 0) {
                    let (start_ns, end_ns) = (block.low_ns, block.high_ns);
                    each(Event::Time(window, Span { function, start_ns, end_ns, several_ns: Some(ns) }));
                }
                return;
            }
            let read = reader.block(block, |call| {
                let Some(signature) = signatures.get(call.terminal as usize) else { return };
                let length = if signature.flags & CALL_UNFINISHED != 0 { 0 } else { call.duration_ns };
                let end_ns = call.start_ns.saturating_add_unsigned(length);
                let (function, start_ns) = (signature.function, call.start_ns);
                if is_mpi(function) {
                    each(Event::Time(window, Span { function, start_ns, end_ns, several_ns: None }));
                }
            });
            whole = whole.and(read);
        })?;
        whole
    }

    fn decoded_spans(&self, mut each: impl FnMut(Event)) -> Result<(), Damaged> {
        let Rank { trace, structure, .. } = &self.rank;
        if trace.times.is_empty() {
            return Ok(());
        }
        let mut decoder = Decoder::new(&trace.times).map_err(|_| Damaged)?;
        let mut last: Option<(u64, Option<usize>)> = None;
        let read = for_each_at(structure, &mut decoder, |window, terminal, _, time| {
            let index = match last {
                Some((number, found)) if number == window.window => found,
                _ => last.insert((window.window, self.window(window.window))).1,
            };
            let Some(thread) = self.thread(window.thread) else { return };
            let signature = structure.threads[thread].signatures.get(terminal.number as usize);
            let function = signature.map(|signature| signature.function);
            let Some(function) = function.filter(|&function| is_mpi(function)) else { return };
            let length = if self.unfinished(thread, terminal.number) { 0 } else { time.duration_ns };
            let end_ns = time.start_ns.saturating_add_unsigned(length);
            each(Event::Calls { window: index, thread, calls: time.count.max(1) });
            each(Event::Time(index, Span { function, start_ns: time.start_ns, end_ns, several_ns: None }));
        });
        read.map_err(|_| Damaged)
    }
}

/// True for functions of MPI.
fn is_mpi(function: u16) -> bool {
    usize::from(function) < FUNCTIONS.len()
}
