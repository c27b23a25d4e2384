//! `ampl scaling`: efficiencies of runs over their numbers of ranks, and what grows with these.

use std::path::PathBuf;
use std::process::ExitCode;

use ampl_analysis::scaling::{Factor, Fall, Flag, Mode, ModeBasis, Point, Row, Scaling, Size, scaling};
use ampl_report::scaling as report;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output;
use crate::rundir::RunArg;

/// Show how a program scales: POP efficiencies over the number of ranks, and what grows with it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The run with the fewest ranks is the reference. Whether the problem grows with the ranks is read from the work of a rank.
What grows is read from the calls alone: array arguments, counts, bytes, calls and partners of a rank, at each call site.

Examples:
  ampl scaling ampl-app-4 ampl-app-8 ampl-app-16 ampl-app-32
  ampl scaling ampl-app-* --weak --json")]
pub struct Args {
    /// Runs of one program at several numbers of ranks
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The same problem on more ranks
    #[arg(long, group = "mode")]
    strong: bool,
    /// A problem that grows with the ranks
    #[arg(long, group = "mode")]
    weak: bool,
    /// As the work of a rank shows; the default
    #[arg(long, group = "mode")]
    auto: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Output of `--json`; the order of fields is part of the format.
#[derive(Debug, Serialize)]
struct Document {
    schema: u32,
    mode: &'static str,
    /// Source of the mode.
    mode_basis: &'static str,
    /// Ranks of the run that factors are against.
    reference: Option<u32>,
    rows: Vec<Value>,
    falls: Vec<Value>,
    flags: Vec<Value>,
    /// Numbers of ranks of runs whose calls are not all recorded.
    not_recorded: Vec<u32>,
    /// Numbers of ranks that had to share processors.
    shared_processors: Vec<u32>,
}

/// Prints the study of the runs that `args` name.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn scaling_of(args: &Args) -> anyhow::Result<ExitCode> {
    let mut points = Vec::new();
    for run in &args.runs {
        let trace = RunArg { run: run.clone() }.read()?;
        if !trace.complete {
            notice!("ampl: the run did not come to its end ({}): what there is of it is used", run.display());
        }
        points.push(Point::of(&trace));
    }
    let programs = points.first().map(|point| point.profile.identity.programs.clone());
    if points.iter().any(|point| Some(&point.profile.identity.programs) != programs.as_ref()) {
        notice!("ampl: the runs are of different programs (command line): factors compare them all the same");
    }
    let mode = match args {
        _ if args.strong => Some(Mode::Strong),
        _ if args.weak => Some(Mode::Weak),
        _ => None,
    };
    let study = scaling(points, mode);
    match args.json {
        true => output::json(&document(&study))?,
        false => output::print(|out| report::write(out, &study))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn document(study: &Scaling) -> Document {
    Document {
        schema: 1,
        mode: if study.mode == Mode::Strong { "strong" } else { "weak" },
        mode_basis: match study.basis {
            ModeBasis::Given => "given",
            ModeBasis::Instructions => "instructions",
            ModeBasis::ComputeTime => "compute time",
            ModeBasis::Nothing => "assumed",
        },
        reference: study.rows.first().map(|row| row.ranks),
        rows: study.rows.iter().map(row).collect(),
        falls: study.falls.iter().map(fall).collect(),
        flags: study.flags.iter().map(flag).collect(),
        not_recorded: study.not_recorded.clone(),
        shared_processors: study.sharing.clone(),
    }
}

fn row(row: &Row) -> Value {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
    put("ranks", row.ranks.into());
    put("nodes", row.nodes.into());
    put("ranks_per_node", (f64::from(row.ranks) / f64::from(row.nodes.max(1))).into());
    put("elapsed_ns", row.elapsed_ns.into());
    put("speedup", row.speedup.into());
    for factor in Factor::ALL {
        put(factor.name(), row.factor(factor).into());
    }
    // No model of the network is at hand.
    put("serialisation", Value::Null);
    put("transfer", Value::Null);
    put("instructions", row.instructions.into());
    put("ipc", row.ipc.into());
    put("frequency_hz", row.frequency_hz.into());
    put("bytes_per_rank", row.bytes_per_rank.into());
    put("messages_per_rank", row.messages_per_rank.into());
    put("steps", row.steps.into());
    Value::Object(map)
}

fn fall(fall: &Fall) -> Value {
    serde_json::json!({
        "factor": fall.factor.name(),
        "ranks": fall.ranks,
        "value": fall.value,
        "site": fall.site.as_ref().map(|(site, _)| site.to_string()),
        "share_grown": fall.site.as_ref().map(|(_, grown)| grown),
    })
}

fn flag(flag: &Flag) -> Value {
    let values: Vec<Value> = flag
        .values
        .iter()
        .map(|(ranks, value)| serde_json::json!({"ranks": ranks, "value": value}))
        .collect();
    serde_json::json!({
        "site": flag.site.to_string(),
        "what": flag.what.first().map(report::size),
        "growth": flag.law.name(),
        "kind": flag.what.first().map(kind),
        "also": flag.what.iter().skip(1).map(report::size).collect::<Vec<_>>(),
        "values": values,
    })
}

fn kind(size: &Size) -> &'static str {
    match size {
        Size::Array(_) => "array",
        Size::Parameter(_) => "parameter",
        Size::Sent | Size::Received => "bytes",
        Size::Calls => "calls",
        Size::Partners => "partners",
    }
}
