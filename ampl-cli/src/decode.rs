//! `ampl decode`: the calls of ranks, a line each.

mod constants;
mod line;
mod wanted;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use ampl_core::mpi::constants::AbiFamily;
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::error::ReadError;
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::human::{self, plural};
use crate::info::is_sampled;
use crate::output::{self, Stdout};
use crate::rundir::{self, RunArg};
use crate::symbols::Symbols;
use crate::unstored;
use line::{JsonCall, Place};
use wanted::Wanted;

pub use line::lacks_arguments;

/// Print calls in program order, with the times of those in kept windows.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Polls that find nothing are one line as long as nothing else comes between: x5 (\"count\" of --json) says how many;
the start is the first one's, the duration what all of them took together.

Constants of MPI have their names; a number that is none of them stays a number.

Only calls of kept windows have a time. With --from or --until, calls without one are left out, and stderr says
how many these were.

Without --rank, ranks come one after the other, and every line starts with the rank (\"rank\" of --json).

Examples:
  ampl decode ampl-lmp-4242-20260101T120000 --rank 3 | less
  ampl decode ampl-lmp-4242-20260101T120000 --ranks 0-7 --fn MPI_Send,MPI_Recv --from 1.5s --until 2s --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// The rank in MPI_COMM_WORLD; without it and --ranks, all ranks
    #[arg(long, value_name = "N", conflicts_with = "ranks")]
    rank: Option<u32>,
    /// Only these ranks, as in 0-127,200
    #[arg(long, value_name = "SET")]
    ranks: Option<String>,
    /// Only calls of that function, as in MPI_Send; several may be named
    #[arg(long = "fn", value_name = "NAME", value_delimiter = ',')]
    functions: Vec<String>,
    /// Only calls that end after that time since the start, as in 1.5s or 250ms
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// Only calls that start before that time
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Print one JSON document a line
    #[arg(long)]
    json: bool,
}

/// Prints the calls; those before a damaged place are printed too.
///
/// # Errors
/// Those of [`RunArg::read`]; a [`Failure`] of status 2 for options that make no sense, of status 4 when there is no
/// such rank, of status 3 when a call cannot be read.
pub fn decode(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = Wanted::of(args)?;
    let trace = args.run.read()?;
    let place = args.run.run.display();
    let ranks = ranks(args, &trace, &wanted)?;
    let verify = rundir::plan(&trace).is_some_and(|plan| plan.config.output.verify);
    let comms = Communicators::of(&trace);
    let mut lines = Lines {
        symbols: Symbols::default(),
        family: trace.run.abi_family(),
        several: args.rank.is_none(),
        json: args.json,
    };
    let mut bad: Option<(u32, ReadError)> = None;
    let (mut printed, mut untimed) = (0u64, 0u64);
    // Ranks of which no call is stored, and the first of them.
    let mut empty: (u64, Option<&RankTrace>) = (0, None);
    output::print(|out| {
        for &rank in &ranks {
            lines.symbols.next_rank();
            let number = rank.process.rank;
            let structure = trace.structure.rank(number).unwrap_or_default();
            let shares = shares(rank, verify);
            let mut stored = 0u64;
            for call in Calls::naming(&structure, rank, &comms) {
                stored += 1;
                match call {
                    Ok(call) if wanted.takes(&call) => {
                        let window = call.timed.map(|timed| timed.window);
                        let share = window.and_then(|window| shares.get(&window)).copied();
                        lines.print(out, rank, call, share.unwrap_or_default())?;
                        printed += 1;
                    }
                    Ok(call) if wanted.lacks_time(&call) => untimed += call.count,
                    Ok(_) => {}
                    Err(error) => drop(bad.get_or_insert((number, error))),
                }
            }
            if stored == 0 {
                empty = (empty.0 + 1, empty.1.or(Some(rank)));
            }
        }
        Ok(())
    })?;
    if let Some((rank, error)) = bad {
        let fix = "the calls before it were printed";
        return Err(Failure::message(DAMAGED, error, format!("{place}, rank {rank}"), fix));
    }
    if untimed > 0 {
        let calls = plural(untimed, "call");
        tell!(
            "ampl: {calls} left out without a stored time ({place}): leave out --from and --until to see them"
        );
    }
    match empty {
        _ if !trace.damage.is_empty() => {}
        (1, Some(rank)) => {
            let (what, why) = (unstored::all(rank), unstored::why(&trace, rank));
            tell!("ampl: {what} ({place}, rank {}): {why}", rank.process.rank);
        }
        (ranks, Some(rank)) => {
            let (first, why) = (rank.process.rank, unstored::why(&trace, rank));
            tell!("ampl: no calls are stored of {ranks} ranks ({place}, rank {first} first): {why}");
        }
        (_, None) if printed == 0 && untimed == 0 && wanted.is_part() => {
            tell!("ampl: no stored call is asked for ({place}): see 'ampl info' for what there is");
        }
        (_, None) => {}
    }
    Ok(rundir::status(&trace))
}

/// The ranks that are asked for, ascending.
fn ranks<'a>(args: &Args, trace: &'a Trace, wanted: &Wanted) -> anyhow::Result<Vec<&'a RankTrace>> {
    let status = if trace.damage.is_empty() { NOT_FOUND } else { DAMAGED };
    let run = args.run.run.display();
    if let Some(number) = args.rank {
        let Some(rank) = trace.rank(number) else {
            let (what, fix) = match trace.run.ranks {
                ranks if number < ranks => (
                    "this rank left nothing that can be read".into(),
                    "see 'ampl info' for what there is".into(),
                ),
                ranks => (format!("the job has {}", human::plural(ranks.into(), "rank")), from_zero(ranks)),
            };
            return Err(Failure::message(status, what, format!("{run}, rank {number}"), fix));
        };
        return Ok(vec![rank]);
    }
    let selection = &wanted.selection;
    if let Some((what, fix)) =
        selection.lacks(trace.run.ranks, trace.ranks.iter().map(|rank| rank.process.rank))
    {
        let place = format!("{run}, --ranks {}", args.ranks.as_deref().unwrap_or_default());
        return Err(Failure::message(status, what, place, fix));
    }
    Ok(trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank)).collect())
}

fn from_zero(ranks: u32) -> String {
    format!("name one from 0 to {}", ranks.saturating_sub(1))
}

/// The reason for which a window is stored, where that is not because it was drawn.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Whether it would have been kept, where everything is stored to check that (`output.verify`).
    kept: Option<bool>,
    /// Whether it was not drawn itself, but a partner's was.
    partner: bool,
    /// How likely it was that it or a partner's was drawn, where that is not the probability of its own draw.
    inclusion: Option<f64>,
}

/// Windows of `rank` in whose keeping partners have a part; all of them where everything is stored to `verify`.
fn shares(rank: &RankTrace, verify: bool) -> BTreeMap<u64, Share> {
    let told = |window: &&WindowSummary| verify || window.partner || window.inclusion.is_some();
    let share = |window: &WindowSummary| Share {
        kept: verify.then(|| is_sampled(window)),
        partner: window.partner,
        inclusion: window.inclusion,
    };
    rank.windows.iter().filter(told).map(|window| (window.window, share(window))).collect()
}

/// The form of the lines.
struct Lines {
    symbols: Symbols,
    /// The interface that says what constants are called; none where it is not known.
    family: Option<AbiFamily>,
    /// Whether lines say the rank.
    several: bool,
    json: bool,
}

impl Lines {
    fn print(&mut self, out: &mut Stdout, rank: &RankTrace, mut call: Call, share: Share) -> io::Result<()> {
        if let Some(family) = self.family {
            constants::name(&mut call, family);
        }
        let site = call.site.and_then(|site| self.symbols.site(rank, site));
        let path = call.site.map(|site| self.symbols.path(rank, site)).unwrap_or_default();
        let place = Place { site: site.as_deref(), path: &path };
        let number = rank.process.rank;
        if self.json {
            let shown = self.several.then_some(number);
            serde_json::to_writer(&mut *out, &JsonCall::of(shown, &call, place, share))?;
            return writeln!(out);
        }
        if self.several {
            write!(out, "{number:>6} ")?;
        }
        writeln!(out, "{}", line::text(&call, place, share, self.family))
    }
}
