//! `ampl timesteps`: the loop of a program that advances time.

use std::io::{self, Write};
use std::process::ExitCode;

use ampl_analysis::timesteps::{Absence, Frame, Loop, Place, Timesteps, timesteps};
use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;
use ampl_report::human::{count, digits, percent, plural};
use serde::{Serialize, Serializer};

use crate::failure::DAMAGED;
use crate::output;
use crate::rundir::{self, RunArg};

/// Functions that are printed.
const SHOWN: usize = 8;

/// Find the loop that advances time: its steps, the calls of one, and where it stands.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Calls are compared by function and place; their arguments are ignored. Steps before the loop, which warm up, are counted
apart. There are none in a program without a loop over time; the reason is printed then.

Examples:
  ampl timesteps ampl-lmp-4242-20260101T120000
  ampl timesteps ampl-lmp-4242-20260101T120000 --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Finds the loop and prints it, or the reason why there is none.
///
/// # Errors
/// Errors of [`RunArg::open`], and failures to write.
pub fn timesteps_of(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.open()?;
    let mut symbols = Symbols::default();
    let found = timesteps(run.structure(), run.totals(), &mut |module, offset| {
        let function = symbols.function(module, offset)?;
        offset.checked_sub(function.offset?)
    });
    let damage = run.damage();
    damage.iter().for_each(|damage| tell!("{}", rundir::message(damage, &args.run.run)));
    let row = Row::of(&found, &mut symbols);
    match args.json {
        true => output::json(&row)?,
        false => output::print(|out| print(out, &row))?,
    }
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

/// Output of `--json`; the order of fields is part of the format.
#[derive(Debug, Serialize)]
struct Row {
    /// Steps; null where there is no loop over time.
    count: Option<u64>,
    /// Calls of a rank in a step, mean of the ranks that agree.
    calls_per_step: Option<f64>,
    /// Place of a call of each step.
    site: Option<String>,
    /// Calls of a rank in a step by function.
    function_mix: Mix,
    /// Share of the job's ranks that show as many steps, or no loop where that is null.
    confidence: f64,
    /// Reason for which there is no loop.
    reason: Option<&'static str>,
    /// Function that is called at `site`.
    function: Option<&'static str>,
    /// Value of `window.marker` that ends windows with steps, where one call does.
    marker: Option<String>,
    /// Functions that all calls of the loop come from, from the outermost inwards, as far as they are known.
    path: Vec<String>,
    /// Steps before the loop that warm up.
    warm_up: Option<u64>,
    /// Calls of a rank before the loop, and behind it.
    start_up_calls: Option<f64>,
    wind_down_calls: Option<f64>,
    /// Calls of a rank inside the loop that were counted and not recorded: there may be more steps.
    missing_calls: Option<f64>,
    /// Data that the number rests on: `calls` by function and place, or their `arguments`, too.
    basis: Option<&'static str>,
    /// Ranks of the job, and those whose calls are stored.
    ranks: u32,
    examined: u32,
    /// Steps by the calls of each rank alone.
    counts: Vec<RankCount>,
}

#[derive(Debug, Serialize)]
struct RankCount {
    count: Option<u64>,
    ranks: String,
}

/// Calls in a step by function, most first.
#[derive(Debug, Default)]
struct Mix(Vec<(&'static str, f64)>);

impl Serialize for Mix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl Row {
    fn of(found: &Timesteps<'_>, symbols: &mut Symbols) -> Self {
        let count = |count: &ampl_analysis::timesteps::Count| RankCount {
            count: count.steps,
            ranks: RankSet::from_iter(count.ranks.iter().copied()).to_string(),
        };
        let own = found.outcome.as_ref().ok();
        let share = |ranks: usize| ranks as f64 / f64::from(found.ranks.max(1));
        let without = found.counts.iter().find(|count| count.steps.is_none());
        let site = own.and_then(|own| site(&own.place, symbols));
        let marker = own.filter(|own| own.place.is_marker).zip(site.as_ref());
        Self {
            count: own.map(|own| own.steps),
            calls_per_step: own.map(|own| own.calls_per_step),
            function_mix: Mix(own.map(mix).unwrap_or_default()),
            confidence: match own {
                Some(own) => own.confidence,
                None => without.map_or(0.0, |count| share(count.ranks.len())),
            },
            reason: found.outcome.as_ref().err().map(|absence| reason(*absence, found.ranks)),
            function: own.map(|own| Function::name_of(own.place.function)),
            marker: marker.map(|(own, site)| format!("mpi:{}@{site}", Function::name_of(own.place.function))),
            site,
            path: own.map(|own| path(&own.common, symbols)).unwrap_or_default(),
            warm_up: own.map(|own| own.warm_up),
            start_up_calls: own.map(|own| own.start_up),
            wind_down_calls: own.map(|own| own.wind_down),
            missing_calls: own.map(|own| own.missing),
            basis: own.map(|own| if own.by_arguments { "arguments" } else { "calls" }),
            ranks: found.ranks,
            examined: found.examined,
            counts: found.counts.iter().map(count).collect(),
        }
    }
}

fn mix(own: &Loop<'_>) -> Vec<(&'static str, f64)> {
    own.functions.iter().map(|&(function, calls)| (Function::name_of(function), calls)).collect()
}

/// `file:line` or `module+0xoffset`; none where calls are not told apart by place.
fn site(place: &Place<'_>, symbols: &mut Symbols) -> Option<String> {
    let &(module, offset) = place.path.first()?;
    (!module.is_empty() || offset > 0).then(|| symbols.name(module, offset))
}

/// Names of functions from the outermost inwards, without the code that starts programs.
fn path(common: &[Frame<'_>], symbols: &mut Symbols) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for &(module, offset) in common {
        let Some(function) = symbols.function(module, offset) else { break };
        let is_outermost = function.name == "main";
        names.push(function.name);
        if is_outermost {
            break;
        }
    }
    names.reverse();
    names
}

fn reason(absence: Absence, ranks: u32) -> &'static str {
    match absence {
        Absence::NoCalls => "no calls are stored",
        Absence::NoLoop if ranks == 1 => "the calls of the only rank do not repeat as a loop over time",
        Absence::NoLoop => "the calls of most ranks do not repeat as a loop over time",
        Absence::Disagreement => "ranks show different numbers of steps, none of them most ranks",
        Absence::TooIrregular => "the calls are too irregular, or too many, to be examined",
    }
}

fn print(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let share = format!("{} of {}", percent(row.confidence), plural(row.ranks.into(), "rank"));
    let Some(steps) = row.count else {
        writeln!(out, "No timestep loop: {}", row.reason.unwrap_or("it is not known why"))?;
        return ranks(out, row);
    };
    let least = if row.missing_calls.is_some_and(|missing| missing > 0.0) { "at least " } else { "" };
    writeln!(out, "Timestep loop: {least}{} (by the calls of {share})", plural(steps, "step"))?;
    let mut line = |title: &str, text: String| writeln!(out, "  {title:<14}{text}");
    let calls = |calls: Option<f64>| format!("{} calls", digits(calls.unwrap_or(0.0)));
    line("a step", format!("{} of a rank", calls(row.calls_per_step)))?;
    if let (Some(site), Some(function)) = (&row.site, row.function) {
        line("each step", format!("{function} @ {site}"))?;
    }
    if !row.path.is_empty() {
        line("inside of", row.path.join(" > "))?;
    }
    let warm_up = match row.warm_up {
        Some(steps) if steps > 0 => format!(", with {} to warm up", plural(steps, "step")),
        _ => String::new(),
    };
    line("before", calls(row.start_up_calls) + &warm_up)?;
    line("behind", calls(row.wind_down_calls))?;
    if let Some(missing) = row.missing_calls.filter(|&missing| missing > 0.0) {
        line("not recorded", format!("{} inside the loop: there may be more steps", calls(Some(missing))))?;
    }
    if row.basis == Some("arguments") {
        line(
            "told by",
            "functions, places and arguments: by the first two all parts of a step look alike".into(),
        )?;
    }
    if let Some(marker) = &row.marker {
        line("as windows", format!("--set window.marker={marker}"))?;
    }
    ranks(out, row)?;
    writeln!(out, "\n{:<28} {:>14} {:>8}", "function", "calls per step", "share")?;
    let all: f64 = row.function_mix.0.iter().map(|(_, calls)| calls).sum();
    for (function, calls) in row.function_mix.0.iter().take(SHOWN) {
        writeln!(out, "{function:<28} {:>14} {:>8}", digits(*calls), percent(calls / all))?;
    }
    let rest = row.function_mix.0.iter().skip(SHOWN);
    if rest.len() > 0 {
        let calls: f64 = rest.clone().map(|(_, calls)| calls).sum();
        let title = format!("({} more)", count(rest.len() as u64));
        writeln!(out, "{title:<28} {:>14} {:>8}", digits(calls), percent(calls / all))?;
    }
    Ok(())
}

/// Ranks that show another number of steps, and those that were not examined.
fn ranks(out: &mut impl Write, row: &Row) -> io::Result<()> {
    for other in row.counts.iter().filter(|other| other.count != row.count) {
        let steps = other.count.map_or("no loop".into(), |steps| plural(steps, "step"));
        writeln!(out, "  {:<14}{steps} by the calls of ranks {}", "others", other.ranks)?;
    }
    if row.examined < row.ranks {
        let missing = plural((row.ranks - row.examined).into(), "rank");
        writeln!(out, "  {:<14}of {missing} no calls are stored", "not known")?;
    }
    Ok(())
}
