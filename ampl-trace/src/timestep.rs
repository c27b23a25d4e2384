//! Facts about the program's steps that windows follow (`window.marker = "auto"`).

use serde::{Deserialize, Serialize};

/// Record of a journal about steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestepRecord {
    /// Windows of this rank follow steps from here on.
    Followed(FollowedSteps),
    /// The client has announced none.
    Unannounced(UnannouncedSteps),
}

/// Steps that the windows of a rank follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedSteps {
    /// Name of the function whose calls end windows.
    pub function: String,
    /// Module of the return address of these calls; empty where calls are not told apart by place.
    pub module: String,
    /// Offset of the return address in it.
    pub offset: u64,
    /// Visits per window.
    pub every: u64,
    /// Visits per step, at least 1.
    #[serde(default = "one")]
    pub per_step: u64,
    /// Number of the visit that was announced, counted from 1.
    pub visit: u64,
    /// The window that it begins: every rank has the same steps in this window and each after it.
    pub window: u64,
    /// Number of the visit that this rank followed first: above `visit` where the rank was past that.
    pub first_visit: u64,
    /// The window that this one began.
    pub first_window: u64,
    /// First window of other steps that windows were to follow before: they turned out to be parts of these, or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    /// Window that was open when other steps were announced, which had not begun at the end: none of these windows ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Steps that this rank had begun when its search found the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_after: Option<u64>,
    /// The same when it named the loop in its summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_after: Option<u64>,
    /// Time of that: ticks in a journal, nanoseconds since T0 in a trace.
    pub at: u64,
}

fn one() -> u64 {
    1
}

/// Ranks that named calls of their steps where nothing was announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnannouncedSteps {
    /// Ranks that reported the latest window.
    pub reported: u64,
    /// Ranks of them that named a call.
    pub naming: u64,
    /// Ranks of them that named the call that most named.
    pub agreeing: u64,
}
