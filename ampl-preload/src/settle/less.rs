//! What is said at the end where no summary follows: where the run is, and whether ranks recorded less than was asked for.

use std::path::Path;

use ampl_trace::format::Part;
use ampl_trace::format::v1::Kind;
use ampl_trace::model::{STEP_CLOCK, Step};

/// Ranks that stepped down.
#[derive(Debug, Default)]
pub struct Less {
    ranks: u32,
    /// When the first of them did, nanoseconds since T0.
    from_ns: Option<u64>,
    /// How far down any of them went.
    lowest: usize,
}

/// What a rank's part says of it.
#[derive(serde::Deserialize)]
struct Process {
    #[serde(default)]
    steps: Vec<Step>,
}

/// Levels, and what is kept of calls there.
const LEVELS: [(&str, &str); 5] = [
    ("kept", "all that was asked for"),
    ("drawn", "all of windows that are drawn beforehand"),
    ("structure", "no times of calls"),
    ("summaries", "no calls, but summaries of windows"),
    ("off", "counts only"),
];

impl Less {
    /// Takes note of the rank that `parts` are of.
    pub fn note(&mut self, parts: &[Part<'_>]) {
        let process = parts.iter().find(|part| part.kind == Kind::Processes);
        let Some(process) = process.and_then(|part| serde_json::from_slice::<Process>(&part.payload).ok())
        else {
            return;
        };
        let down = process.steps.iter().filter(|step| step.level != STEP_CLOCK);
        let level = |step: &Step| LEVELS.iter().position(|(level, _)| *level == step.level).unwrap_or(0);
        let Some((lowest, at)) =
            down.clone().map(level).max().filter(|&lowest| lowest > 1).zip(down.map(|step| step.at).min())
        else {
            return;
        };
        self.ranks += 1;
        self.lowest = self.lowest.max(lowest);
        self.from_ns = Some(self.from_ns.map_or(at, |earlier| earlier.min(at)));
    }

    /// One message, if there is something to say: where the run is goes without saying where its directory was named.
    pub fn message(&self, ranks: u32, run: &Path, unnamed: bool) -> Option<String> {
        let run = run.display();
        let seconds = self.from_ns.map(|nanos| nanos as f64 / 1e9);
        match seconds {
            Some(seconds) => Some(format!(
                "{} of {ranks} ranks recorded less than was asked for, from {seconds:.3} s on, at the least {}, to stay within \
                 agent.max_overhead ({run}): see what is missing with 'ampl info {run}'",
                self.ranks, LEVELS[self.lowest].1
            )),
            None => unnamed.then(|| format!("the run is in {run}: see it with 'ampl info {run}'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(steps: &str) -> Vec<Part<'static>> {
        let payload = format!("{{\"rank\": 0, \"steps\": [{steps}]}}").into_bytes();
        vec![Part { kind: Kind::Processes, rank: Some(0), payload: payload.into() }]
    }

    #[test]
    fn one_line_says_how_many_ranks_did_less_and_since_when() {
        let step = |at: u64, level: &str| {
            format!("{{\"window\":1,\"at\":{at},\"level\":\"{level}\",\"share\":0.1}}")
        };
        let mut less = Less::default();
        for steps in [String::new(), step(1, STEP_CLOCK), step(1, "drawn")] {
            less.note(&rank(&steps));
        }
        less.note(&[]);
        assert_eq!(less.message(4, Path::new("r"), false), None);
        assert_eq!(
            less.message(4, Path::new("r"), true).unwrap(),
            "the run is in r: see it with 'ampl info r'"
        );
        less.note(&rank(&[step(2_500_000_000, "structure"), step(3_000_000_000, "kept")].join(",")));
        less.note(&rank(&[step(1_250_000_000, "structure"), step(3_000_000_000, "off")].join(",")));
        for unnamed in [false, true] {
            assert_eq!(
                less.message(4, Path::new("r"), unnamed).unwrap(),
                "2 of 4 ranks recorded less than was asked for, from 1.250 s on, at the least counts only, to stay within \
                 agent.max_overhead (r): see what is missing with 'ampl info r'"
            );
        }
    }
}
