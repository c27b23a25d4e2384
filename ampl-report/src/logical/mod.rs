//! The logical program of a run, for people.

pub mod checked;
pub mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use ampl_analysis::logical::{Node, Plain, Program};
use ampl_reader::Symbols;

use self::shown::{Guards, arguments, arguments_of, flag, name, set, times};
use crate::human::{count, cut, plural};
use crate::topology::{describe, rank_set};

/// Writes the calls of `rank`, made from the program alone.
///
/// # Errors
/// Errors of `out`.
pub fn write_rank(out: &mut impl Write, program: &Program, rank: u32) -> io::Result<()> {
    let mut seq: BTreeMap<u32, u64> = BTreeMap::new();
    for (thread, label, times) in program.runs(rank) {
        let Some(call) = program.call(label, rank) else { continue };
        let next = seq.entry(thread).or_default();
        let repeated = if times > 1 { format!("{} x ", count(times)) } else { String::new() };
        writeln!(out, "{thread:>3} {:>10}  {repeated}{}", *next, line(&call))?;
        *next += times;
    }
    Ok(())
}

fn line(call: &Plain) -> String {
    let arguments: Vec<String> =
        arguments_of(call).iter().map(|(name, value)| format!("{name}={value}")).collect();
    let note = flag(call.flags).map(|flag| format!("  ({flag})")).unwrap_or_default();
    format!("{} {}{note}", name(call.function), arguments.join(" "))
}

/// Writes that some calls of the ranks `gaps` were only counted; nothing where there are none.
fn only_counted(out: &mut impl Write, gaps: &[u32]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    let gaps = rank_set(gaps.iter().copied());
    writeln!(out, "some calls were only counted on ranks {}: they are '(not recorded)' here", cut(&gaps, 60))
}

/// Writes the program; `gaps` are the ranks some of whose calls were only counted.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, program: &Program, gaps: &[u32]) -> io::Result<()> {
    let shape = program.space.shape.as_ref().map(describe);
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
        let missing = rank_set(program.missing.iter().copied());
        writeln!(out, "no calls are recorded of ranks {}", cut(&missing, 80))?;
    }
    only_counted(out, gaps)?;
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
    out: &mut impl Write,
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
                    .map(|(name, value)| format!("{name}={}", cut(&value.to_string(), 40)))
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
