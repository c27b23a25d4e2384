//! Rows of `calls`: every stored call, with its time and design weight where its window's times are stored.

use std::collections::HashMap;
use std::io::{self, Write};

use ampl_analysis::calls::{Objects, message_bytes};
use ampl_core::plan::Plan;
use ampl_core::value::Value;
use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

use crate::columns::{Cell, Column, RowWriter, Type};

const COLUMNS: [Column; 14] = [
    Column::every("rank", Type::Int32),
    Column::every("thread", Type::Int32),
    Column::every("seq", Type::Int64),
    Column::some("window", Type::Int64),
    Column::every("function", Type::Text),
    Column::some("site", Type::Text),
    Column::some("start_ns", Type::Int64),
    Column::some("duration_ns", Type::Int64),
    Column::some("weight", Type::Double),
    Column::some("peer", Type::Int64),
    Column::some("tag", Type::Int64),
    Column::some("bytes", Type::Int64),
    Column::some("comm", Type::Text),
    Column::every("count", Type::Int64),
];

/// Rows that were written, and calls that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Calls left out because a time range is asked for and their times are not stored.
    pub untimed: u64,
    /// Ranks with a call that cannot be read.
    pub damaged: u64,
}

/// Writes the calls of `trace` that are asked for, as Parquet. `rank_done` is called behind each rank.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    trace: &Trace,
    plan: &Plan,
    selection: &Selection,
    out: impl Write + Send,
    mut rank_done: impl FnMut(),
) -> io::Result<Written> {
    let mut table = RowWriter::new(out, "calls", &COLUMNS)?;
    let mut written = Written::default();
    let mut symbols = Symbols::default();
    let comms = Communicators::of(trace);
    for rank in trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank)) {
        symbols.next_rank();
        let structure = trace.structure.rank(rank.process.rank).unwrap_or_default();
        let weights = weights(rank, plan);
        let mut objects = Objects::of(&structure, trace.run.ranks);
        // By thread and signature: calls are many, signatures few.
        let mut bytes: HashMap<(u32, u32), Option<u64>> = HashMap::new();
        for call in Calls::naming(&structure, rank, &comms) {
            let Ok(call) = call else {
                written.damaged += 1;
                break;
            };
            if selection.cuts_time() {
                let Some(timed) = call.timed else {
                    written.untimed += call.count;
                    continue;
                };
                if !selection.takes_time(timed.start_ns, timed.duration_ns) {
                    continue;
                }
            }
            let bytes = *bytes.entry((call.thread, call.terminal)).or_insert_with(|| {
                let thread = structure.threads.iter().find(|thread| thread.thread == call.thread)?;
                message_bytes(thread.signatures.get(call.terminal as usize)?, &mut objects)
            });
            let site = call.site.and_then(|site| symbols.site(rank, site));
            let comm = argument(&call, &["comm"]).map(ToString::to_string);
            let timed = call.timed;
            table.push(&[
                Cell::Int(rank.process.rank.into()),
                Cell::Int(call.thread.into()),
                Cell::Int(call.seq as i64),
                Cell::int(timed.map(|timed| timed.window as i64)),
                Cell::Text(call.function.name()),
                Cell::text(site.as_deref()),
                Cell::int(timed.map(|timed| timed.start_ns)),
                Cell::int(timed.and_then(|timed| timed.duration_ns).map(|nanos| nanos as i64)),
                Cell::double(timed.and_then(|timed| weights.get(&timed.window).copied())),
                Cell::int(peer(&call)),
                Cell::int(tag(&call)),
                Cell::int(bytes.map(|bytes| bytes as i64)),
                Cell::text(comm.as_deref()),
                Cell::Int(call.count as i64),
            ])?;
            written.rows += 1;
        }
        rank_done();
    }
    table.close()?;
    Ok(written)
}

/// Design weight of the calls in each window.
fn weights(rank: &RankTrace, plan: &Plan) -> HashMap<u64, f64> {
    let weight = |window: &WindowSummary| match window.inclusion() {
        _ if plan.config.stores_everything() => Some(1.0),
        probability if probability > 0.0 => Some(1.0 / probability),
        _ => None,
    };
    let kept = rank.windows.iter().filter(|window| window.kept);
    kept.filter_map(|window| Some((window.window, weight(window)?))).collect()
}

fn argument<'a>(call: &'a Call, names: &[&str]) -> Option<&'a Value> {
    let value = |name: &&str| call.args.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    names.iter().find_map(value)
}

/// Source and tag of the message that a call received, from its one status.
fn status(call: &Call) -> Option<(i64, i64)> {
    call.out.iter().find_map(|(name, value)| match value {
        Value::Status { source, tag } if *name == "status" => Some((*source, *tag)),
        _ => None,
    })
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// The rank in the communicator that the message goes to or comes from; for a wildcard the actual source.
fn peer(call: &Call) -> Option<i64> {
    let named = argument(call, &["dest", "target_rank", "source"])?;
    let got = || status(call).map(|(source, _)| source).filter(|&source| source >= 0);
    number(named).or_else(|| is_wildcard(named).then(got).flatten())
}

fn tag(call: &Call) -> Option<i64> {
    let named = argument(call, &["tag", "sendtag"])?;
    let got = || status(call).map(|(_, tag)| tag).filter(|&tag| tag >= 0);
    number(named).or_else(|| is_wildcard(named).then(got).flatten())
}

fn is_wildcard(value: &Value) -> bool {
    matches!(value, Value::Name(name) if name == "MPI_ANY_SOURCE" || name == "MPI_ANY_TAG")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::Function;

    #[test]
    fn peers_are_numbers_or_the_message_s() {
        let call = |source: Value, out: Vec<(&'static str, Value)>| Call {
            seq: 0,
            thread: 0,
            function: Function::by_name("MPI_Recv").expect("a function of MPI"),
            args: vec![("source", source), ("tag", Value::Name("MPI_ANY_TAG".into()))],
            out,
            count: 1,
            code: 0,
            site: None,
            timed: None,
            terminal: 0,
        };
        let any = || Value::Name("MPI_ANY_SOURCE".into());
        let told = || vec![("status", Value::Status { source: 3, tag: 9 })];
        assert_eq!((peer(&call(any(), told())), tag(&call(any(), told()))), (Some(3), Some(9)));
        assert_eq!((peer(&call(any(), Vec::new())), tag(&call(any(), Vec::new()))), (None, None));
        assert_eq!(peer(&call(Value::Int(5), told())), Some(5));
        assert_eq!(peer(&call(Value::Name("MPI_PROC_NULL".into()), told())), None);
    }
}
