//! The end of a job: MPI deletes the attributes of `MPI_COMM_SELF`; messages under way are received, and journals are
//! merged into one trace.
//!
//! Delete callbacks run last-in first-out and ours was set in `MPI_Init`, so the application's own
//! have run. MPI still works then (MPI-4.1 §11.2.4).

mod less;
pub mod places;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_agent::transport::TransportError;
use ampl_core::units::Rank;
use ampl_core::value::ObjectKind;
use ampl_trace::format::{Part, Writer, rank_parts, run_parts};
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::record::TEXT_METADATA;
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::Settings;
use ampl_trace::totals::Totals;

use crate::align::Reading;
use crate::caller::is_library_of_mpi;
use crate::ending::Ending;
use crate::entry::{Entry, entry};
use crate::init::{message, nodes};
use crate::metadata;
use crate::process::{self, Process, contained};
use crate::resolve;
use crate::signals::Held;
use crate::transport::{Channel, Outbox, TAG_MERGE};
use crate::tree::Tree;
use less::Less;

/// Bytes of one message while a rank's part travels.
const CHUNK: usize = 1 << 20;
/// Ranks that are asked for their parts before it is their turn: waiting ranks poll only now and then.
const AHEAD: u32 = 16;

/// Totals and structure that are joined on the way to rank 0.
type Common = (Totals, JobStructure);

/// Data for the end of the job.
#[derive(Debug)]
pub struct Settlement {
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

static TO_SETTLE: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn copy_nothing(_: usize, _: i32, _: usize, _: usize, _: usize, flag: *mut i32) -> i32 {
    // SAFETY: MPI passes a place for the answer: the attribute is not copied.
    unsafe { *flag = 0 };
    0
}

unsafe extern "C" fn at_deletion(_: usize, _: i32, _: usize, _: usize) -> i32 {
    let process = TO_SETTLE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null or the process, which is never freed.
    if let Some(process) = unsafe { process.as_ref() }
        && contained(|| process.end()).is_none()
    {
        // No rank may wait for this one's messages.
        contained(|| process.give_up());
    }
    0
}

/// The block of the thread that is in MPI's own `MPI_Finalize`, until it has given up.
static ENDING: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());

/// MPI's own `MPI_Finalize` is about to be called on this thread.
pub fn is_entered() {
    ENDING.store(entry(), Ordering::Release);
}

/// Notes that a thread sleeps, and goes on at `back`.
///
/// Where a delete callback of the program's fails, Open MPI deletes no more attributes of `MPI_COMM_SELF`, and waits
/// for all processes to come to its end, sleeping now and then. Ours is not called then, and others, which wait for
/// this rank in theirs, would never come. So it reports that it takes no further part. Merging here would wait for
/// ranks that MPI may let go.
pub fn is_sleeping(back: u64) {
    let process = TO_SETTLE.load(Ordering::Acquire);
    if !process.is_null()
        && ENDING.load(Ordering::Acquire) == entry()
        && is_library_of_mpi(&resolve::module(back).0)
    {
        ENDING.store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: the process, which is never freed.
        contained(|| unsafe { (*process).give_up() });
    }
}

/// Notes that `MPI_Finalize` has returned. Where a session is left MPI ends with that; a run that is unmerged when the
/// process ends stays so.
pub fn is_left() {
    ENDING.store(std::ptr::null_mut(), Ordering::Release);
    if !TO_SETTLE.load(Ordering::Acquire).is_null() {
        // SAFETY: a function without arguments.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    let process = TO_SETTLE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null or the process, which is never freed.
    if let Some(process) = unsafe { process.as_ref() }
        && process::is_active()
    {
        contained(|| process.say_left());
    }
}

impl Settlement {
    /// Has MPI call [`Process::end`] when it ends. Where it refuses, journals stay unmerged.
    pub fn arm(&self, process: &'static Process) {
        let Some(own) = process.abi.handle(ObjectKind::Comm, "MPI_COMM_SELF") else { return };
        TO_SETTLE.store(std::ptr::from_ref(process).cast_mut(), Ordering::Release);
        let mut keyval = 0i32;
        let pmpi = &process.pmpi;
        // SAFETY: callbacks of the standard's types, a place for the key, and a valid communicator.
        unsafe {
            let copy = copy_nothing as *const () as usize;
            let delete = at_deletion as *const () as usize;
            if (pmpi.comm_create_keyval)(copy, delete, &raw mut keyval as usize, 0) == 0 {
                (pmpi.comm_set_attr)(own, keyval as usize, 0);
            }
        }
    }

    /// Drains the tree, merges the journals into the trace and removes them.
    pub fn settle(&self, process: &Process, tree: &mut Tree, ending: &Ending) {
        // SAFETY: the calling thread's own block and state, which no wrapper uses now: the
        // application is inside MPI_Finalize on this thread.
        let mut state = unsafe { (*entry()).thread.as_mut() };
        if let Some(state) = state.as_mut().filter(|_| self.rank == 0) {
            state.thread.text(TEXT_METADATA, &metadata::at_finalize().to_bounded_json());
        }
        let drained = tree.settle(state.map(|state| &mut state.thread));
        tree.close(drained.is_ok());
        let settled = drained.and_then(|()| self.align(process)).and_then(|()| self.merge(process, ending));
        if self.rank == 0 && settled.is_err() {
            self.dismiss();
        }
        match settled {
            Ok(true) => {
                if self.rank == 0 {
                    nodes::forget(&self.directory);
                }
                process.shared.journal.remove();
                let Some(journals) = &self.journals else { return };
                places::leave(journals);
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

    /// Reports to all other ranks that there will be no trace: some may wait for their turn, as long as it takes.
    fn dismiss(&self) {
        for rank in 1..self.ranks {
            self.channel.throw(Rank(rank), TAG_MERGE, vec![0]);
        }
    }

    /// Reports that MPI has not called back.
    pub fn say_left(&self) {
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
    fn align(&self, process: &Process) -> Result<(), TransportError> {
        let Some(first) = self.clock else { return Ok(()) };
        let fit = first.fit_to(Reading::take(&self.channel, self.ranks, self.rank)?);
        if let Some(drift) = fit.and_then(|fit| fit.drift_ppm) {
            process.shared.journal.correct(|nanos| nanos + first.behind(nanos + process.epoch, drift));
        }
        process.shared.journal.aligned(fit);
        Ok(())
    }

    /// Merges the parts; true where the whole trace is on disk.
    fn merge(&self, process: &Process, ending: &Ending) -> Result<bool, TransportError> {
        let mut own = self.own_part(process);
        let common = match &mut own {
            Some(own) => (own.totals(), JobStructure::of(std::mem::take(&mut own.structure))),
            None => (Totals::default(), JobStructure::new(self.ranks)),
        };
        let common = self.join(common)?;
        let tell = |told: &mut ampl_trace::model::Process| {
            ending.tell(&process.shared.journal, &process.ended, told);
        };
        if self.rank == 0 { self.collect(own, common, tell) } else { self.deliver(own, tell) }
    }

    /// Totals and structure of the ranks from this one on, as many as are joined here: all of them on rank 0.
    ///
    /// Each rank joins its own with that of ranges of twice the length each time, until it sends to the rank that is as
    /// far before it. No rank takes more than the logarithm of the number of ranks, and what ranks have in common is
    /// there once from the first merge on.
    fn join(&self, (mut totals, mut structure): Common) -> Result<Common, TransportError> {
        let mut distance = 1;
        while distance < self.ranks {
            if self.rank & distance != 0 {
                let mut parcel = Parcel::new(&self.channel, Rank(self.rank - distance));
                for bytes in [structure.pack(), totals.encode()] {
                    parcel.put(&(bytes.len() as u64).to_le_bytes())?;
                    bytes.chunks(CHUNK).try_for_each(|chunk| parcel.put(chunk))?;
                }
                parcel.arrive()?;
                return Ok((Totals::default(), JobStructure::new(self.ranks)));
            }
            if self.rank + distance < self.ranks {
                let from = Rank(self.rank + distance);
                // A part that cannot be read is missing in the trace, which notes that.
                if let Ok(other) = JobStructure::decode(&self.receive_all(from)?) {
                    structure.join(other);
                }
                if let Some(others) = Totals::decode(&self.receive_all(from)?) {
                    totals.join(others);
                }
            }
            distance *= 2;
        }
        Ok((totals, structure))
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
    fn own_part(&self, process: &Process) -> Option<Compacted> {
        let trace = &process.shared.plan.config.trace;
        let settings = Settings { error: trace.time_error, floor_ns: trace.time_floor_ns };
        let own = process.shared.journal.contents().ok().and_then(|map| compact(map.bytes(), settings).ok());
        own.map(|mut own| {
            // A rank that has come to its end has no current call.
            own.rank.process.threads.clear();
            if process.shared.plan.leaves_out_summaries() {
                own.rank.leave_out_summaries();
            }
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
        (totals, structure): Common,
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
        let mut file =
            File::create(&path).map(BufWriter::new).and_then(Writer::new).and_then(|mut writer| {
                writer.structure(&structure)?;
                writer.totals(&totals)?;
                Ok(writer)
            });
        drop((totals, structure));
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

fn sections(compacted: &Compacted) -> Vec<Part<'_>> {
    // Decisions are on the client's rank, which may differ from the one that has the run's data.
    let mut parts = run_parts(compacted.run.as_ref(), &compacted.decisions);
    parts.extend(rank_parts(&compacted.rank));
    parts
}
