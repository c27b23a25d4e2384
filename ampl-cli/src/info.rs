//! `ampl info`: contents of a run directory.

use std::path::Path;
use std::process::ExitCode;

use ampl_analysis::efficiency::run_times;
use ampl_analysis::estimate::windows_lacking;
use ampl_analysis::in_call;
use ampl_analysis::kept::would_keep;
use ampl_analysis::moved::Moved;
use ampl_analysis::overhead::{Clocks, Overhead};
use ampl_analysis::pauses::{self, Paused};
use ampl_analysis::phases::{self, Phase};
use ampl_analysis::processors::Sharing;
use ampl_analysis::programs::{self, Program};
use ampl_analysis::short_regions::{self, ShortRegion};
use ampl_core::mpi::{Class, FUNCTIONS, Function};
use ampl_reader::gaps::Recorded;
use ampl_reader::sites::Symbols;
use ampl_report::communicators as communicator_text;
use ampl_report::layout::width;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use ampl_trace::metadata::Metadata;
use ampl_trace::model::{Alone, End, Sizes};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::query::sites;
use crate::rundir::{self, RunArg};
use crate::time_steps::TimeSteps;
use crate::verdict::{self, Found};
use crate::{communicators, gaps, output, summary};
use ampl_launch::environment;

/// Show what a run recorded: the summary, or counts and sizes as JSON.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl info ampl-lmp-4242-20260101T120000 --json\n  ampl info ampl-lmp-4242-20260101T120000 --calls"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print every call site instead: calls, times, who is late, sizes of messages, communicators and peers
    #[arg(long)]
    calls: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Command before one that is to start on another host; {host} in it is the host's name
    #[arg(long, value_name = "COMMAND")]
    via: Option<String>,
}

/// Prints the summary or the JSON of a run, complete or not.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn info(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read_everywhere(args.via.as_deref())?;
    if args.calls {
        sites::print(&trace, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let comms = Communicators::of(&trace);
    if args.json {
        output::json(&Info::of(&trace, &comms, &args.run.run))?;
    } else {
        let text = summary::text(&trace, &args.run.run)
            + &communicator_text::text(&comms, width(environment::columns()));
        output::text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct Info<'a> {
    ranks: u32,
    /// Findings, the most important first.
    verdict: Vec<Found>,
    /// Programs that the ranks run, in the order of their first ranks.
    programs: Vec<Program>,
    mpi_library: &'a str,
    complete: bool,
    /// Processes that the launcher started as one job and that each ran as a world of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone: Option<&'a Alone>,
    calls: u64,
    functions: Functions,
    /// Calls that differ in function, site or arguments, of each grammar.
    signatures: u64,
    /// Distinct sequences of calls, up to what differs between ranks in arguments and trip counts.
    grammars: u64,
    windows: u64,
    /// Steps that windows follow, with `window.marker = "auto"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_steps: Option<TimeSteps>,
    kept_windows: u64,
    /// Kept rank-windows that are stored for a drawn message partner's sake.
    partner_windows: u64,
    /// Under `output.verify`, where everything is stored: rank-windows that would have been kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_keep_windows: Option<u64>,
    /// Windows that lack the summary of some rank; none where the configuration is not known.
    windows_without_summary: Option<u64>,
    /// Share of the ranks' time in windows that all ranks measured, on which efficiencies of the run rest.
    coverage: f64,
    /// Start-up, body and wind-down with their headlines; none where the run is one phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase>,
    trace_bytes: Sizes,
    /// Facts about what ran and where; those that are not known are null.
    metadata: &'a Metadata,
    /// Clocks other than rank 0's, synchronised with it; none where all ranks read one clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Clocks>,
    agent_failures: u64,
    /// Calls that can be decoded one by one.
    recorded_calls: u64,
    /// True where these are all that were made, but for functions that are only ever counted.
    structure_complete: bool,
    /// Calls that were counted and not recorded, by reason.
    gaps: Vec<gaps::Row>,
    /// Calls of functions that have no place in the sequence, such as MPI_Wtime.
    #[serde(skip_serializing_if = "Functions::is_empty")]
    counted_only: Functions,
    /// Regions of which visits are not recorded, because they are short.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    regions_left_out: Vec<LeftOut>,
    overhead: Overhead,
    /// Bytes moved to and from files and windows; none where there were none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    moved: Option<Moved>,
    /// Ranks that had to share processors; none where no sign of it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Sharing>,
    /// Ranks that the program has paused ampl on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paused: Vec<Paused>,
    communicators: communicators::Rows<'a>,
    /// True where the program made more communicators than are examined: the list is not complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    communicators_cut: bool,
    /// Calls that the ranks of an unfinished run are in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_call: Vec<in_call::Row>,
    /// End of an unfinished run, and how it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

impl<'a> Info<'a> {
    fn of(trace: &'a Trace, comms: &'a Communicators, run: &Path) -> Self {
        let functions = Functions(trace.function_calls());
        let plan = rundir::plan(trace);
        let mut symbols = Symbols::default();
        let recorded = Recorded::of(trace, Some(&mut symbols));
        Self {
            ranks: trace.run.ranks,
            verdict: verdict::of(trace, run),
            programs: programs::of(trace),
            mpi_library: &trace.run.mpi_library,
            complete: trace.complete,
            alone: trace.run.alone.as_ref(),
            calls: functions.total(),
            windows: trace.windows(),
            time_steps: plan.as_ref().and_then(|plan| TimeSteps::of(trace, plan, &mut symbols)),
            kept_windows: trace.kept_windows(),
            partner_windows: trace.partner_windows(),
            would_keep_windows: would_keep(trace, plan.as_ref()),
            windows_without_summary: plan.map(|plan| windows_lacking(trace, &plan)),
            coverage: run_times(trace).coverage.of_run(),
            phases: phases::of(trace),
            trace_bytes: trace.sizes,
            metadata: &trace.run.metadata,
            clocks: Clocks::of(trace),
            recorded_calls: recorded.calls,
            structure_complete: recorded.is_whole(),
            gaps: gaps::rows(&recorded),
            counted_only: functions.counted_only(),
            agent_failures: trace.ranks.iter().map(|rank| rank.process.agent_failures).sum(),
            regions_left_out: short_regions::of(trace).into_iter().map(LeftOut::of).collect(),
            overhead: Overhead::of(trace, functions.total()),
            moved: Moved::of(trace),
            processors: Sharing::of(trace),
            paused: pauses::of(trace),
            functions,
            signatures: trace.structure.signatures(),
            grammars: trace.structure.grammars(),
            communicators: communicators::Rows(comms),
            communicators_cut: !comms.is_complete(),
            in_call: in_call::rows(trace, comms, &mut symbols),
            end: trace.run.end.filter(|_| !trace.complete),
        }
    }
}

/// A region of which visits are not recorded.
#[derive(Debug, Serialize)]
struct LeftOut {
    region: String,
    visits: u64,
    ranks: String,
}

impl LeftOut {
    fn of(region: ShortRegion) -> Self {
        Self { region: region.region, visits: region.visits, ranks: region.ranks.to_string() }
    }
}

/// Calls per function, in alphabetical order.
#[derive(Debug)]
struct Functions(Vec<(u16, u64)>);

impl Functions {
    /// Functions that have no place in the sequence.
    fn counted_only(&self) -> Self {
        let only = |function: u16| {
            FUNCTIONS.get(usize::from(function)).is_some_and(|spec| spec.class == Class::CountOnly)
        };
        Self(self.0.iter().copied().filter(|&(function, _)| only(function)).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|&(_, calls)| calls).sum()
    }
}

impl Serialize for Functions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for &(function, calls) in &self.0 {
            let name = Function::name_of(function);
            map.serialize_entry(name, &calls)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::RankTrace;

    #[test]
    fn every_field_of_the_contract_is_there() {
        let number = |name| Function::by_name(name).unwrap().0;
        let mut rank = RankTrace::default();
        rank.process.calls = vec![(number("MPI_Recv"), 3), (number("MPI_Send"), 4)];
        (rank.process.own_ns, rank.process.elapsed_ns, rank.process.agent_failures) = (70, 1000, 2);
        let trace = Trace { ranks: vec![rank], ..Trace::default() };
        let comms = Communicators::of(&trace);
        let json = serde_json::to_value(Info::of(&trace, &comms, Path::new("run"))).unwrap();
        let expected = serde_json::json!({
            "ranks": 0, "verdict": [{
                "kind": "not-measured", "cost_share": null, "ranks": null, "hosts": [], "site": null, "function": null,
                "text": "No window was closed: ranks cannot be compared", "basis": "recorded", "coverage": 1.0, "next": "ampl info run",
            }], "mpi_library": "", "complete": false, "programs": [], "calls": 7,
            "functions": {"MPI_Recv": 3, "MPI_Send": 4}, "signatures": 0, "grammars": 0,
            "windows": 0, "kept_windows": 0, "partner_windows": 0, "windows_without_summary": null, "coverage": 0.0,
            "trace_bytes": {"total": 0, "structure": 0, "values": 0, "timing": 0, "aggregates": 0, "summaries": 0, "addresses": 0, "gaps": 0, "metadata": 0, "other": 0},
            "metadata": Metadata::default(),
            "agent_failures": 2, "recorded_calls": 0, "structure_complete": false, "gaps": [{
                "ranks": "0", "from_ns": null, "until_ns": null, "reason": "unknown", "calls": 7,
                "functions": {"MPI_Recv": 3, "MPI_Send": 4}, "sites": [
                    {"function": "MPI_Recv", "site": null, "calls": 3},
                    {"function": "MPI_Send", "site": null, "calls": 4},
                ],
            }], "overhead": {
                "agent_ns": 70, "share": 0.07, "windows_share": 0.07, "per_call_ns": 10.0, "steps": [], "calls_ns": 70, "polling_ns": 0,
                "start_ns": 0, "end_ns": 0, "end_wait_ns": 0, "processor_ns": null, "processor_share": null,
                "largest": null,
            },
            "communicators": [],
        });
        assert_eq!(json, expected);
        assert_eq!(Overhead::of(&Trace::default(), 0).share, None);
    }
}
