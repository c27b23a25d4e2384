//! `ampl logical`: one program that stands for all ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use ampl_analysis::logical::{Check, Count, Losses, Node, Program, Thread, check};
use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Options, patterns};
use ampl_reader::Symbols;
use ampl_report::logical as text;
use ampl_report::logical::checked::{self, share};
use ampl_report::logical::shown::{Guards, arguments, arguments_of, flag, name, set};
use ampl_report::topology::rank_set;
use serde_json::{Map, Value, json};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::output;
use crate::rundir::{RunArg, message};

/// Write the one logical program that stands for all ranks: loops, and calls by direction.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Partners are named by the run's topology: +x is the next rank along the first axis. A part that not all ranks run has
a guard. --check makes every rank's calls from the program and compares them with those recorded.

Examples:
  ampl logical ampl-run
  ampl logical ampl-run --rank 5
  ampl logical ampl-run --check --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Write the calls of this rank, made from the logical program alone
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Compare the program with the calls of every rank
    #[arg(long, conflicts_with = "rank")]
    check: bool,
    /// Print JSON; of --rank a line for each call
    #[arg(long)]
    json: bool,
}

/// Prints the program, a rank's calls, or the comparison.
///
/// # Errors
/// A [`Failure`] of status 4 for a rank that is not there, of status 3 for what cannot be read.
pub fn logical(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.open()?;
    let path = &args.run.run;
    let too_much = |error: &dyn std::fmt::Display| {
        Failure::message(DAMAGED, error, path.display(), "look at a smaller run")
    };
    let messages = Messages::of(run.structure(), run.communicators(), run.info().ranks);
    let found = patterns(&messages, &Options::default()).map_err(|error| too_much(&error))?;
    let program = Program::of(run.structure(), run.communicators(), run.info().ranks, &found)
        .map_err(|error| too_much(&error))?;
    let gaps = &messages.gaps;
    let damage = run.damage();
    damage.iter().for_each(|damage| notice!("{}", message(damage, path)));
    if let Some(rank) = args.rank {
        write_rank(args, &program, rank, path)?;
    } else if args.check {
        let found = check(&program, run.structure(), run.communicators());
        if args.json {
            output::json(&comparison(&program, &found, gaps))?;
        } else {
            output::print(|out| checked::write(out, &program, &found, gaps))?;
        }
    } else if args.json {
        output::json(&document(&program, gaps))?;
    } else {
        output::print(|out| text::write(out, &program, gaps))?;
    }
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

fn write_rank(args: &Args, program: &Program, rank: u32, path: &Path) -> anyhow::Result<()> {
    if rank >= program.ranks {
        let what = format!("there is no rank {rank}");
        let fix = format!("ranks are 0 to {}", program.ranks.saturating_sub(1));
        return Err(Failure::message(NOT_FOUND, what, path.display(), fix));
    }
    if program.missing.contains(&rank) {
        let what = format!("no calls of rank {rank} are recorded");
        return Err(Failure::message(NOT_FOUND, what, path.display(), "name another rank"));
    }
    if !args.json {
        return output::print(|out| text::write_rank(out, program, rank));
    }
    output::print_as(true, |out| {
        let mut seq: BTreeMap<u32, u64> = BTreeMap::new();
        for (thread, label, times) in program.runs(rank) {
            let Some(call) = program.call(label, rank) else { continue };
            let next = seq.entry(thread).or_default();
            for _ in 0..times {
                let (function, args) = (name(call.function), arguments_of(&call));
                let mut line =
                    json!({"rank": rank, "thread": thread, "seq": *next, "fn": function, "args": args});
                if let Some(flag) = flag(call.flags) {
                    line["note"] = flag.into();
                }
                serde_json::to_writer(&mut *out, &line)?;
                writeln!(out)?;
                *next += 1;
            }
        }
        Ok(())
    })
}

/// The JSON document of the program.
fn document(program: &Program, gaps: &[u32]) -> Value {
    let mut symbols = Symbols::default();
    let thread = |thread: &Thread| {
        let guards = Guards::new(program, thread);
        json!({
            "thread": thread.number,
            "ranks": set(&guards.all),
            "body": body(&guards, &thread.body, &guards.all, &mut symbols),
        })
    };
    let threads: Vec<Value> = program.threads.iter().map(thread).collect();
    json!({
        "schema": 1,
        "ranks": program.ranks,
        "topology": program.space.shape.as_ref().map(|shape| shape.name().to_owned()),
        "missing": rank_set(program.missing.iter().copied()),
        "gaps": rank_set(gaps.iter().copied()),
        "records": program.records(),
        "threads": threads,
    })
}

fn body(guards: &Guards<'_>, nodes: &[Node], around: &BTreeSet<u32>, symbols: &mut Symbols) -> Vec<Value> {
    let mut rows = Vec::new();
    for node in nodes {
        let ranks = guards.ranks(node);
        let mut row = Map::new();
        if ranks != *around {
            row.insert("ranks".into(), set(&ranks).into());
            if let Some(guard) = guards.of(node, around) {
                row.insert("guard".into(), guard.into());
            }
        }
        let counts: Vec<Value> = node
            .uses()
            .iter()
            .map(|used| match used.count {
                Count::Always(times) => times.into(),
                Count::Listed(_) => Value::Null,
            })
            .collect();
        let same = counts.windows(2).all(|pair| pair[0] == pair[1]);
        row.insert("times".into(), if same { counts[0].clone() } else { counts.into() });
        match node {
            Node::Call { label, .. } => {
                let call = &guards.program.calls[*label as usize];
                row.insert("fn".into(), name(call.function).into());
                row.insert("args".into(), json!(arguments(guards.program, call)));
                let site = call.path.first().map(|frame| symbols.name(&frame.module, frame.offset));
                row.insert("site".into(), site.into());
                if let Some(flag) = flag(call.flags) {
                    row.insert("note".into(), flag.into());
                }
            }
            Node::Loop { body: inner, .. } => {
                row.insert("loop".into(), body(guards, inner, &ranks, symbols).into());
            }
        }
        rows.push(Value::Object(row));
    }
    rows
}

/// The JSON document of the comparison.
fn comparison(program: &Program, check: &Check, gaps: &[u32]) -> Value {
    let losses = |losses: &Losses| {
        json!({
            "ranks_exact": losses.ranks_exact,
            "calls_lost": share(losses.calls_lost, check.calls), "bytes_lost": share(losses.bytes_lost, check.bytes),
            "calls_extra": share(losses.calls_extra, check.calls),
        })
    };
    let records = program.records();
    let mut document = json!({
        "schema": 1, "ranks": check.ranks,
        "with_values": losses(&check.values),
        "calls": check.calls,
        "longest": check.longest,
        "records": records,
        "compression": if records == 0 { Value::Null } else { (check.longest as f64 / records as f64).into() },
        "outside_topology": {
            "calls": share(check.calls_outside, check.calls_with_partner),
            "bytes": share(check.bytes_outside, check.bytes_with_partner),
        },
        "missing": rank_set(program.missing.iter().copied()),
        "gaps": rank_set(gaps.iter().copied()),
        "complete": !check.cut,
    });
    if let (Value::Object(document), Value::Object(outline)) = (&mut document, losses(&check.outline)) {
        document.extend(outline);
    }
    document
}
