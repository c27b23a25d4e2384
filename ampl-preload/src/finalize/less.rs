//! Messages at the end where no summary follows: where the run is, and ranks that recorded less than configured.

use std::collections::BTreeSet;
use std::path::Path;

use ampl_core::units::RankSet;
use ampl_trace::format::Part;
use ampl_trace::format::v1::Kind;
use ampl_trace::model::{GaveUp, Level, Limit, Step};

/// Ranks that stepped down, and ranks that went on without the agent.
#[derive(Debug, Default)]
pub struct Less {
    ranks: u32,
    /// When the first of them did, nanoseconds since T0.
    from_ns: Option<u64>,
    /// The lowest level that any of them went to.
    lowest: Level,
    /// True where any did because of what the agent took.
    costs: bool,
    /// True where any did for want of room.
    room: bool,
    /// Limits that any did reach.
    limits: BTreeSet<Limit>,
    /// Ranks whose agents gave up: for want of room, and for a failure.
    gave_up: [Vec<u32>; 2],
}

/// Steps of a rank, from its part of the trace.
#[derive(serde::Deserialize)]
struct Process {
    rank: u32,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    gave_up: Option<GaveUp>,
}

/// Records of calls at a level.
fn records(level: Level) -> &'static str {
    match level {
        Level::Kept | Level::Clock => "all that was asked for",
        Level::Drawn => "all of windows that are drawn beforehand",
        Level::Structure => "no times of calls",
        Level::Summaries => "no calls, but summaries of windows",
        Level::Off => "counts only",
    }
}

fn lower(one: Level, other: Level) -> Level {
    if other.depth() > one.depth() { other } else { one }
}

impl Less {
    /// Adds the rank that `parts` are of.
    pub fn note(&mut self, parts: &[Part<'_>]) {
        let process = parts.iter().find(|part| part.kind == Kind::Processes);
        let Some(process) = process.and_then(|part| serde_json::from_slice::<Process>(&part.payload).ok())
        else {
            return;
        };
        if let Some(why) = process.gave_up {
            // Earlier steps down are the lesser matter.
            self.gave_up[usize::from(why == GaveUp::Failed)].push(process.rank);
            return;
        }
        let (mut before, mut lowest, mut from_ns) = (Level::Kept, Level::Kept, None);
        for step in process.steps.iter().filter(|step| step.level != Level::Clock) {
            // Windows that are drawn beforehand lose nothing.
            if step.level.depth() > lower(before, Level::Drawn).depth() {
                // A share is given where cost made it step down; for want of room it is 0.
                self.costs |= step.share > 0.0;
                self.room |= step.share <= 0.0 && step.limit.is_none();
                self.limits.extend(step.limit);
                from_ns = from_ns.or(Some(step.at));
                lowest = lower(lowest, step.level);
            }
            before = step.level;
        }
        let Some(at) = from_ns else { return };
        self.ranks += 1;
        self.lowest = lower(self.lowest, lowest);
        self.from_ns = Some(self.from_ns.map_or(at, |earlier| earlier.min(at)));
    }

    /// Messages, if there are any: a run whose directory was named needs none to say where it is.
    pub fn messages(&self, ranks: u32, run: &Path, unnamed: bool) -> Vec<String> {
        let run = run.display();
        let mut messages = Vec::new();
        if let Some(nanos) = self.from_ns {
            // Times go first, and calls at their own limit.
            let limit = match self.lowest {
                Level::Drawn | Level::Structure => "agent.max_overhead",
                _ => "agent.max_structure_overhead",
            };
            let limits = self.limits.iter().map(|limit| limit.key()).chain(self.costs.then_some(limit));
            let limits = limits.map(|limit| format!("to stay within {limit}"));
            let why = limits.chain(self.room.then(|| "for want of room (output.journal)".into()));
            let why = why.collect::<Vec<_>>().join(", and ");
            messages.push(format!(
                "{} of {ranks} ranks recorded less than was asked for, from {:.3} s on, at the least {}, {why} ({run}): see \
                 what is missing with 'ampl info {run}'",
                self.ranks,
                nanos as f64 / 1e9,
                records(self.lowest)
            ));
        }
        let whys = ["found no room for their journals", "failed in ampl itself"];
        let ways_out = ["set output.journal to another place", "the program was not affected"];
        for ((gave_up, why), way_out) in self.gave_up.iter().zip(whys).zip(ways_out) {
            if !gave_up.is_empty() {
                let set: RankSet = gave_up.iter().copied().collect();
                messages.push(format!(
                    "{} of {ranks} ranks ({set}) {why} and went on without ampl ({run}): {way_out}",
                    gave_up.len()
                ));
            }
        }
        if messages.is_empty() && unnamed {
            messages.push(format!("the run is in {run}: see it with 'ampl info {run}'"));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(fields: &str) -> Vec<Part<'static>> {
        let payload = format!("{{\"rank\": 0, {fields}}}").into_bytes();
        vec![Part { kind: Kind::Processes, rank: Some(0), payload: payload.into() }]
    }

    fn steps(steps: &[(u64, &str, f64)]) -> Vec<Part<'static>> {
        let step = |(at, level, share): &(u64, &str, f64)| {
            format!("{{\"window\":1,\"at\":{at},\"level\":\"{level}\",\"share\":{share}}}")
        };
        rank(&format!("\"steps\": [{}]", steps.iter().map(step).collect::<Vec<_>>().join(",")))
    }

    fn said(less: &Less, unnamed: bool) -> Vec<String> {
        less.messages(4, Path::new("r"), unnamed)
    }

    #[test]
    fn one_line_says_how_many_ranks_did_less_and_since_when() {
        let mut less = Less::default();
        for parts in [steps(&[]), steps(&[(1, "clock", 0.1)]), steps(&[(1, "drawn", 0.1)]), Vec::new()] {
            less.note(&parts);
        }
        assert!(said(&less, false).is_empty());
        assert_eq!(said(&less, true), ["the run is in r: see it with 'ampl info r'"]);
        less.note(&steps(&[
            (1, "drawn", 0.1),
            (2_500_000_000, "structure", 0.1),
            (3_000_000_000, "kept", 0.0),
        ]));
        less.note(&steps(&[(1_250_000_000, "structure", 0.1), (3_000_000_000, "off", 0.1)]));
        let lines = |why: &str| {
            [format!(
                "2 of 4 ranks recorded less than was asked for, from 1.250 s on, at the least counts only, {why} (r): \
                 see what is missing with 'ampl info r'"
            )]
        };
        for unnamed in [false, true] {
            assert_eq!(said(&less, unnamed), lines("to stay within agent.max_structure_overhead"));
        }
    }

    #[test]
    fn reasons_and_ranks_without_ampl_are_told_apart() {
        let mut less = Less::default();
        less.note(&steps(&[(5, "summaries", 0.0)]));
        assert!(
            said(&less, false)[0].contains("summaries of windows, for want of room (output.journal) (r)")
        );
        less.note(&steps(&[(5, "off", 0.5)]));
        assert!(said(&less, false)[0].contains("agent.max_structure_overhead, and for want of room"));
        let limited =
            r#""steps": [{"window":1,"at":4,"level":"structure","share":0.0,"limit":"agent.max_memory"}]"#;
        less.note(&rank(limited));
        assert!(said(&less, false)[0].contains("to stay within agent.max_memory, and to stay within"));
        let mut less = Less::default();
        less.note(&rank(limited));
        assert!(said(&less, false)[0].contains("no times of calls, to stay within agent.max_memory (r)"));
        let mut less = Less::default();
        less.note(&rank("\"gave_up\": \"no-room\""));
        less.note(&rank("\"gave_up\": \"failed\""));
        let [room, failed] = &said(&less, true)[..] else { panic!("{less:?}") };
        assert!(room.starts_with("1 of 4 ranks (0) found no room") && room.contains("set output.journal"));
        assert!(failed.starts_with("1 of 4 ranks (0) failed in ampl itself"), "{failed}");
    }
}
