//! `ampl decode`: the calls of ranks, a line each.

mod gap;
mod line;
mod region;
mod wanted;

use std::io::{self, Write};
use std::process::ExitCode;

use ampl_analysis::unstored::why;
use ampl_core::mpi::constants::AbiFamily;
use ampl_reader::call_selection::CallSelection;
use ampl_reader::{Call, Edge, Event, RegionEvent, Run, Symbols, constants};
use ampl_report::decode::{self as text, Place, Share, shares};
use ampl_report::human::plural;
use ampl_report::selection::lacking;
use ampl_report::unstored;
use ampl_trace::error::ReadError;
use ampl_trace::gaps::Gap;
use ampl_trace::{Damage, RankTrace};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::output::{self, Stdout};
use crate::rundir::{self, RunArg};
use gap::JsonGap;
use line::JsonCall;
use region::JsonRegion;
use wanted::wanted;

/// Print calls in program order, with the times of those in kept windows.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Polls that find nothing are one line as long as nothing else comes between: x5 (\"count\" of --json) says how many;
the start is the first one's, the duration what all of them took together.

Constants of MPI have their names; a number that is none of them stays a number.

Only calls of kept windows have a time. With --from or --until, calls without one are left out, and stderr says
how many these were.

Calls that were counted and not recorded are a gap: one line with their number, why, and how many of each function.
\"seq\" counts through it.

Regions of the program are lines, too: where it enters and leaves them. They have the \"seq\" of the next call, and no
arguments; --fn leaves them out.

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
/// Errors of [`RunArg::open`]; a [`Failure`] of status 2 for options that make no sense, of status 4 when there is no
/// such rank, of status 3 when a call cannot be read.
pub fn decode(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = wanted(args)?;
    let run = args.run.open()?;
    let place = args.run.run.display();
    let mut said = Said::default();
    said.new_damage(&run, &args.run);
    let ranks = ranks(args, &run, &wanted)?;
    let verify = run.plan().is_some_and(|plan| plan.config.output.verify);
    let mut lines = Lines {
        symbols: Symbols::default(),
        family: run.info().abi_family(),
        several: args.rank.is_none(),
        json: args.json,
    };
    let mut bad: Option<(u32, ReadError)> = None;
    let (mut printed, mut untimed) = (0u64, 0u64);
    // Ranks of which no call is stored, and the first of them.
    let mut empty: (u64, Option<u32>) = (0, None);
    output::print_as(args.json, |out| {
        for &number in &ranks {
            lines.symbols.next_rank();
            let Some(rank) = run.rank(number) else { continue };
            said.new_damage(&run, &args.run);
            let shares = shares(&rank.trace, verify);
            let mut stored = 0u64;
            for event in rank.events() {
                let call = match event {
                    Ok(Event::Gap(gap)) => {
                        if wanted.takes_gap(&gap) {
                            lines.print_gap(out, &rank.trace, &gap)?;
                        }
                        continue;
                    }
                    Ok(Event::Enter(event) | Event::Exit(event)) if !wanted.takes_region(&event) => continue,
                    Ok(Event::Enter(event)) => {
                        lines.print_region(out, &rank.trace, Edge::Enter, &event)?;
                        continue;
                    }
                    Ok(Event::Exit(event)) => {
                        lines.print_region(out, &rank.trace, Edge::Exit, &event)?;
                        continue;
                    }
                    Ok(Event::Call(call)) => Ok(*call),
                    Err(error) => Err(error),
                };
                stored += 1;
                match call {
                    Ok(call) if wanted.takes(&call) => {
                        let window = call.timed.map(|timed| timed.window);
                        let share = window.and_then(|window| shares.get(&window)).copied();
                        lines.print(out, &rank.trace, call, share.unwrap_or_default())?;
                        printed += 1;
                    }
                    Ok(call) if wanted.lacks_time(&call) => untimed += call.count,
                    Ok(_) => {}
                    Err(error) => drop(bad.get_or_insert((number, error))),
                }
            }
            if stored == 0 {
                empty = (empty.0 + 1, empty.1.or(Some(number)));
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
        notice!(
            "ampl: {calls} left out without a stored time ({place}): leave out --from and --until to see them"
        );
    }
    let process = |rank: u32| run.process(rank).cloned().unwrap_or_default();
    match empty {
        _ if said.any() => {}
        (1, Some(rank)) => {
            let process = process(rank);
            let (what, why) = (unstored::all(&process), unstored::words(why(run.info(), &process)));
            notice!("ampl: {what} ({place}, rank {rank}): {why}");
        }
        (ranks, Some(first)) => {
            let why = unstored::words(why(run.info(), &process(first)));
            notice!("ampl: no calls are stored of {ranks} ranks ({place}, rank {first} first): {why}");
        }
        (_, None) if printed == 0 && untimed == 0 && wanted.is_part() => {
            notice!("ampl: no stored call is asked for ({place}): see 'ampl info' for what there is");
        }
        (_, None) => {}
    }
    Ok(if said.any() { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS })
}

/// Damage that has been printed.
#[derive(Debug, Default)]
struct Said(Vec<Damage>);

impl Said {
    /// Prints the damage found since.
    fn new_damage(&mut self, run: &Run, arg: &RunArg) {
        let damage = run.damage();
        let new = damage.into_iter().filter(|found| !self.0.contains(found));
        let new: Vec<Damage> = new.collect();
        new.iter().for_each(|found| notice!("{}", rundir::message(found, &arg.run)));
        self.0.extend(new);
    }

    fn any(&self) -> bool {
        !self.0.is_empty()
    }
}

/// The ranks that are asked for, ascending.
fn ranks(args: &Args, run: &Run, wanted: &CallSelection) -> anyhow::Result<Vec<u32>> {
    let status = if run.damage().is_empty() { NOT_FOUND } else { DAMAGED };
    let place = args.run.run.display();
    let present = run.ranks();
    if let Some(number) = args.rank {
        if present.binary_search(&number).is_ok() {
            return Ok(vec![number]);
        }
        let (what, fix) = match run.info().ranks {
            ranks if number < ranks => {
                ("this rank left nothing that can be read".into(), "see 'ampl info' for what there is".into())
            }
            ranks => (format!("the job has {}", plural(ranks.into(), "rank")), from_zero(ranks)),
        };
        return Err(Failure::message(status, what, format!("{place}, rank {number}"), fix));
    }
    let selection = &wanted.selection;
    if let Some(absent) = selection.lacks(run.info().ranks, present.iter().copied()) {
        let (what, fix) = lacking(&absent, run.info().ranks);
        let place = format!("{place}, --ranks {}", args.ranks.as_deref().unwrap_or_default());
        return Err(Failure::message(status, what, place, fix));
    }
    Ok(present.into_iter().filter(|&rank| selection.takes_rank(rank)).collect())
}

fn from_zero(ranks: u32) -> String {
    format!("name one from 0 to {}", ranks.saturating_sub(1))
}

/// The form of the lines.
struct Lines {
    symbols: Symbols,
    /// ABI family that names constants; none where it is not known.
    family: Option<AbiFamily>,
    /// True where lines name the rank.
    several: bool,
    json: bool,
}

impl Lines {
    fn print_gap(&mut self, out: &mut Stdout, rank: &RankTrace, gap: &Gap) -> io::Result<()> {
        let number = rank.process.rank;
        if self.json {
            let shown = self.several.then_some(number);
            let json = JsonGap::of(shown, gap, |site| self.symbols.site(rank, site));
            serde_json::to_writer(&mut *out, &json)?;
            return writeln!(out);
        }
        if self.several {
            write!(out, "{number:>6} ")?;
        }
        writeln!(out, "{}", text::gap::text(gap))
    }

    fn print_region(
        &mut self,
        out: &mut Stdout,
        rank: &RankTrace,
        edge: Edge,
        event: &RegionEvent,
    ) -> io::Result<()> {
        let name = self.symbols.region(rank, &event.region);
        let number = rank.process.rank;
        if self.json {
            let shown = self.several.then_some(number);
            serde_json::to_writer(&mut *out, &JsonRegion::of(shown, &name, edge, event))?;
            return writeln!(out);
        }
        if self.several {
            write!(out, "{number:>6} ")?;
        }
        writeln!(out, "{}", text::region::text(&name, edge, event))
    }

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
        writeln!(out, "{}", text::text(&call, place, share, self.family))
    }
}
