//! `[[site]]`: what happens to the calls of one function or one call site.

use std::borrow::Cow;

use super::Event;
use super::site::Site;

/// `[[site]]`: what happens to the calls that match.
#[derive(Clone, Debug, PartialEq)]
pub struct SitePolicy {
    /// Calls that match.
    pub matches: SiteMatch,
    /// Recording of these calls in kept windows.
    pub trace: SiteTrace,
    /// Overrides the group's confidence for metrics on these calls, in (0, 1).
    pub confidence: Option<f64>,
    /// Overrides the group's relative error for metrics on these calls, in (0, 1).
    pub error: Option<f64>,
}

impl SitePolicy {
    /// The event whose metrics it bounds.
    pub fn event(&self) -> Event {
        match &self.matches {
            SiteMatch::Function(name) => Event::Function(name.clone()),
            SiteMatch::Site(site) => Event::Site(site.clone()),
        }
    }

    /// `true` if it bounds the error of metrics on its calls.
    pub fn is_bound(&self) -> bool {
        self.confidence.is_some() || self.error.is_some()
    }
}

/// Calls that a site policy is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteMatch {
    /// Every call of one MPI function (C-cased name).
    Function(String),
    /// Every call made at one site.
    Site(Site),
}

impl SiteMatch {
    /// The call site that it names, if any.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Self::Site(site) => Some(site),
            Self::Function(_) => None,
        }
    }

    /// The match as in configuration.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Function(name) => name.into(),
            Self::Site(site) => site.to_string().into(),
        }
    }
}

/// Recording of the calls that match a site policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteTrace {
    /// Calls and times, as of any other call.
    On,
    /// No calls and no times; summaries count them all the same.
    Off,
    /// Number of calls and their total time, not each call.
    Aggregate,
}
