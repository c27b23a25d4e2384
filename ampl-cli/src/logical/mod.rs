//! `ampl logical`: one program that stands for all ranks.

mod checked;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use ampl_analysis::logical::{Argument, Call, Count, Meaning, Node, Plain, Program, Thread, Values, check};
use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Options, patterns};
use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED};
use ampl_core::value::{rank_value, tag_value};
use ampl_reader::Symbols;
use ampl_trace::args::index_of_predefined;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED};
use serde_json::{Map, Value, json};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::output::{self, Stdout};
use crate::rundir::{RunArg, message};
use ampl_report::human::{count, cut, plural};

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
    damage.iter().for_each(|damage| tell!("{}", message(damage, path)));
    if let Some(rank) = args.rank {
        write_rank(args, &program, rank, path)?;
    } else if args.check {
        let found = check(&program, run.structure(), run.communicators());
        if args.json {
            output::json(&checked::document(&program, &found, gaps))?;
        } else {
            output::print(|out| checked::print(out, &program, &found))?;
        }
    } else if args.json {
        output::json(&document(&program, gaps))?;
    } else {
        output::print(|out| print(out, &program, gaps))?;
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
    output::print(|out| {
        let mut seq: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
        for (thread, label, times) in program.runs(rank) {
            let Some(call) = program.call(label, rank) else { continue };
            let next = seq.entry(thread).or_default();
            if args.json {
                for _ in 0..times {
                    let mut line = Map::new();
                    line.insert("rank".into(), rank.into());
                    line.insert("thread".into(), thread.into());
                    line.insert("seq".into(), (*next).into());
                    line.extend(one(&call));
                    serde_json::to_writer(&mut *out, &Value::Object(line))?;
                    writeln!(out)?;
                    *next += 1;
                }
            } else {
                let repeated = if times > 1 { format!("{} x ", count(times)) } else { String::new() };
                writeln!(out, "{thread:>3} {:>10}  {repeated}{}", *next, line(&call))?;
                *next += times;
            }
        }
        Ok(())
    })
}

/// Name of a function.
fn name(function: u16) -> &'static str {
    if usize::from(function) < FUNCTION_COUNT { Function(function).name() } else { "(not recorded)" }
}

fn param(function: u16, argument: &Argument) -> &'static str {
    if usize::from(function) >= FUNCTION_COUNT {
        return "";
    }
    Function(function).spec().params.get(usize::from(argument.param)).map_or("", |param| param.name)
}

fn flag(flags: u8) -> Option<&'static str> {
    match flags {
        _ if flags & CALL_MISS != 0 => Some("found nothing"),
        _ if flags & CALL_UNFINISHED != 0 => Some("has not returned"),
        _ if flags & CALL_ERROR != 0 => Some("failed"),
        _ if flags & CALL_NO_ARGS != 0 => Some("arguments not recorded"),
        _ => None,
    }
}

/// Value of an argument as `ampl decode` has it.
fn value(function: u16, argument: &Argument) -> Value {
    let predefined = || Some(PREDEFINED.get(index_of_predefined(argument.value as u64)?)?.1);
    match (argument.meaning, param(function, argument)) {
        (Meaning::Partner, _) | (_, "root") => {
            serde_json::to_value(rank_value(argument.value)).unwrap_or_default()
        }
        (_, name) if name.contains("tag") => {
            serde_json::to_value(tag_value(argument.value)).unwrap_or_default()
        }
        (Meaning::Comm, _) => match predefined() {
            Some("MPI_COMM_WORLD") => "world".into(),
            Some("MPI_COMM_SELF") => "self".into(),
            Some(name) => name.into(),
            None => format!("comm.w{}", argument.value).into(),
        },
        (_, name) if name.contains("type") => match predefined() {
            Some(name) => name.into(),
            None => format!("datatype.w{}", argument.value).into(),
        },
        _ => argument.value.into(),
    }
}

fn one(call: &Plain) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("fn".into(), name(call.function).into());
    let mut arguments: Map<String, Value> = Map::new();
    for argument in &call.arguments {
        let own = value(call.function, argument);
        put(&mut arguments, param(call.function, argument), own);
    }
    line.insert("args".into(), Value::Object(arguments));
    if let Some(flag) = flag(call.flags) {
        line.insert("note".into(), flag.into());
    }
    line
}

/// Adds a value; several of one name are a list.
fn put(arguments: &mut Map<String, Value>, name: &str, value: Value) {
    match arguments.get_mut(name) {
        None => _ = arguments.insert(name.into(), value),
        Some(Value::Array(list)) => list.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn line(call: &Plain) -> String {
    let fields = one(call);
    let arguments = fields["args"].as_object().map(|arguments| {
        arguments.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
    });
    let note = flag(call.flags).map(|flag| format!("  ({flag})")).unwrap_or_default();
    format!("{} {}{note}", name(call.function), arguments.unwrap_or_default())
}

/// Arguments of a call of the program, by name.
fn arguments(program: &Program, call: &Call) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (argument, values) in call.arguments.iter().zip(&call.values) {
        let text = match values {
            Values::Same(own) => value(call.function, &Argument { value: *own, ..*argument }),
            Values::Rule(rule) => program.space.name(rule).into(),
            Values::Each(_) => "by rank".into(),
        };
        put(&mut arguments, param(call.function, argument), text);
    }
    arguments
}

/// Guards of a thread's parts.
struct Guards<'a> {
    program: &'a Program,
    thread: &'a Thread,
    all: BTreeSet<u32>,
    /// Ranks that have a neighbour in each direction.
    neighbours: Vec<(String, BTreeSet<u32>)>,
}

impl<'a> Guards<'a> {
    fn new(program: &'a Program, thread: &'a Thread) -> Self {
        let all: BTreeSet<u32> =
            thread.classes.iter().flat_map(|class| class.ranks.iter().copied()).collect();
        let space = &program.space;
        let steps = space.steps().into_iter().map(|step| {
            let has = all.iter().copied().filter(|&rank| space.at(rank, &step).is_some()).collect();
            (space.name(&ampl_analysis::logical::Partner::Shift(step)), has)
        });
        let neighbours = steps.collect();
        Self { program, thread, all, neighbours }
    }

    fn ranks(&self, node: &Node) -> BTreeSet<u32> {
        let classes = node.uses().iter().filter_map(|used| self.thread.classes.get(used.class as usize));
        classes.flat_map(|class| class.ranks.iter().copied()).collect()
    }

    /// Ranks that run a part; `None` where those around it do.
    fn of(&self, node: &Node, around: &BTreeSet<u32>) -> Option<String> {
        let ranks = self.ranks(node);
        if ranks == *around {
            return None;
        }
        let neighbour = self.neighbours.iter().find(|(_, has)| {
            ranks == *has || (ranks.is_subset(has) && has.intersection(around).count() == ranks.len())
        });
        if let Some((name, _)) = neighbour {
            return Some(format!("if neighbour {name} exists"));
        }
        if ranks == self.all {
            return Some("all ranks".into());
        }
        let others: BTreeSet<u32> = around.difference(&ranks).copied().collect();
        if others.len() * 4 < ranks.len() {
            return Some(format!("not ranks {}", cut(&set(&others), 60)));
        }
        Some(format!("ranks {}", cut(&set(&ranks), 60)))
    }
}

fn set(ranks: &BTreeSet<u32>) -> String {
    crate::topology::rank_set(ranks.iter().copied())
}

/// Repetitions of a part, where they are more than one.
fn times(node: &Node) -> Option<String> {
    let mut counts: Vec<Option<u64>> = node
        .uses()
        .iter()
        .map(|used| match used.count {
            Count::Always(times) => Some(times),
            Count::Listed(_) => None,
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    match &counts[..] {
        [Some(1)] => None,
        [Some(times)] => Some(count(*times)),
        [None, ..] => Some("varying".into()),
        [Some(least), .., Some(most)] => Some(format!("{} to {}", count(*least), count(*most))),
        _ => None,
    }
}

fn print(out: &mut Stdout, program: &Program, gaps: &[u32]) -> io::Result<()> {
    let shape = program.space.shape.as_ref().map(crate::topology::describe);
    let copies =
        if program.space.copies > 1 { format!("{} copies of ", program.space.copies) } else { String::new() };
    let shape = shape.map_or("no topology: partners by number".into(), |shape| format!("{copies}{shape}"));
    writeln!(out, "{}, {shape}", plural(program.ranks.into(), "rank"))?;
    let longest = (0..program.ranks)
        .filter(|rank| !program.missing.contains(rank))
        .map(|rank| program.runs(rank).iter().fold(0_u64, |sum, run| sum.saturating_add(run.2)));
    let longest = if program.ranks <= 4096 { longest.max() } else { longest.take(1).max() };
    let records = program.records();
    if let Some(longest) = longest.filter(|_| records > 0) {
        writeln!(
            out,
            "{} stand for {} calls of a rank: {:.1} to 1",
            plural(records, "record"),
            count(longest),
            longest as f64 / records as f64
        )?;
    }
    if !program.missing.is_empty() {
        let missing = crate::topology::rank_set(program.missing.iter().copied());
        writeln!(out, "no calls are recorded of ranks {}", cut(&missing, 80))?;
    }
    if !gaps.is_empty() {
        let gaps = crate::topology::rank_set(gaps.iter().copied());
        writeln!(
            out,
            "some calls were only counted on ranks {}: they are '(not recorded)' here",
            cut(&gaps, 60)
        )?;
    }
    let mut symbols = Symbols::default();
    for thread in &program.threads {
        let guards = Guards::new(program, thread);
        let many =
            if program.threads.len() > 1 { format!("thread {}, ", thread.number) } else { String::new() };
        writeln!(out, "\n{many}ranks {}", cut(&set(&guards.all), 80))?;
        print_nodes(out, &guards, &thread.body, &guards.all, 1, &mut symbols)?;
    }
    Ok(())
}

fn print_nodes(
    out: &mut Stdout,
    guards: &Guards<'_>,
    nodes: &[Node],
    around: &BTreeSet<u32>,
    depth: usize,
    symbols: &mut Symbols,
) -> io::Result<()> {
    let mut open: Option<String> = None;
    for node in nodes {
        let guard = guards.of(node, around);
        if guard != open
            && let Some(guard) = &guard
        {
            writeln!(out, "{:indent$}{guard}:", "", indent = 2 * depth)?;
        }
        let depth = depth + usize::from(guard.is_some());
        open = guard;
        let indent = 2 * depth;
        match node {
            Node::Call { label, .. } => {
                let call = &guards.program.calls[*label as usize];
                let arguments = arguments(guards.program, call);
                let text: Vec<String> = arguments
                    .iter()
                    .map(|(name, value)| format!("{name}={}", cut(&plain(value), 40)))
                    .collect();
                let repeated = times(node).map(|times| format!("{times} x ")).unwrap_or_default();
                let note = flag(call.flags).map(|flag| format!("  ({flag})")).unwrap_or_default();
                let site = call.path.first().map(|frame| symbols.name(&frame.module, frame.offset));
                let site = site.map(|site| format!("  [{site}]")).unwrap_or_default();
                writeln!(
                    out,
                    "{:indent$}{repeated}{} {}{note}{site}",
                    "",
                    name(call.function),
                    text.join(" ")
                )?;
            }
            Node::Loop { body, .. } => {
                writeln!(out, "{:indent$}loop {}", "", times(node).unwrap_or_else(|| "1".into()))?;
                print_nodes(out, guards, body, &guards.ranks(node), depth + 1, symbols)?;
            }
        }
    }
    Ok(())
}

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
        "missing": crate::topology::rank_set(program.missing.iter().copied()),
        "gaps": crate::topology::rank_set(gaps.iter().copied()),
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
                row.insert("args".into(), Value::Object(arguments(guards.program, call)));
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
