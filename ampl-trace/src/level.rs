//! Levels of detail between which a rank steps.

use serde::{Deserialize, Serialize};

/// Detail that a rank records from a step on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Calls are recorded, those of kept windows with their times.
    #[default]
    Kept,
    /// As kept, but the windows to keep are drawn before they begin.
    Drawn,
    /// Calls are recorded, none with its times.
    Structure,
    /// Windows are summarised, no call is recorded.
    Summaries,
    /// Calls are counted only.
    Off,
    /// Windows end by the clock, for the program has not named the region of the marker. The detail of calls is as it
    /// was before.
    Clock,
}

impl Level {
    /// Steps below [`Level::Kept`]; `None` for [`Level::Clock`], which is not about calls.
    pub fn depth(self) -> Option<u8> {
        (self != Self::Clock).then_some(self as u8)
    }

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Drawn => "drawn",
            Self::Structure => "structure",
            Self::Summaries => "summaries",
            Self::Off => "off",
            Self::Clock => "clock",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_format() {
        let all = [Level::Kept, Level::Drawn, Level::Structure, Level::Summaries, Level::Off, Level::Clock];
        for (depth, level) in (0..).zip(all) {
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{}\"", level.name()));
            assert_eq!(level.depth(), (level != Level::Clock).then_some(depth));
        }
        assert!(serde_json::from_str::<Level>("\"half\"").is_err());
    }
}
