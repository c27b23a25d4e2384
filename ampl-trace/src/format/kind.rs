//! Kinds of sections.

/// Contents of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// [`crate::RunInfo`].
    Run = 1,
    /// [`crate::structure::JobStructure`] of all ranks.
    Structure = 2,
    /// Times of one rank's kept windows.
    Times = 3,
    /// Window summaries of one rank.
    Windows = 4,
    /// [`crate::totals::Totals`] of all ranks.
    Aggregates = 5,
    /// Addresses of one rank's buffers.
    Addresses = 6,
    /// Facts about all processes.
    Processes = 7,
    /// The client's decisions.
    Decisions = 8,
    /// The list of all others; the last one.
    Contents = 9,
    /// Weights of one rank's times, where its windows' summaries are not stored.
    Weights = 10,
    /// Calls of one rank that were counted and not recorded.
    Gaps = 11,
    /// [`crate::metadata::Metadata`] of the run.
    Metadata = 12,
    /// Addresses of several ranks' buffers. The section's rank is the first of them, as of the following ones.
    AddressesOfRanks = 13,
    /// Window summaries of several ranks.
    WindowsOfRanks = 14,
    /// Weights of several ranks' times.
    WeightsOfRanks = 15,
    /// Calls of several ranks that were counted and not recorded.
    GapsOfRanks = 16,
    /// [`crate::census::Census`] of all ranks' windows.
    Census = 17,
    /// [Buffers](crate::buffers) of one rank's calls.
    Buffers = 18,
    /// Buffers of several ranks' calls.
    BuffersOfRanks = 19,
}

impl Kind {
    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        use Kind::*;
        [
            Run,
            Structure,
            Times,
            Windows,
            Aggregates,
            Addresses,
            Processes,
            Decisions,
            Contents,
            Weights,
            Gaps,
            Metadata,
            AddressesOfRanks,
            WindowsOfRanks,
            WeightsOfRanks,
            GapsOfRanks,
            Census,
            Buffers,
            BuffersOfRanks,
        ]
        .into_iter()
        .find(|&kind| kind as u8 == number)
    }

    /// Kind of sections that have as much of several ranks; `None` where each rank has its own.
    pub fn of_many(self) -> Option<Self> {
        match self {
            Self::Addresses => Some(Self::AddressesOfRanks),
            Self::Windows => Some(Self::WindowsOfRanks),
            Self::Weights => Some(Self::WeightsOfRanks),
            Self::Gaps => Some(Self::GapsOfRanks),
            Self::Buffers => Some(Self::BuffersOfRanks),
            _ => None,
        }
    }

    /// True for contents of several ranks together.
    pub fn is_of_many(self) -> bool {
        matches!(
            self,
            Self::AddressesOfRanks
                | Self::WindowsOfRanks
                | Self::WeightsOfRanks
                | Self::GapsOfRanks
                | Self::BuffersOfRanks
        )
    }

    /// True for contents that each rank has a section of; false for contents that the run has one of.
    pub fn is_of_ranks(self) -> bool {
        use Kind::*;
        matches!(self, Addresses | Times | Windows | Weights | Gaps | Buffers)
    }
}
