//! Work inside `MPI_Init`: ranks agree on a run directory, a start of time and a configuration, or on having no agent.
//!
//! These are the only collectives that ampl adds to a job; the application is inside its own
//! collective then. After a disagreement every rank goes on unobserved.

mod announce;
mod programs;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampl_agent::CallEnd;
use ampl_agent::journal::{Identity, Journal};
use ampl_agent::memory_limit::MemoryLimit;
use ampl_agent::shared::Shared;
use ampl_agent::window::Boundary;
use ampl_client::Policy;
use ampl_core::config::{self, Config};
use ampl_core::mpi::Function;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::plan::{Plan, with_programs};
use ampl_core::units::Rank;
use ampl_core::value::ObjectKind;
use ampl_trace::model::RunInfo;
use ampl_trace::permissions::{as_directory, create_file};
use ampl_trace::record::{TEXT_METADATA, TEXT_RUN};

use crate::abi::{self, Abi};
use crate::align;
use crate::allocated;
use crate::cgroup;
use crate::clock;
use crate::copier;
use crate::counters;
use crate::counts;
use crate::ending::Ended;
use crate::environment;
use crate::finalize::{Finalizer, places};
use crate::fortran::Fortran;
use crate::hot_state;
use crate::metadata;
use crate::nodes;
use crate::pmpi::Pmpi;
use crate::presence;
use crate::report::message;
use crate::thread_state::ThreadState;
use crate::transport::{Channel, MpiTransport};
use crate::tree::{self, Tree};
use crate::uncovered;
use crate::watch::Watch;
use announce::{Announcement, announce};

/// File in the run directory with the settings and the places of journals.
const RUN_FILE: &str = "run.toml";

/// Of the messages by which Open MPI's ranks agree on our communicator, on the world. Its receives name their
/// sources and are done with when `MPI_Init` returns: no message of the program can take the place of one.
const AGREEMENT_TAG: usize = 0;

/// Everything that the process needs.
#[derive(Debug)]
pub struct Parts {
    /// The loaded MPI's interface.
    pub abi: &'static Abi,
    /// The functions ampl calls.
    pub pmpi: &'static Pmpi,
    /// Journal, plan, rank.
    pub shared: Arc<Shared>,
    /// True where several threads may be inside of MPI at once.
    pub concurrent: bool,
    /// T0 on this process's monotonic clock.
    pub epoch: i64,
    /// The rank's place in the tree.
    pub tree: Tree,
    /// Data for the end of the job.
    pub finalizer: Finalizer,
    /// How to read Fortran calls.
    pub fortran: Fortran,
    /// Written into the journal of rank 0.
    pub run: RunInfo,
}

/// Agrees with the other ranks; `None` where there is to be no agent.
pub fn begin(before: (u64, i64)) -> Option<Parts> {
    if environment::is_disabled() {
        return None;
    }
    let abi = abi::detect()?;
    let pmpi: &'static Pmpi = Box::leak(Box::new(Pmpi::load()?));
    let world = abi.handle(ObjectKind::Comm, "MPI_COMM_WORLD")?;
    let (ranks, rank) = size_and_rank(pmpi, world);
    let agreed = presence::agree(abi.family == AbiFamily::OpenMpi, ranks, rank)?;
    let _watch = (ranks > 1).then(|| Watch::start(rank));
    let channel = private_channel(abi, pmpi, world)?;

    let programs = programs::gather(&channel, ranks, rank).unwrap_or_default();
    let mine = if rank == 0 { announce(abi, pmpi, ranks, programs) } else { None };
    let told = broadcast(&channel, mine)?;
    // Without an announcement rank 0 has reported why.
    let directory = told.as_ref().map(|announcement| announcement.directory.clone());
    let (epoch, clock) = told.as_ref().map_or((0, 0), |told| (told.epoch, told.clock));
    let quiet = told
        .as_ref()
        .is_some_and(|told| told.awaited || told.alone.as_ref().is_some_and(|alone| alone.number > 0));
    let apart = directory.is_some() && clock != align::identity();
    let prepared = told.map(|announcement| prepare(&announcement, ranks, rank, before));
    let obstacle = prepared.as_ref().is_none_or(Result::is_err);
    let displaced = matches!(&prepared, Some(Ok(prepared)) if prepared.displaced.is_some());
    let first = first_of(&channel, ranks, rank, [obstacle, displaced, apart]);
    let [first_obstacle, first_displaced, first_apart] = first;
    // All have come so far.
    drop(agreed);
    // Either every rank observes, or none does: a tree with holes would only wait.
    if let Some(first) = first_obstacle {
        match prepared {
            Some(Ok(prepared)) => {
                prepared.shared.journal.remove();
                prepared.journal_directory.iter().for_each(|made| places::leave(made));
            }
            // One message suffices, however many ranks it is true of.
            Some(Err(why)) if first == rank => message(&format!("{why}; the job goes on without ampl")),
            _ => {}
        }
        if rank == 0
            && let Some(directory) = directory
        {
            // Nothing will come into it: nobody must find half of a run.
            let _ = fs::remove_file(directory.join(RUN_FILE));
            let _ = fs::remove_dir(directory);
        }
        return None;
    }
    let mut prepared = prepared?.ok()?;
    let itself = abi.handle(ObjectKind::Comm, "MPI_COMM_SELF")?;
    prepared
        .shared
        .journal
        .constants([abi.any_source, abi.any_tag, abi.proc_null, abi.root], [world as u64, itself as u64]);
    let reading = first_apart.and_then(|_| align::Reading::take(&channel, ranks, rank).ok());
    if let Some(reading) = reading {
        prepared.set_epoch(epoch - reading.offset);
        prepared.shared.journal.aligned(reading.fit());
    }
    if let Some(why) = prepared.displaced.as_ref().filter(|_| first_displaced == Some(rank)) {
        message(&format!(
            "rank {rank} cannot make its journal ({why}): it, and whoever else cannot, keeps it in memory, which a \
             job that dies does not leave; set output.journal to another place"
        ));
    }
    if let Some(journals) = prepared.journal_directory.as_ref().filter(|_| prepared.displaced.is_none()) {
        nodes::note(&prepared.directory, rank, journals);
        let output = &prepared.shared.plan.config.output;
        if let Some(interval_ns) = output.copy_ns.filter(|_| output.journal == config::Journal::Node) {
            copier::start(&prepared.directory, journals, interval_ns);
        }
    }
    let plan = &prepared.shared.plan;
    let tree = Tree::new(plan, Rank(rank), |node| {
        MpiTransport::new(channel, node.parent(), node.children(), node.message_bytes()).ok()
    });
    let (directive, _) = Policy::new(plan).first_directive();
    prepared.shared.direct(directive);
    Some(Parts {
        abi,
        pmpi,
        concurrent: is_concurrent(abi, pmpi),
        epoch: prepared.epoch,
        tree,
        finalizer: Finalizer {
            shared: prepared.shared.clone(),
            epoch: prepared.epoch,
            ended: Ended::default(),
            channel,
            directory: prepared.directory,
            journals: prepared.journal_directory,
            ranks,
            rank,
            clock: reading,
            quiet,
        },
        fortran: Fortran::new(abi, &pmpi.library_version()),
        run: prepared.run,
        shared: prepared.shared,
    })
}

fn private_channel(abi: &Abi, pmpi: &'static Pmpi, world: usize) -> Option<Channel> {
    let byte = abi.handle(ObjectKind::Type, "MPI_BYTE")?;
    let returns = abi.handle(ObjectKind::Errhandler, "MPI_ERRORS_RETURN")?;
    let comm = private_communicator(abi, pmpi, world)?;
    // SAFETY: our own communicator: an error there must come back to us, not end the job.
    unsafe { (pmpi.comm_set_errhandler)(comm, returns) };
    Some(Channel {
        pmpi,
        comm,
        byte,
        status_ignore: abi.status_ignore,
        statuses_ignore: abi.statuses_ignore,
        request_null: abi.handle(ObjectKind::Request, "MPI_REQUEST_NULL")?,
        handle_bytes: abi.handle_bytes,
    })
}

/// A communicator of all ranks of the world that only ampl knows; `None` where MPI refuses.
///
/// Under Open MPI it isn't a duplicate: to agree on a number for one, Open MPI runs nonblocking collectives on the
/// world, and each takes the next of the world's tags for good. Up to 4.1.8 and 5.0.10 two of these, -50 and -51, are
/// `MPI_Dist_graph_create`'s as well (open-mpi/ompi issue 13918): a program that misses them by itself may meet them
/// when the count has moved. `MPI_Comm_create_group` agrees by messages, and the world's count stays as it was.
fn private_communicator(abi: &Abi, pmpi: &Pmpi, world: usize) -> Option<usize> {
    let mut comm = 0usize;
    let new = &raw mut comm as usize;
    // SAFETY: every rank of the world does the same inside its MPI_Init.
    let code = unsafe {
        if abi.family == AbiFamily::OpenMpi {
            let mut group = 0usize;
            let asked = (pmpi.comm_group)(world, &raw mut group as usize);
            if asked != 0 {
                return None;
            }
            let code = (pmpi.comm_create_group)(world, group, AGREEMENT_TAG, new);
            (pmpi.group_free)(&raw mut group as usize);
            code
        } else {
            (pmpi.comm_dup)(world, new)
        }
    };
    (code == 0).then_some(comm)
}

fn size_and_rank(pmpi: &Pmpi, comm: usize) -> (u32, u32) {
    let (mut size, mut rank) = (0i32, 0i32);
    // SAFETY: a valid communicator and places for ints.
    unsafe {
        (pmpi.comm_size)(comm, &raw mut size as usize);
        (pmpi.comm_rank)(comm, &raw mut rank as usize);
    }
    (size as u32, rank as u32)
}

/// True where several threads may be inside of MPI at once.
fn is_concurrent(abi: &Abi, pmpi: &Pmpi) -> bool {
    let mut provided = 0i32;
    // SAFETY: a place for an int.
    unsafe { (pmpi.query_thread)(&raw mut provided as usize) };
    // MPI_THREAD_MULTIPLE is all that is above.
    provided > abi.thread_serialized
}

/// Rank 0's announcement, on every rank; an empty message is `None`. The outer `None`: MPI refused.
fn broadcast(channel: &Channel, mine: Option<Announcement>) -> Option<Option<Announcement>> {
    let mut bytes = mine.map_or(Vec::new(), |mine| serde_json::to_vec(&mine).unwrap_or_default());
    let mut length = (bytes.len() as u64).to_le_bytes();
    channel.broadcast(&mut length)?;
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    if bytes.is_empty() {
        return Some(None);
    }
    channel.broadcast(&mut bytes)?;
    Some(serde_json::from_slice(&bytes).ok())
}

/// The first rank that met an obstacle, the first whose journal is displaced and the first whose clock is not rank 0's,
/// agreed by all ranks: a reduction by point-to-point to rank 0 and a broadcast back. A rank whose MPI calls fail
/// counts as an obstacle.
fn first_of(channel: &Channel, ranks: u32, rank: u32, mine: [bool; 3]) -> [Option<u32>; 3] {
    let mut first = mine.map(|mine| if mine { rank } else { u32::MAX });
    let bytes = |first: [u32; 3]| first.map(u32::to_le_bytes).concat();
    let read = |bytes: Vec<u8>| -> [u32; 3] {
        std::array::from_fn(|at| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * at + byte])))
    };
    let tree = ampl_client::Topology::new(ranks, Rank(0), 2);
    for child in tree.children(Rank(rank)) {
        let told = channel.receive(child, 12).map_or([child.0, u32::MAX, u32::MAX], read);
        first = std::array::from_fn(|at| first[at].min(told[at]));
    }
    if let Some(parent) = tree.parent(Rank(rank))
        && channel.send(parent, &bytes(first)).is_err()
    {
        return [Some(rank), None, None];
    }
    let mut answer = bytes(first);
    match channel.broadcast(&mut answer) {
        Some(()) => read(answer).map(|first| Some(first).filter(|&first| first != u32::MAX)),
        None => [Some(rank), None, None],
    }
}

struct Prepared {
    shared: Arc<Shared>,
    epoch: i64,
    directory: PathBuf,
    /// Directory of journals; `None` where journals have no names.
    journal_directory: Option<PathBuf>,
    /// Reason why this rank's journal is not there.
    displaced: Option<String>,
    run: RunInfo,
}

impl Prepared {
    /// Sets T0 to `epoch` on this process's monotonic clock.
    fn set_epoch(&mut self, epoch: i64) {
        self.shared.journal.correct(|nanos| nanos + self.epoch - epoch);
        self.epoch = epoch;
    }
}

/// On every rank: prepares plan, counters and journal; or returns why one cannot be.
fn prepare(told: &Announcement, ranks: u32, rank: u32, before: (u64, i64)) -> Result<Prepared, String> {
    let unreadable =
        |what: &dyn std::fmt::Display| format!("rank {rank} cannot read the configuration: {what}");
    let (config, _) = Config::parse(&told.config).map_err(|errors| unreadable(&errors))?;
    if Boundary::new(&config.window.marker, config.window.every).is_none() {
        return Err(
            "the marker's site is a source line: start the program with `ampl exec` or `ampl run`, which \
                    resolve it"
                .into(),
        );
    }
    let config = with_programs(config, &told.programs());
    let plan = Plan::new(config, ranks).map_err(|error| unreadable(&error))?;
    let arguments = plan.config.output.arguments;
    let counters = counters::open(&plan).map_err(|refusal| format!("rank {rank}: {refusal}"))?;
    let journal_directory = journal_directory(&plan.config.output.journal, told);
    // T0 on this process's monotonic clock: where that is not rank 0's, by the wall clocks to begin with.
    let epoch = match align::identity() == told.clock {
        true => told.epoch,
        false => told.started_ns - (clock::epoch_ns() - clock::monotonic_ns()),
    };
    let identity = Identity {
        rank,
        ranks,
        pid: std::process::id(),
        host: environment::host(),
        cpus: environment::cpus(),
        started: environment::started(),
        pid_namespace: environment::pid_namespace(),
        run: told.directory.to_string_lossy().into_owned(),
        program: Some(environment::program()).filter(|own| *own != told.program).unwrap_or_default(),
        first_pair: (before.0, before.1 - epoch),
    };
    let in_memory = || {
        let journal = Journal::in_memory(&identity);
        journal.map_err(|error| format!("rank {rank} cannot make its journal (memory): {error}"))
    };
    let (journal, displaced) = match &journal_directory {
        None => (in_memory()?, None),
        Some(directory) => {
            let path = directory.join(format!("rank-{rank:06}.journal"));
            match places::make(directory).and_then(|()| Journal::create(&path, &identity)) {
                Ok(journal) => (journal, None),
                Err(error) => (in_memory()?, Some(format!("{}: {error}", path.display()))),
            }
        }
    };
    let limit = plan.config.agent.max_memory.map(|most| MemoryLimit {
        most,
        allocated: allocated::bytes,
        // Without the launcher's word, those whose journals are seen count.
        ranks: presence::ranks_on_node(ranks, rank).unwrap_or(1).into(),
    });
    let journal = Arc::new(journal.limited(limit));
    journal.room_to_run(environment::processors(), cgroup::quota());
    let (ticks, nanos) = clock::pair();
    journal.clock_pair(ticks, nanos - epoch);
    let mut run = RunInfo {
        ampl_version: env!("CARGO_PKG_VERSION").into(),
        started_ns: told.started_ns as u64,
        command: arguments.of(environment::command()),
        alone: told.alone.clone(),
        unmeasured: counters.left_out.into_iter().map(|refusal| (refusal.metric, refusal.why)).collect(),
        ..RunInfo::default()
    };
    run.describe(&plan);
    if rank == 0 {
        write_run_file(told, &run, journal_directory.as_deref());
    }
    let shared = Arc::new(Shared::new(journal, plan, Rank(rank), crate::resolve::module));
    shared.find_functions_with(|address| Some(crate::frames::code(address)?.function));
    shared.name_functions_with(crate::function_names::name);
    if let Some(source) = counters.source {
        shared.count_with(source);
    }
    Ok(Prepared { shared, epoch, directory: told.directory.clone(), journal_directory, displaced, run })
}

fn journal_directory(journal: &config::Journal, told: &Announcement) -> Option<PathBuf> {
    let name = told.directory.file_name().unwrap_or_default().to_string_lossy();
    let unique = format!("{name}-{:x}", told.started_ns);
    let place = match journal {
        config::Journal::Run => told.directory.join("journal"),
        config::Journal::Path(path) => Path::new(path).join(unique),
        config::Journal::Node => environment::node_directory().join(unique),
        config::Journal::Off => return None,
    };
    // The program may go elsewhere before it ends.
    Some(std::path::absolute(&place).unwrap_or(place))
}

/// Writes `run.toml`: settings, and the places of journals while there is no trace yet.
fn write_run_file(told: &Announcement, run: &RunInfo, journals: Option<&Path>) {
    let quoted = |text: &str| format!("{text:?}");
    let command: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
    let journals = journals.map(|place| format!("journals = {}\n", quoted(&place.to_string_lossy())));
    let job = metadata::job()
        .map(|job| format!("scheduler = {}\njob = {}\n", quoted(&job.scheduler), quoted(&job.id)));
    let text = format!(
        "# Written by ampl when the job started.\nampl = {}\nranks = {}\nstarted_ns = {}\n{}{}command = [{}]\n\n# Resolved settings.\n{}",
        quoted(&run.ampl_version),
        run.ranks,
        run.started_ns,
        journals.unwrap_or_default(),
        job.unwrap_or_default(),
        command.join(", "),
        run.config
    );
    let file = told.directory.join(RUN_FILE);
    match create_file(&file).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => as_directory(&file),
        Err(error) => message(&format!("cannot write run.toml ({}): {error}", told.directory.display())),
    }
}

/// The first records of the thread that called `MPI_Init`: the run, the client's first decisions, calls made
/// earlier, `MPI_Init` itself, called from `address` with the arguments in `state.args`.
pub fn first_records(state: &mut ThreadState, run: &RunInfo, function: Function, address: u64, started: u64) {
    let process = state.process;
    if process.shared.rank.0 == 0 {
        let run = RunInfo {
            mpi_library: process.pmpi.library_version(),
            abi: Some(process.abi.family),
            early_calls: counts::sequenced(),
            has_gaps: true,
            ..uncovered::noted(run.clone())
        };
        if let Ok(text) = serde_json::to_string(&run) {
            state.thread.text(TEXT_RUN, &text);
        }
        state.thread.text(
            TEXT_METADATA,
            &metadata::at_init(process.shared.plan.config.output.arguments).to_bounded_json(),
        );
    }
    if process.shared.rank == process.shared.plan.config.agent.client {
        let (_, decisions) = Policy::new(&process.shared.plan).first_directive();
        tree::record(&mut state.thread, &decisions);
    }
    counts::take(|function, calls| state.thread.early(function, calls, started));
    let ThreadState { thread, args, call_places, .. } = &mut *state;
    let terminal =
        if thread.records() { thread.terminal(function, address, 0, args, call_places) } else { None };
    state.thread.initialised(&CallEnd {
        function,
        address,
        start: started,
        end: hot_state::now(),
        sent: 0,
        received: 0,
        flags: 0,
        terminal,
        timed: true,
        apart: false,
    });
}
