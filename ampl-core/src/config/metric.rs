//! `[[metric]]`: what is measured, and over which events.

use std::borrow::Cow;

use super::site::Site;

/// `[[metric]]`: one measured quantity over one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Measured quantity.
    pub quantity: Quantity,
    /// Events that it observes.
    pub event: Event,
    /// `true` if its bound sizes the sample.
    pub guide: bool,
    /// `true` if it is left out where it cannot be measured, instead of being an error.
    pub optional: bool,
}

impl Metric {
    /// The metric's name as in configuration and output, `mpi.time`.
    pub fn name(&self) -> Cow<'_, str> {
        self.quantity.name()
    }
}

/// Quantity that a metric measures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Wall-clock time, nanoseconds.
    Wall,
    /// Time inside MPI, nanoseconds.
    MpiTime,
    /// Time outside MPI, nanoseconds.
    ComputeTime,
    /// Bytes sent.
    BytesSent,
    /// Bytes received.
    BytesReceived,
    /// MPI calls.
    Calls,
    /// A counter of Linux perf_event, by its name in [`super::perf::COUNTERS`] (`perf.NAME`).
    Perf(String),
    /// A counter of PAPI, by PAPI's name for it (`papi.NAME`).
    Papi(String),
    /// Metric that the program declares and reports through the C API, in the program's unit.
    User(String),
}

impl Quantity {
    /// Every quantity that is measured without asking, in the order of summaries.
    pub const ALL: [Self; 6] =
        [Self::Wall, Self::MpiTime, Self::ComputeTime, Self::BytesSent, Self::BytesReceived, Self::Calls];

    /// Place in [`Quantity::ALL`]; absent for counters and the program's own metrics.
    pub fn slot(&self) -> Option<usize> {
        Self::ALL.iter().position(|built_in| built_in == self)
    }

    /// The name in configuration and output.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Perf(counter) => format!("perf.{counter}").into(),
            Self::Papi(counter) => format!("papi.{counter}").into(),
            Self::User(name) => name.into(),
            built_in => built_in.fixed_name().into(),
        }
    }

    /// The quantity of that name, which may be one of the program's own; absent if no metric can be called so.
    ///
    /// Does not check that a counter of that name exists.
    pub fn by_name(name: &str) -> Option<Self> {
        if let Some(built_in) = Self::ALL.into_iter().find(|quantity| quantity.fixed_name() == name) {
            return Some(built_in);
        }
        let (family, counter): (fn(String) -> Self, &str) = match name.split_once('.') {
            Some(("perf", counter)) => (Self::Perf, counter),
            Some(("papi", counter)) => (Self::Papi, counter),
            _ => return is_user_name(name).then(|| Self::User(name.to_owned())),
        };
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:=".contains(&byte);
        (!counter.is_empty() && counter.bytes().all(sound)).then(|| family(counter.to_owned()))
    }

    pub(super) fn fixed_name(&self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::MpiTime => "mpi.time",
            Self::ComputeTime => "compute.time",
            Self::BytesSent => "bytes.sent",
            Self::BytesReceived => "bytes.received",
            Self::Calls => "calls",
            Self::Perf(_) => "perf.NAME",
            Self::Papi(_) => "papi.NAME",
            Self::User(_) => "NAME",
        }
    }
}

/// A letter or `_`, then letters, digits and `_.:-`.
fn is_user_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

/// Events that a metric observes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// `"*"`: the whole window, one observation per rank.
    Window,
    /// Every call of one MPI function (C-cased name), one observation per call.
    Function(String),
    /// Every call made at one site.
    Site(Site),
    /// Every visit of the region of that name.
    Region(String),
    /// Every visit of the last region while the others enclose it, outermost first.
    Path(Vec<String>),
}

impl Event {
    /// The call site that it names, if any.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Self::Site(site) => Some(site),
            _ => None,
        }
    }

    /// The event as in configuration and output.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Window => "*".into(),
            Self::Function(name) => name.into(),
            Self::Site(site) => site.to_string().into(),
            Self::Region(name) => format!("region:{name}").into(),
            Self::Path(regions) => format!("path:{}", regions.join(">")).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_quantity() {
        let of = |name: &str| Quantity::by_name(name).expect(name);
        for name in ["wall", "calls", "perf.cycles", "papi.PAPI_FP_INS", "papi.rapl:::PKG", "my.residual:x-1"]
        {
            assert_eq!(of(name).name(), name);
        }
        assert_eq!(of("perf.cycles"), Quantity::Perf("cycles".into()));
        assert_eq!(of("performance"), Quantity::User("performance".into()));
        assert_eq!(of("calls").slot(), Some(5));
        assert_eq!(of("cells").slot(), None);
        for name in ["", "perf.", "papi.", "papi.a b", "1st", "a b", "ä", "perf.x\n"] {
            assert_eq!(Quantity::by_name(name), None, "{name}");
        }
    }
}
