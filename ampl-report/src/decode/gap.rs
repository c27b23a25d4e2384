//! A gap as a line.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_reader::Gap;

use crate::human;

/// Calls by function; `None` where it is not known of all of them.
pub fn functions(gap: &Gap) -> Option<BTreeMap<&'static str, u64>> {
    let mut functions = BTreeMap::new();
    for part in &gap.parts {
        *functions.entry(Function::name_of(part.function)).or_default() += part.calls;
    }
    (functions.values().sum::<u64>() == gap.calls).then_some(functions)
}

/// `    512  -     +1.250000000 s   2.03 s  1,234 calls not recorded (overhead): MPI_Recv 634, MPI_Send 600`
pub fn text(gap: &Gap) -> String {
    let start = gap.span_ns.map_or("-".into(), |(from, _)| super::moment(from));
    let long = gap.span_ns.map(|(from, until)| until.saturating_sub(from).max(0) as f64);
    let long = long.map_or("-".into(), human::duration);
    let calls = human::plural(gap.calls, "call");
    let mut line = format!("{:>7}  {:<5} {start:>15}  {long:>8}  {calls} not recorded", gap.seq, "-");
    line += &format!(" ({})", gap.reason);
    if let Some(functions) = functions(gap) {
        let each = functions.iter().map(|(name, &calls)| format!("{name} {}", human::count(calls)));
        line += ": ";
        line += &each.collect::<Vec<_>>().join(", ");
    }
    if gap.thread != 0 {
        line += &format!("  thread {}", gap.thread);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_reader::{GapPart as Part, Reason};

    fn gap(known: bool) -> Gap {
        let part = |name, site, calls| Part { function: Function::by_name(name).unwrap().0, site, calls };
        let parts =
            vec![part("MPI_Send", Some(4), 1000), part("MPI_Send", None, 5), part("MPI_Recv", None, 7)];
        Gap {
            seq: 12,
            thread: if known { 0 } else { 3 },
            calls: 1012 + u64::from(!known),
            reason: Reason::Overhead,
            parts,
            span_ns: known.then_some((1_250_000_000, 3_250_000_000)),
        }
    }

    #[test]
    fn text_shows_the_same() {
        let line = text(&gap(true));
        let end = "+1.250000000 s       2 s  1,012 calls not recorded (overhead): MPI_Recv 7, MPI_Send 1,005";
        assert!(line.starts_with("     12  -") && line.ends_with(end), "{line}");
        assert!(text(&gap(false)).ends_with("-  1,013 calls not recorded (overhead)  thread 3"));
    }
}
