//! What agents and client tell each other.
//!
//! Summaries go up a reduction tree as a [`CensusWindow`] in an [`UpMessage`]; the client's
//! [`Directive`] comes down in a [`DownMessage`]. All have a size that the plan alone decides:
//! nothing grows with the number of ranks, and no list of ranks is ever sent. Each window range
//! may pass twice, so messages carry a pass number; predictive selection uses pass 0 only.

mod decision;
mod down;
mod partial;
mod up;
mod wire;

pub use decision::Decision;
pub use down::{Directive, DownMessage, StratumDirective};
pub use partial::{Cell, CellKey, MetricMoments, MetricSummary, Partial, Shape, Summary};
pub use up::{CensusWindow, UpMessage};

use wire::Reader;

/// First byte of every message.
pub const VERSION: u8 = 2;

const KIND_UP: u8 = 1;
const KIND_DIRECTIVE: u8 = 2;
const KIND_DONE: u8 = 3;

/// Why bytes are not a message of this version.
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
    use crate::config::{Config, DEFAULT_TARGET, Group, Mechanism, Sizing, Summaries};
    use crate::plan::Plan;
    use crate::units::{RankSet, WindowId};

    fn shape(sizing: Sizing, summaries: Summaries, pinned: &str) -> Shape {
        let mut config = Config::default();
        config.sampling.sizing = sizing;
        config.sampling.summaries = summaries;
        config.groups.push(Group {
            name: "g".into(),
            members: RankSet::range(0, 99),
            target: DEFAULT_TARGET,
            pinned: RankSet::parse(pinned).unwrap(),
        });
        Shape::of(&Plan::new(config, 100).unwrap())
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
                assert!(len <= 4096, "{len}");
                let mut bytes = Vec::new();
                let window = CensusWindow::new(&shape, WindowId(3), WindowId(3));
                let message = UpMessage { pass: 0, finished: 2, window: Some(window) };
                message.encode(&shape, &mut bytes);
                assert_eq!(bytes.len(), len);
                assert_eq!(UpMessage::decode(&bytes), Ok(message));
                bytes.clear();
                let end = UpMessage { pass: 0, finished: 100, window: None };
                end.encode(&shape, &mut bytes);
                assert_eq!(bytes.len(), len);
                assert_eq!(UpMessage::decode(&bytes), Ok(end));
            }
        }
    }

    #[test]
    fn no_message_grows_with_the_job_and_a_directive_fits_in_four_kibibytes() {
        for groups in [1, 8, 64, 200] {
            let lengths = [1_000, 1_000_000].map(|ranks| {
                let mut config = Config::default();
                let each = ranks / groups;
                config.groups = (0..groups)
                    .map(|group| Group {
                        name: format!("g{group}"),
                        members: RankSet::range(group * each, (group + 1) * each - 1),
                        target: DEFAULT_TARGET,
                        pinned: RankSet::default(),
                    })
                    .collect();
                let shape = Shape::of(&Plan::new(config, groups * each).unwrap());
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
                    pass: 0,
                    update: 0,
                    first_window: WindowId(0),
                    seed: 1,
                    mechanism: Mechanism::Global,
                    strata,
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
    fn wrong_bytes_are_named() {
        let shape = shape(Sizing::Neyman, Summaries::Census, "");
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
