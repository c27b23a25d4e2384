//! The replayer of one MPI: `libexec/ampl-replay-openmpi` or `-mpich`.

mod buffers;
mod ffi;
mod files;
mod means;
mod memory;
mod objects;
mod player;
mod problem;
mod report;
mod statuses;
mod watchdog;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ampl_core::mpi::{Class, Function};
use ampl_core::value::Value;
use ampl_reader::{Call, Calls, Run};
use ampl_replay::computation::{Computation, Pace};
use ampl_replay::launcher::Launched;
use ampl_replay::refusal::{Refusal, refusals};
use ampl_replay::say;
use ampl_replay::steps::{Cut, Place, Prediction};
use clap::{Parser, ValueEnum};

use ffi::Private;
use files::Files;
use memory::Memory;
use player::{Player, Setting};
use problem::Problem;
use report::Report;
use watchdog::Progress;

/// Time for rank 0 to name a reason that all ranks have. Launchers end the others then.
const FIRST_RANK_ENDS: Duration = Duration::from_secs(5);

/// Replays the calls of a recorded run, with random payload and without the program.
#[derive(Debug, Parser)]
#[command(
    name = "ampl-replay",
    version,
    after_help = "Example:\n  mpirun -n 4 ampl-replay ampl-20261127-101500"
)]
struct Args {
    /// Run directory, or its trace file.
    run: PathBuf,
    /// Sources of receives from any source: as they were recorded, or any.
    #[arg(long, value_enum, default_value_t = Wildcards::Pinned)]
    wildcards: Wildcards,
    /// Computation between calls: none, or as much as was recorded.
    #[arg(long, value_enum, default_value_t = Timing::None)]
    timing: Timing,
    /// Multiply recorded computation.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale_compute: f64,
    /// Replay so many steps of the loop that advances time, and predict the time of all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..))]
    steps: Option<u64>,
    /// Leave out calls that were counted and not recorded, and say so.
    #[arg(long)]
    skip_gaps: bool,
    /// Replay collectives of whose counts the run has means only, with counts that ranks agree on.
    #[arg(long)]
    aggregate_values: bool,
    /// Leave out calls for files.
    #[arg(long)]
    skip_files: bool,
    /// Directory for scratch files, on a file system that all ranks see [default: the run's own file system].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Seconds that one call may wait before it is named; after twice as many the replay ends.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    stall: u64,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Timing {
    /// Flat out.
    None,
    /// As recorded.
    Recorded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wildcards {
    /// From the source that was recorded.
    Pinned,
    /// From any.
    Free,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let launched = Launched::of(&|name| std::env::var(name).ok());
    let rank = launched.map_or(0, |process| process.rank);
    match replay(&args, launched, rank) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Refused(reasons)) => {
            // One rank is enough, if it comes to it before a launcher ends all ranks for the end of another.
            if rank != 0 {
                std::thread::sleep(FIRST_RANK_ENDS);
            }
            let of_rank = if rank == 0 { String::new() } else { format!("rank {rank}: ") };
            reasons.iter().for_each(|reason| say(&format!("{of_rank}{reason}")));
            ExitCode::from(2)
        }
        Err(Stop::At(place, problem)) => {
            say(&format!("rank {rank}, {place}: {problem}"));
            ffi::abort(1)
        }
    }
}

/// Reason for the end of a replay.
enum Stop {
    Refused(Vec<String>),
    At(String, Problem),
}

fn refuse<T: ToString>(reason: T) -> Stop {
    Stop::Refused(vec![reason.to_string()])
}

fn replay(args: &Args, launched: Option<Launched>, rank: u32) -> Result<(), Stop> {
    let run = Run::open(&args.run).map_err(|error| refuse(error.to_string()))?;
    let started = launched.map_or(Some(1), |process| process.ranks);
    let mut notes = Vec::new();
    // By every rank: a launcher may not end the others before MPI has begun.
    let lacks = |function: Function| {
        function.spec().class != Class::CountOnly && !ffi::has(function.name()) && is_called(function)
    };
    let found = refusals(&run, started, lacks);
    let (skipped, reasons): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|refusal| refusal.is_note() || args.skip_gaps && refusal.is_skipped());
    let (aggregated, reasons): (Vec<_>, Vec<_>) = reasons
        .into_iter()
        .partition(|refusal| args.aggregate_values && matches!(refusal, Refusal::Aggregated(_)));
    if !reasons.is_empty() {
        return Err(Stop::Refused(reasons.iter().map(ToString::to_string).collect()));
    }
    notes.extend(skipped.iter().map(|refusal| format!("left out: {refusal}")));
    for refusal in &aggregated {
        let Refusal::Aggregated(names) = refusal else { continue };
        notes.push(format!(
            "counts of {} are made of means: each rank sends and receives as much as recorded, up to whole elements, \
             but not as much to and from each other rank",
            names.join(", ")
        ));
    }
    let own = run.rank(rank).ok_or_else(|| refuse(format!("nothing is recorded of rank {rank}")))?;
    let progress = Arc::new(Progress::default());
    watch(args, rank, &progress).map_err(refuse)?;
    let family = run.info().abi_family().unwrap_or_else(ffi::family);
    let reads_statuses = own.trace.process.calls.iter().any(|&(function, calls)| {
        let mut params = Function(function).spec().params.iter();
        calls > 0
            && params.any(|param| param.name == "status" && param.direction != ampl_core::mpi::Direction::Out)
    });
    let calls = || Calls::new(&own.structure, &own.trace);
    let cut = args.steps.map(|kept| Cut::of(&run, &own, kept)).transpose();
    let cut = cut.map_err(|reason| refuse(format!("--steps: {reason}")))?;
    let played = || {
        let mut cut = cut.clone();
        calls()
            .map_while(Result::ok)
            .filter(move |call| cut.as_mut().is_none_or(|cut| cut.place(call) != Place::LeftOut))
    };
    let sources = || -> Box<dyn Iterator<Item = Call>> { Box::new(played()) };
    let mut computation = (args.timing == Timing::Recorded).then(|| {
        let of_rank = run.totals().shares().filter(|(_, of, _)| *of == rank);
        let lifecycle = |function: u16| Function(function).spec().class == Class::Lifecycle;
        let mpi_ns =
            of_rank.filter(|(function, ..)| !lifecycle(*function)).map(|(.., share)| share.time_ns as f64);
        let elapsed_ns = own.trace.process.elapsed_ns.saturating_sub(own.trace.process.own_ns);
        Computation::of(calls().map_while(Result::ok), elapsed_ns, mpi_ns.sum(), args.scale_compute)
    });
    let setting = Setting {
        family,
        sources: (args.wildcards == Wildcards::Pinned).then(sources),
        reads_statuses,
        has_means: !aggregated.is_empty(),
        progress: Arc::clone(&progress),
        files: if args.skip_files { Files::Skipped } else { Files::In(scratch(args)) },
    };
    let memory =
        Memory::new(u64::from(rank) + 1).map_err(|error| Stop::At("at the start".into(), error.into()))?;
    let mut player = Player::new(setting, memory);
    let mut state = State {
        args,
        run: &run,
        rank,
        private: None,
        begun: Instant::now(),
        progress: Arc::clone(&progress),
        notes,
        prediction: Prediction::default(),
        steps: cut.as_ref().map_or(0, Cut::all),
        left_out: cut.as_ref().map_or(0, Cut::left_out),
        computation: computation.as_ref().map(|computation| (computation.measured, computation.calls)),
    };
    // Half of the time outside MPI and less on the processor: the program did not compute there.
    let process = &own.trace.process;
    let outside_ns = computation.as_ref().map_or(0.0, |computation| computation.outside_ns);
    let sleeps = process.processor_ns > 0 && (process.processor_ns as f64) < outside_ns / 2.0;
    let (mut running, mut pace) = (cut.clone(), None);
    for call in calls() {
        let call = call.map_err(|error| Stop::At("reading".into(), Problem::Damaged(error.to_string())))?;
        let name = call.function.name();
        let computed = computation.as_mut().map(|computation| computation.before(&call)).unwrap_or_default();
        let place = running.as_mut().map_or(Place::Played(false), |cut| cut.place(&call));
        if state.private.is_some() {
            state.prediction.compute(computed, place == Place::LeftOut);
        }
        if place == Place::LeftOut {
            continue;
        }
        if place == Place::Played(true) {
            state.prediction.begin(state.begun.elapsed());
        }
        if state.private.is_some() && args.timing == Timing::Recorded {
            let left = pace.get_or_insert_with(|| Pace::new(state.begun)).compute(computed, Instant::now());
            compute(left, sleeps);
        }
        let at = |problem| Stop::At(format!("call {} {}", call.seq, shown(&call)), problem);
        if name == "MPI_Finalize" {
            state.end(&mut player);
        }
        if name == "MPI_File_open"
            && call.code == 0
            && creates_nothing(&call)
            && let Some(Value::Text(file)) = ampl_replay::completions::input(&call, "filename")
        {
            player.files.expect(file);
        }
        let before = player.in_calls;
        player.play(&call).map_err(at)?;
        pace.iter_mut().for_each(|pace| pace.call(player.in_calls - before));
        if call.function.spec().class == Class::Lifecycle && ffi::is_running() {
            state.begin(&player)?;
        }
    }
    if ffi::is_running() {
        // The rank's recorded calls end before MPI_Finalize.
        state.end(&mut player);
        progress.wait_for_ranks();
        ffi::finalize();
    }
    Ok(())
}

/// Lets time pass as the program did: by keeping the processor busy, or by sleeping.
fn compute(time: Duration, sleeps: bool) {
    let begun = Instant::now();
    if sleeps {
        return std::thread::sleep(time);
    }
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// True for a call of `MPI_File_open` without `MPI_MODE_CREATE`.
fn creates_nothing(call: &Call) -> bool {
    // 1 in every binary interface of those that are older than the standard's.
    matches!(ampl_replay::completions::input(call, "amode"), Some(Value::Int(mode)) if mode & 1 == 0)
}

fn is_called(function: Function) -> bool {
    !function.name().starts_with("MPI_T_") && !function.name().starts_with("MPI_Abi_")
}

fn scratch(args: &Args) -> PathBuf {
    let beside =
        if args.run.is_dir() { args.run.clone() } else { args.run.parent().unwrap_or(Path::new(".")).into() };
    let directory = args.scratch.clone().unwrap_or(beside);
    directory.join("replay-scratch")
}

/// A call as text, not too long.
fn shown(call: &Call) -> String {
    let mut text = format!("{}(", call.function.name());
    for (index, (name, value)) in call.args.iter().enumerate() {
        let value = value.to_string();
        let short: String = value.chars().take(60).collect();
        text += &format!("{}{name}={short}", if index > 0 { ", " } else { "" });
    }
    text + ")"
}

/// Starts the thread that names calls that do not return.
fn watch(args: &Args, rank: u32, progress: &Arc<Progress>) -> std::io::Result<()> {
    let (path, limit) = (args.run.clone(), Duration::from_secs(args.stall.max(1)));
    let seconds = args.stall.max(1);
    let name = move |seq: u64| {
        // The run is opened anew: its reader belongs to another thread.
        let found = Run::open(&path).ok().and_then(|run| {
            let own = run.rank(rank)?;
            Calls::new(&own.structure, &own.trace).map_while(Result::ok).find(|call| call.seq == seq)
        });
        let place = found.map_or_else(
            || "for other ranks, outside of the recorded calls".to_owned(),
            |call| format!("in call {seq} {}", shown(&call)),
        );
        say(&format!("rank {rank} waits since {seconds} s {place}"));
    };
    let end = move || {
        say(&format!("rank {rank} still waits after {} s; the replay ends", 2 * seconds));
        // MPI may be in the very call that does not return.
        std::process::exit(4);
    };
    watchdog::start(progress, limit, name, end)
}

/// State between the beginning and the end of MPI.
struct State<'a> {
    args: &'a Args,
    run: &'a Run,
    rank: u32,
    private: Option<Private>,
    begun: Instant,
    progress: Arc<Progress>,
    notes: Vec<String>,
    prediction: Prediction,
    /// Steps of this rank.
    steps: u64,
    /// Steps that are not replayed.
    left_out: u64,
    /// Calls whose computation was measured, and all, where computation is replayed.
    computation: Option<(u64, u64)>,
}

impl State<'_> {
    /// After `MPI_Init`.
    fn begin(&mut self, player: &Player<'_>) -> Result<(), Stop> {
        if self.private.is_some() {
            return Ok(());
        }
        let (rank, size) = ffi::place();
        let ranks = self.run.info().ranks;
        if (rank, size) != (self.rank, ranks) {
            let family = if ffi::family() == ampl_core::mpi::constants::AbiFamily::OpenMpi {
                "Open MPI"
            } else {
                "MPICH"
            };
            return Err(refuse(format!(
                "MPI gives rank {rank} of {size}, the launcher rank {} of {ranks}: this replayer is built for \
                 {family}, and the launcher belongs to another MPI; add --mpi openmpi or --mpi mpich",
                self.rank
            )));
        }
        if rank == 0
            && let Err(error) = player.files.begin()
        {
            self.notes.push(format!("no scratch directory: {error}"));
        }
        self.progress.wait_for_ranks();
        let private = Private::new();
        // No rank opens a file before the directory is there.
        let [most, least] = self.ends_of(private, self.steps);
        self.progress.leave();
        if most != least {
            return Err(refuse(format!("--steps: ranks show {least} to {most} steps")));
        }
        self.private = Some(private);
        self.begun = Instant::now();
        Ok(())
    }

    /// The largest and the least of the ranks' values, on all ranks.
    fn ends_of(&self, private: Private, value: u64) -> [u64; 2] {
        let mut ends = [value, u64::MAX - value];
        private.largest(&mut ends, self.rank);
        ends.iter_mut().for_each(|end| private.share(end));
        [ends[0], u64::MAX - ends[1]]
    }

    /// Before `MPI_Finalize`.
    fn end(&mut self, player: &mut Player<'_>) {
        let Some(private) = self.private.take() else { return };
        self.progress.wait_for_ranks();
        let elapsed = self.begun.elapsed();
        let whole = self.prediction.whole(elapsed, self.left_out);
        let rest = self.prediction.rest_of_step();
        let mut slowest = [elapsed, whole, rest].map(|time| time.as_nanos() as u64);
        private.largest(&mut slowest, self.rank);
        let [elapsed_ns, whole_ns, rest_ns] = slowest;
        player.measured.gather(private, self.rank);
        let (measured, all) = self.computation.unwrap_or_default();
        let mut sums = [measured, all];
        private.sum(&mut sums, self.rank);
        private.free();
        self.progress.leave();
        if self.rank != 0 {
            return;
        }
        if self.computation.is_some() {
            self.notes.push(format!(
                "computation before {} of {} calls as measured, before the others each rank's mean by its totals",
                sums[0], sums[1]
            ));
        }
        let predicted_ns = self.args.steps.map(|_| whole_ns);
        if predicted_ns.is_some() {
            let computation = match self.computation {
                Some(_) => "their own computation as recorded and",
                None => "no computation and",
            };
            self.notes.push(format!(
                "{} steps left out; with them {}, if each takes {computation} up to {}, the mean rest of those from the \
                 second on",
                self.left_out,
                report::seconds(whole_ns),
                report::seconds(rest_ns),
            ));
        }
        player.files.end();
        let report = Report {
            run: self.run,
            measured: &player.measured,
            replayed_ns: elapsed_ns,
            predicted_ns,
            notes: std::mem::take(&mut self.notes),
        };
        match self.args.json {
            true => println!("{}", report.json()),
            false => eprint!("{}", report.text()),
        }
    }
}
