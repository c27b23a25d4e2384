//! Messages between agents and client.
//!
//! Summaries go up a reduction tree as a [`CensusWindow`] in an [`UpMessage`]; the client's [`Directive`] comes down in
//! a [`DownMessage`]. The plan alone bounds their length: nothing grows with the number of ranks, and no list of ranks
//! is ever sent. Under retrospective decisions each window passes twice: its sums, then its ranks by bin once a
//! [`Reference`] has come to bin them by. A [`RetrospectiveDecision`] comes down for it.
//!
//! Where windows are to follow the program's steps, ranks name the calls of a step in their summaries ([`StepSums`]), and
//! a [`StepAnnouncement`] comes down.

mod decision;
mod down;
mod estimate;
mod moments;
mod partial;
mod retrospective;
mod steps;
mod stratification;
mod summary;
mod up;
mod wire;

pub use decision::{Decision, DecisionLimit};
pub use down::{Directive, DownMessage, StratumDirective};
pub use partial::{CellKey, CellSums, MessageLayout, MetricMoments, PartialSums, RetrospectiveShape};
pub use retrospective::{
    GroupDecision, GroupReference, MOST_STRATA, Reference, RetrospectiveDecision, StratumDecision,
};
pub use steps::{MOST_NAMED, NamedCall, OwnCall, OwnSteps, StepAnnouncement, StepCall, StepMarker, StepSums};
pub use stratification::{
    Own, Sampled, Stratification, Stratifications, StratifiedGroup, StratifiedSums, StratumCount, StratumSums,
};
pub use summary::{MetricSummary, Summary};
pub use up::{CensusWindow, UpMessage};

use wire::Reader;

/// First byte of every message.
pub const VERSION: u8 = 7;

const KIND_UP: u8 = 1;
const KIND_DIRECTIVE: u8 = 2;
const KIND_DONE: u8 = 3;
const KIND_REFERENCE: u8 = 4;
const KIND_RETROSPECTIVE: u8 = 5;
const KIND_STEPS: u8 = 6;

/// Reason why bytes are not a message of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// The first byte names another version.
    Version {
        /// The byte found.
        found: u8,
    },
    /// The second byte names no kind of message, or not the kind expected here.
    Kind {
        /// The byte found.
        found: u8,
    },
    /// More or fewer bytes than the header announces.
    Length {
        /// Bytes that the header calls for (or the header's own size).
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A field holds a value that no sender writes.
    Value {
        /// The field.
        field: &'static str,
    },
}

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version { found } => write!(f, "message version {found}, not {VERSION}"),
            Self::Kind { found } => write!(f, "unexpected kind of message {found}"),
            Self::Length { expected, found } => {
                write!(f, "message of {found} bytes, not {expected}")
            }
            Self::Value { field } => write!(f, "impossible value of {field} in a message"),
        }
    }
}

impl std::error::Error for MessageError {}

fn expect_kind(from: &mut Reader, kinds: &[u8]) -> Result<u8, MessageError> {
    match (from.u8(), from.u8()) {
        (VERSION, kind) if kinds.contains(&kind) => Ok(kind),
        (VERSION, found) => Err(MessageError::Kind { found }),
        (found, _) => Err(MessageError::Version { found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DEFAULT_TARGET, Group, Mechanism, Selection, Sizing, Summaries};
    use crate::plan::Plan;
    use crate::stats::Moments;
    use crate::stats::bins::{Origin, Point};
    use crate::units::{RankSet, WindowId};

    fn shape(sizing: Sizing, summaries: Summaries, pinned: &str) -> MessageLayout {
        let mut config = Config::default();
        config.sampling.sizing = sizing;
        config.sampling.summaries = summaries;
        config.sampling.selection = Selection::Predictive;
        config.groups.push(Group {
            name: "g".into(),
            members: RankSet::range(0, 99).into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::parse(pinned).unwrap(),
        });
        config.whole.push("g".into());
        MessageLayout::of(&Plan::new(config, 100).unwrap())
    }

    #[test]
    fn one_group_fits_in_four_kibibytes() {
        for pinned in ["", "3-5"] {
            for (sizing, summaries) in [
                (Sizing::Neyman, Summaries::Census),
                (Sizing::Neyman, Summaries::Sampled),
                (Sizing::Ampl2008, Summaries::Sampled),
            ] {
                let shape = shape(sizing, summaries, pinned);
                let len = UpMessage::encoded_len(&shape);
                let mut bytes = Vec::new();
                let mut window = CensusWindow::new(&shape, WindowId(3), WindowId(3));
                let [few, more] = [1.5, 4.0].map(|y| Moments::of_rank(y as u64, y, y * y, y, y));
                for metric in window.partial.cells.iter_mut().flat_map(|cell| &mut cell.metrics) {
                    let all = more.merged(&few).merged(&few);
                    metric.census = if shape.census { all } else { Moments::default() };
                    metric.kept = all;
                    metric.interval = if shape.interval { all } else { Moments::default() };
                }
                let message = UpMessage { pass: 0, finished: 2, window: Some(window) };
                message.encode(&shape, &mut bytes);
                // What the first windows are decided by takes more.
                assert!(
                    bytes.len() <= 4096 && (bytes.len() == len || shape.retrospective.is_some()),
                    "{len}"
                );
                assert_eq!(UpMessage::decode(&bytes), Ok(message));
                // Bytes of a message before it may lie behind it.
                bytes.extend([7; 100]);
                assert!(UpMessage::decode(&bytes).is_ok());
                bytes.clear();
                let end = UpMessage { pass: 0, finished: 100, window: None };
                end.encode(&shape, &mut bytes);
                assert!(bytes.len() < len);
                assert_eq!(UpMessage::decode(&bytes), Ok(end));
            }
        }
    }

    #[test]
    fn only_metrics_that_something_is_decided_by_are_summed() {
        for (budget, expected) in
            [(None, &["mpi.time", "compute.time"][..]), (Some(1e6), &["wall", "mpi.time", "compute.time"])]
        {
            let mut config = Config::default();
            config.sampling.budget = budget;
            let plan = Plan::new(config, 100).unwrap();
            let shape = MessageLayout::of(&plan);
            let metrics = vec![MetricSummary::one(3.0); plan.metrics.len()];
            let summary = Summary { metrics, kept: true, ..Summary::empty(&plan) };
            let mut partial = shape.partial();
            partial.add(&shape, 0, 1, &summary);
            let summed = plan.metrics.iter().zip(&partial.cells[0].metrics);
            let summed = summed.filter(|(_, sums)| **sums != MetricMoments::default());
            let names: Vec<_> = summed.map(|(metric, _)| metric.name()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn no_message_grows_with_the_job_and_a_directive_fits_in_four_kibibytes() {
        for groups in [1, 8, 64, 200] {
            let lengths = [1_000, 1_000_000].map(|ranks| {
                let mut config = Config::default();
                config.sampling.selection = Selection::Predictive;
                let each = ranks / groups;
                config.groups = (0..groups)
                    .map(|group| Group {
                        name: format!("g{group}"),
                        members: RankSet::range(group * each, (group + 1) * each - 1).into(),
                        target: DEFAULT_TARGET,
                        pinned: RankSet::default(),
                    })
                    .collect();
                let shape = MessageLayout::of(&Plan::new(config, groups * each).unwrap());
                assert_eq!(shape.strata(), groups as usize);
                let strata = (0..groups)
                    .map(|group| StratumDirective {
                        group: group as u16,
                        stratum: 0,
                        size: each,
                        probability: 1.0,
                        policy: 0,
                    })
                    .collect();
                let directive = Directive {
                    update: 0,
                    first_window: WindowId(0),
                    seed: 1,
                    mechanism: Mechanism::Global,
                    strata,
                    divided: Vec::new(),
                };
                let mut bytes = Vec::new();
                DownMessage::Directive(directive).encode(&shape, &mut bytes);
                assert_eq!(bytes.len(), DownMessage::encoded_len(&shape));
                (bytes.len(), UpMessage::encoded_len(&shape))
            });
            assert_eq!(lengths[0], lengths[1]);
            assert!(lengths[0].0 <= 4096, "{groups}: {lengths:?}");
        }
    }

    #[test]
    fn what_a_window_is_decided_by_has_one_size_and_comes_back() {
        let sizes = [100, 1_000_000].map(|ranks| {
            let shape = MessageLayout::of(&Plan::new(Config::default(), ranks).unwrap());
            let retrospective = shape.retrospective.clone().unwrap();
            assert_eq!(
                (retrospective.bins, retrospective.guides.len(), &retrospective.groups[..]),
                (128, 2, &[0][..])
            );
            let mut window = CensusWindow::binned(&shape, WindowId(9), WindowId(9));
            window.reported = 7;
            window.partial.binned[0].add(5, &[Point { z: 0.25, v: 0.5 }, Point { z: -3.0, v: 0.0 }]);
            let up = UpMessage { pass: 1, finished: 3, window: Some(window) };
            let origin = Origin { ratio: 2.0, mean_n: 1.0, unit: 2.0 };
            let group = GroupReference { guide: 1, error: 0.08, origins: vec![origin; 2] };
            let reference =
                Reference { first_window: WindowId(4), last_window: WindowId(7), groups: vec![Some(group)] };
            let stratum = StratumDecision { ranks: 90, size: 4, before: 33 };
            let group = GroupDecision { cuts: vec![3, 60, 100], strata: vec![stratum; 2] };
            let decision =
                RetrospectiveDecision { window: WindowId(9), policy: 6, seed: 42, groups: vec![Some(group)] };
            let nothing = RetrospectiveDecision { groups: vec![None], ..decision.clone() };
            let down = [
                DownMessage::Reference(reference),
                DownMessage::Retrospective(decision),
                DownMessage::Retrospective(nothing),
            ];
            let mut bytes = Vec::new();
            up.encode(&shape, &mut bytes);
            // One bin of 128 is occupied.
            assert!(bytes.len() < 300, "{}", bytes.len());
            assert_eq!(UpMessage::decode(&bytes), Ok(up));
            for message in down {
                bytes.clear();
                message.encode(&shape, &mut bytes);
                assert_eq!(bytes.len(), DownMessage::encoded_len(&shape));
                assert_eq!(DownMessage::decode(&bytes), Ok(message));
            }
            (UpMessage::encoded_len(&shape), DownMessage::encoded_len(&shape))
        });
        assert_eq!(sizes[0], sizes[1]);
        assert!(sizes[0].0 <= 16 << 10 && sizes[0].1 <= 4096, "{sizes:?}");
    }

    #[test]
    fn a_decision_of_many_groups_has_fewer_strata_each() {
        let strata = [1, 8, 32, 64].map(|groups| {
            let of_thousand = |group: u32| Group {
                name: group.to_string(),
                members: RankSet::range(group * 1000, group * 1000 + 999).into(),
                target: DEFAULT_TARGET,
                pinned: RankSet::default(),
            };
            let config = Config { groups: (0..groups).map(of_thousand).collect(), ..Config::default() };
            let shape = MessageLayout::of(&Plan::new(config, 64_000).unwrap());
            let strata = shape.retrospective.as_ref().unwrap().strata();
            let stratum = StratumDecision { ranks: 90, size: 4, before: 33 };
            let group =
                GroupDecision { cuts: (1..=strata as u16 + 1).collect(), strata: vec![stratum; strata] };
            let groups = vec![Some(group); groups as usize];
            let message = DownMessage::Retrospective(RetrospectiveDecision {
                window: WindowId(9),
                policy: 6,
                seed: 42,
                groups,
            });
            let mut bytes = Vec::new();
            message.encode(&shape, &mut bytes);
            assert!(bytes.len() <= 4096, "{strata} strata: {} bytes", bytes.len());
            assert_eq!(bytes.len(), DownMessage::encoded_len(&shape));
            // What is cut off is missed, but for padding.
            assert!((0..bytes.len()).all(|len| match DownMessage::decode(&bytes[..len]) {
                Ok(short) => short == message,
                Err(error) => matches!(error, MessageError::Length { .. }),
            }));
            assert_eq!(DownMessage::decode(&bytes), Ok(message));
            strata
        });
        assert_eq!(strata, [8, 8, 8, 4]);
    }

    #[test]
    fn wrong_bytes_are_named() {
        let shape = shape(Sizing::Neyman, Summaries::Sampled, "");
        let mut bytes = Vec::new();
        DownMessage::Done.encode(&shape, &mut bytes);
        assert_eq!(DownMessage::decode(&bytes), Ok(DownMessage::Done));
        let kind = MessageError::Kind { found: KIND_DONE };
        let long = [bytes.clone(), vec![0; 40]].concat();
        assert_eq!(UpMessage::decode(&long), Err(kind));
        bytes.pop();
        assert!(matches!(DownMessage::decode(&bytes), Err(MessageError::Length { .. })));
        assert!(matches!(DownMessage::decode(&[]), Err(MessageError::Length { .. })));
        bytes[0] = 77;
        assert_eq!(DownMessage::decode(&bytes), Err(MessageError::Version { found: 77 }));
    }
}
