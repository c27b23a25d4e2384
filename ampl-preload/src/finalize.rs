//! The end of a job: messages under way are received, and journals are merged into one trace.

mod bytes_limit;
mod less;
pub mod places;
mod trace_file;

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampl_agent::Thread;
use ampl_agent::shared::Shared;
use ampl_agent::transport::TransportError;
use ampl_core::units::Rank;
use ampl_trace::census::Census;
use ampl_trace::format::{Part, Writer, rank_parts, round_facts, round_gaps, run_parts};
use ampl_trace::from_journal::{Compacted, Within, compact_within};
use ampl_trace::places::Places;
use ampl_trace::record::TEXT_METADATA;
use ampl_trace::rounding::round_windows;
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::Settings;
use ampl_trace::totals::Totals;

use crate::align::Reading;
use crate::ending::{Ended, Ending};
use crate::metadata;
use crate::nodes;
use crate::own_command;
use crate::report::message;
use crate::signals::Held;
use crate::transport::{Channel, Outbox, TAG_MERGE};
use crate::tree::Tree;
use bytes_limit::OwnBytes;
use less::Less;

/// Bytes of one message while a rank's part travels.
const CHUNK: usize = 1 << 20;
/// Ranks that are asked for their parts before it is their turn: waiting ranks poll only now and then.
const AHEAD: u32 = 16;

/// Totals, structure, what rounded summaries lack, and how long own parts are: joined on the way to rank 0.
type Common = (Totals, JobStructure, Census, OwnBytes);

/// Data for the end of the job.
#[derive(Debug)]
pub struct Finalizer {
    /// Journal, plan, rank.
    pub shared: Arc<Shared>,
    /// Nanoseconds on the monotonic clock at T0 of the job.
    pub epoch: i64,
    /// Time in `MPI_Finalize` up to where MPI deletes the attributes of `MPI_COMM_SELF`.
    pub ended: Ended,
    /// How ranks reach each other.
    pub channel: Channel,
    /// Where rank 0 writes the trace.
    pub directory: PathBuf,
    /// Directory of journals; `None` where journals have no names.
    pub journals: Option<PathBuf>,
    /// Ranks of the world.
    pub ranks: u32,
    /// This rank.
    pub rank: u32,
    /// True where a summary follows, or another process reports.
    pub quiet: bool,
    /// This rank's clock in `MPI_Init`, where not all ranks have one clock.
    pub clock: Option<Reading>,
}

impl Finalizer {
    /// Drains the tree, merges the journals into the trace and removes them. `thread` is the calling one's.
    pub fn finalize(&self, tree: &mut Tree, mut thread: Option<&mut Thread>, ending: &Ending) {
        if let Some(thread) = thread.as_deref_mut().filter(|_| self.rank == 0) {
            thread.text(TEXT_METADATA, &metadata::at_finalize().to_bounded_json());
        }
        let drained = tree.drain(thread);
        tree.close(drained.is_ok());
        let merged = drained.and_then(|()| self.align()).and_then(|()| self.merge(ending));
        if self.rank == 0 && merged.is_err() {
            self.dismiss();
        }
        match merged {
            Ok(true) => {
                if self.rank == 0 {
                    nodes::forget(&self.directory);
                }
                self.shared.journal.remove();
                self.journals.iter().for_each(|journals| places::leave(journals));
                self.keep_record();
            }
            Ok(false) => {}
            Err(error) if self.rank == 0 => {
                // Half a trace would hide the journals.
                let _ = fs::remove_file(self.directory.join("trace.ampl"));
                message(&format!("{error}; {}", self.what_is_left()));
            }
            Err(_) => {}
        }
    }

    /// Has the run's record written on rank 0, where no other process will: `ampl exec` has none that outlives the program.
    fn keep_record(&self) {
        if self.rank > 0 || self.quiet || self.shared.plan.config.output.record.is_none() {
            return;
        }
        // The program may go elsewhere.
        let run = std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        if own_command::run(&["record".as_ref(), "--detached".as_ref(), run.as_os_str()]).is_none() {
            let run = run.display();
            message(&format!("the record of the run was not written: 'ampl record {run}' says why"));
        }
    }

    /// Reports to all other ranks that there will be no trace: some may wait for their turn, as long as it takes.
    fn dismiss(&self) {
        for rank in 1..self.ranks {
            self.channel.throw(Rank(rank), TAG_MERGE, vec![0]);
        }
    }

    /// Reports that MPI has not called back.
    pub fn report_left(&self) {
        if self.rank == 0 {
            let left = self.what_is_left();
            message(&format!("MPI has ended without deleting the attributes of MPI_COMM_SELF; {left}"));
        }
    }

    fn what_is_left(&self) -> String {
        match &self.journals {
            Some(journals) => format!("the journals stay unmerged ({})", journals.display()),
            None => "nothing is left of this run, as output.journal is \"off\"".into(),
        }
    }

    /// Removes the drift of the rank's clock since `MPI_Init` from its times, where not all ranks have one clock.
    fn align(&self) -> Result<(), TransportError> {
        let Some(first) = self.clock else { return Ok(()) };
        let fit = first.fit_to(Reading::take(&self.channel, self.ranks, self.rank)?);
        if let Some(drift) = fit.and_then(|fit| fit.drift_ppm) {
            self.shared.journal.correct(|nanos| nanos + first.behind(nanos + self.epoch, drift));
        }
        self.shared.journal.aligned(fit);
        Ok(())
    }

    /// Merges the parts; true where the whole trace is on disk.
    fn merge(&self, ending: &Ending) -> Result<bool, TransportError> {
        let (mut within, mut round) = (Within::default(), 0);
        let (own, common) = loop {
            let (own, common) = self.parts(within);
            let common = self.join(common)?;
            let Some(limit) = self.shared.plan.config.output.max_bytes else { break (own, common) };
            match self.agree(limit, &common, within, round)? {
                Some(Some(less)) => (within, round) = (less, round + 1),
                Some(None) => break (own, common),
                None => return Ok(false),
            }
        };
        let tell = |told: &mut ampl_trace::model::Process| {
            ending.tell(&self.shared.journal, &self.ended, told);
            round_facts(&self.shared.plan, told);
        };
        if self.rank == 0 { self.collect(own, common, tell) } else { self.deliver(own, tell) }
    }

    /// This rank's own part and what it adds to the common ones, of that part of its journal.
    fn parts(&self, within: Within) -> (Option<Compacted>, Common) {
        let mut own = self.own_part(within);
        let common = match &mut own {
            Some(own) => {
                let census = round_windows(&self.shared.plan, &mut own.rank);
                // Totals name the structure's call sites: they come before it is taken.
                let totals = own.totals();
                let structure = JobStructure::of(std::mem::take(&mut own.structure));
                let limited = self.shared.plan.config.output.max_bytes.is_some();
                let windows = own.rank.windows.end();
                let bytes = if limited { OwnBytes::of(&sections(own), windows) } else { OwnBytes::default() };
                (totals, structure, census, bytes)
            }
            None => nothing(self.ranks),
        };
        (own, common)
    }

    /// Part that all ranks are to leave out besides, if any; the outer `None` where there will be no trace.
    fn agree(
        &self,
        limit: u64,
        (totals, structure, census, own): &Common,
        was: Within,
        round: u32,
    ) -> Result<Option<Option<Within>>, TransportError> {
        if self.rank > 0 {
            return Ok(bytes_limit::heard(&self.channel.await_turn(Rank(0), bytes_limit::TOLD)?));
        }
        // Parts are as long as they are in a file; the structure, which is the long one, is encoded once.
        let mut writer = Writer::new(Vec::new());
        let written = writer
            .as_mut()
            .is_ok_and(|writer| writer.totals(totals).and_then(|()| writer.census(census)).is_ok());
        let rest = writer.ok().filter(|_| written).and_then(|writer| writer.finish().ok());
        let rest = rest.map_or(0, |bytes| bytes.len() as u64 + bytes_limit::HEAD);
        let calls = structure.encode().len() as u64;
        let next = bytes_limit::less(limit, *own, [calls, rest], was, round);
        let mut told = Outbox::new(&self.channel);
        for rank in 1..self.ranks {
            told.put(Rank(rank), &bytes_limit::told(next))?;
            told.wait(AHEAD as usize)?;
        }
        told.wait(0)?;
        Ok(Some(next))
    }

    /// Common parts of the ranks from this one on, as many as are joined here: all of them on rank 0.
    ///
    /// Each rank joins its own with that of ranges of twice the length each time, until it sends to the rank that is as
    /// far before it. No rank takes more than the logarithm of the number of ranks, and what ranks have in common is
    /// there once from the first merge on.
    fn join(
        &self,
        (mut totals, mut structure, mut census, mut own): Common,
    ) -> Result<Common, TransportError> {
        let mut distance = 1;
        while distance < self.ranks {
            if self.rank & distance != 0 {
                let mut parcel = Parcel::new(&self.channel, Rank(self.rank - distance));
                for bytes in [structure.encode_fast(), totals.encode(), census.encode(), own.encode()] {
                    parcel.put(&(bytes.len() as u64).to_le_bytes())?;
                    bytes.chunks(CHUNK).try_for_each(|chunk| parcel.put(chunk))?;
                }
                parcel.arrive()?;
                return Ok(nothing(self.ranks));
            }
            if self.rank + distance < self.ranks {
                let from = Rank(self.rank + distance);
                // A part that cannot be read is missing in the trace, which notes that.
                if let Ok(other) = JobStructure::decode(&self.receive_all(from)?) {
                    structure.join(other);
                    structure.unify();
                }
                if let Some(others) = Totals::decode(&self.receive_all(from)?) {
                    totals.join(others);
                }
                if let Some(others) = Census::decode(&self.receive_all(from)?) {
                    census.join(others);
                }
                if let Some(others) = OwnBytes::decode(&self.receive_all(from)?) {
                    own.join(others);
                }
            }
            distance *= 2;
        }
        Ok((totals, structure, census, own))
    }

    /// Bytes of a message, whose length comes before it in 8 bytes.
    fn receive_all(&self, from: Rank) -> Result<Vec<u8>, TransportError> {
        let length = self.channel.receive(from, 8)?;
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes were asked for")) as usize;
        let mut part = Vec::with_capacity(length);
        while part.len() < length {
            part.extend(self.channel.receive(from, CHUNK.min(length - part.len()))?);
        }
        Ok(part)
    }

    /// This rank's part of the trace; `None` where the journal cannot be read.
    fn own_part(&self, within: Within) -> Option<Compacted> {
        let trace = &self.shared.plan.config.trace;
        let settings = Settings { error: trace.time_error, floor_ns: trace.time_floor_ns };
        let own = self
            .shared
            .journal
            .contents()
            .ok()
            .and_then(|map| compact_within(map.bytes(), settings, within).ok());
        own.map(|mut own| {
            // A rank that has come to its end has no current call.
            own.rank.process.threads.clear();
            if !trace.addresses {
                own.rank.places = Places::default();
            }
            if self.shared.plan.leaves_out_summaries() {
                own.rank.leave_out_summaries();
            }
            round_gaps(&self.shared.plan, &mut own.rank);
            own
        })
    }

    /// On the other ranks: waits to be asked, sends, waits until all is written.
    fn deliver(
        &self,
        mut own: Option<Compacted>,
        tell: impl Fn(&mut ampl_trace::model::Process),
    ) -> Result<bool, TransportError> {
        let client = Rank(0);
        if self.channel.await_turn(client, 1)? != [1] {
            return Ok(false);
        }
        // Last, but for the sending.
        if let Some(own) = &mut own {
            tell(&mut own.rank.process);
        }
        let own_sections = own.as_ref().map(sections).unwrap_or_default();
        let mut parcel = Parcel::new(&self.channel, client);
        parcel.put(&Part::packed_bytes(&own_sections).to_le_bytes())?;
        Part::pack(&own_sections, CHUNK, |chunk| parcel.put(chunk))?;
        parcel.arrive()?;
        // Waiting takes as long as all other ranks' parts do.
        drop(own_sections);
        drop(own);
        Ok(self.channel.await_turn(client, 1)? == [1])
    }

    /// On rank 0: takes one rank's part after the other, so that memory holds one, and MPI's copies of the few that
    /// were asked ahead.
    fn collect(
        &self,
        own: Option<Compacted>,
        (totals, structure, census, _): Common,
        tell: impl Fn(&mut ampl_trace::model::Process),
    ) -> Result<bool, TransportError> {
        let mut told = own.as_ref().map(|own| own.rank.process.clone());
        let _held = FileSizeSignal::hold();
        let mut asked = Outbox::new(&self.channel);
        // Before the structure is coded: meanwhile they poll.
        for rank in 1..self.ranks.min(1 + AHEAD) {
            asked.put(Rank(rank), &[1])?;
        }
        let path = self.directory.join("trace.ampl");
        let mut file = trace_file::create(&path, self.shared.plan.config.output.mode)
            .map(BufWriter::new)
            .and_then(Writer::new)
            .and_then(|mut writer| {
                writer.structure(&structure)?;
                writer.totals(&totals)?;
                writer.census(&census)?;
                Ok(writer)
            });
        drop((totals, structure, census));
        // A full disk must not keep the other ranks waiting: they are asked all the same.
        let mut write = |sections: &[Part<'_>]| {
            if let Ok(writer) = &mut file
                && let Err(error) = writer.rank(sections)
            {
                file = Err(error);
            }
        };
        let (mut unread, mut less) = (Vec::new(), Less::default());
        match own {
            Some(own) => {
                let parts = sections(&own);
                less.note(&parts);
                write(&parts);
            }
            None => unread.push(0),
        }
        for rank in 1..self.ranks {
            let part = self.receive_all(Rank(rank))?;
            if let Some(next) = rank.checked_add(AHEAD).filter(|&next| next < self.ranks) {
                asked.put(Rank(next), &[1])?;
                asked.wait(AHEAD as usize)?;
            }
            let parts = Part::unpack(&part).unwrap_or_default();
            if parts.is_empty() {
                unread.push(rank);
            }
            less.note(&parts);
            write(&parts);
        }
        if let (Ok(writer), Some(told)) = (&mut file, &mut told) {
            tell(told);
            writer.amend(told);
        }
        let written = match file.and_then(Writer::finish) {
            Ok(_) if !unread.is_empty() => self.lacks(&unread),
            Ok(_) => true,
            Err(error) => {
                let left = self.what_is_left();
                message(&format!("cannot write the trace ({}): {error}; {left}", path.display()));
                let _ = fs::remove_file(&path);
                false
            }
        };
        if written {
            ampl_trace::permissions::as_directory(&path);
            self.report_bytes(&path);
        }
        asked.wait(0)?;
        for rank in 1..self.ranks {
            asked.put(Rank(rank), &[u8::from(written)])?;
        }
        asked.wait(0)?;
        if written && !self.quiet {
            let unnamed = crate::environment::named_directory().is_none();
            less.messages(self.ranks, &self.directory, unnamed).iter().for_each(|said| message(said));
        }
        Ok(written)
    }

    /// Reports a trace that is larger than it may be.
    fn report_bytes(&self, path: &Path) {
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        if let Some(limit) = self.shared.plan.config.output.max_bytes.filter(|&limit| bytes > limit) {
            message(&format!(
                "the trace has {bytes} bytes, more than output.max_bytes ({limit}): summaries of windows and facts about the run \
                 are always stored ({})",
                path.display()
            ));
        }
    }

    /// Reports ranks that could not read their journals, for want of memory mostly; returns true where the trace
    /// without them is all there will be.
    ///
    /// Journals on disk stay: outside of the job there is room to read them.
    fn lacks(&self, ranks: &[u32]) -> bool {
        let (first, count) = (ranks[0], ranks.len());
        let what =
            format!("{count} of {} ranks could not read their journals (rank {first} first)", self.ranks);
        if self.journals.is_none() {
            message(&format!("{what}; the trace is without them"));
            return true;
        }
        message(&format!("{what}; {}: 'ampl recover' reads them", self.what_is_left()));
        let _ = fs::remove_file(self.directory.join("trace.ampl"));
        false
    }
}

/// Messages to one rank that belong together.
struct Parcel<'a> {
    to: Rank,
    outbox: Outbox<'a>,
}

impl<'a> Parcel<'a> {
    /// Messages that are copied before the first is taken: a length and a chunk, twice.
    const AT_ONCE: usize = 4;

    fn new(channel: &'a Channel, to: Rank) -> Self {
        Self { to, outbox: Outbox::new(channel) }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        self.outbox.wait(Self::AT_ONCE - 1)?;
        self.outbox.put(self.to, bytes)
    }

    /// Waits until all have been taken.
    fn arrive(mut self) -> Result<(), TransportError> {
        self.outbox.wait(0)
    }
}

/// Holds back the signal of a file grown past the process's limit on this thread: writing then fails, which can be
/// reported, instead of ending the job.
struct FileSizeSignal(Held);

impl FileSizeSignal {
    fn hold() -> Self {
        Self(Held::only(libc::SIGXFSZ))
    }
}

impl Drop for FileSizeSignal {
    fn drop(&mut self) {
        // Take our own writing's signal before the mask is put back.
        self.0.take(libc::SIGXFSZ);
    }
}

/// Common parts of no rank, in a job of `ranks`.
fn nothing(ranks: u32) -> Common {
    (Totals::default(), JobStructure::new(ranks), Census::default(), OwnBytes::default())
}

fn sections(compacted: &Compacted) -> Vec<Part<'_>> {
    // Decisions are on the client's rank, which may differ from the one that has the run's data.
    let mut parts = run_parts(compacted.run.as_ref(), &compacted.decisions);
    parts.extend(rank_parts(&compacted.rank));
    parts
}
