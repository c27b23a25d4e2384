//! Markers and events: the small languages inside configuration values.

use std::fmt;

use super::error::Cause;
use super::site::Site;
use super::{Event, Marker, keys};
use crate::mpi::{FUNCTIONS, Function};

const MARKERS: &str = "use \"period:250ms\" or \"mpi:FUNCTION\"";

/// The marker that `text` names.
pub(super) fn marker(text: &str) -> Result<Marker, Cause> {
    let later = || Cause::NotInThisVersion { value: format!("\"{text}\""), instead: MARKERS.into() };
    let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    match (word, rest) {
        ("period", Some(period)) => match nanoseconds(period) {
            Some(0) | None => Err(Cause::Invalid {
                found: format!("\"{text}\""),
                expected: "a period above zero with its unit: ns, us, ms or s, as in \"period:250ms\"".into(),
            }),
            Some(period_ns) => Ok(Marker::Period(period_ns)),
        },
        ("mpi", Some(call)) => {
            let (name, site) = call.split_once('@').map_or((call, None), |(name, site)| (name, Some(site)));
            let function = function(name)?.name().to_owned();
            let site = site.map(|site| Site::parse(site).ok_or(site)).transpose().map_err(|site| {
                Cause::Invalid {
                    found: format!("at call site \"{site}\""),
                    expected: "the site as FILE:LINE or MODULE+0xOFFSET".into(),
                }
            })?;
            Ok(Marker::Mpi { function, site: site.map(|site| site.to_string()) })
        }
        ("region", Some(_)) | ("pcontrol" | "auto", None) => Err(later()),
        _ => {
            let words = ["period", "mpi", "region", "pcontrol", "auto"];
            let nearest = keys::nearest(word, words[..2].iter().copied());
            Err(Cause::UnknownWord {
                word: text.to_owned(),
                allowed: vec!["period:250ms", "mpi:FUNCTION"],
                nearest: match nearest {
                    Some("period") => Some("period:250ms"),
                    Some(_) => Some("mpi:FUNCTION"),
                    None => None,
                },
            })
        }
    }
}

/// The event that `text` names.
pub(super) fn event(text: &str) -> Result<Event, Cause> {
    if text == "*" {
        return Ok(Event::Window);
    }
    match function(text) {
        Ok(function) => Ok(Event::Function(function.name().to_owned())),
        Err(cause @ Cause::UnknownFunction { nearest: Some(_), .. }) => Err(cause),
        Err(cause) if text.to_lowercase().starts_with("mpi") || text.is_empty() => Err(cause),
        Err(_) => Err(Cause::NotInThisVersion {
            value: format!("\"{text}\""),
            instead: "use an MPI function or \"*\"; regions, call sites and paths come later".into(),
        }),
    }
}

/// The MPI function of that name in any letter case.
fn function(name: &str) -> Result<Function, Cause> {
    let exact = Function::by_name(name);
    let folded = || {
        let found = FUNCTIONS.iter().find(|spec| spec.name.eq_ignore_ascii_case(name));
        found.and_then(|spec| Function::by_name(spec.name))
    };
    exact.or_else(folded).ok_or_else(|| {
        let names = || FUNCTIONS.iter().map(|spec| spec.name);
        // The prefix is half of many names: compare what follows it, so "MPI_Foo" is near nothing.
        let bare =
            name.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("MPI_")).map_or(name, |_| &name[4..]);
        let nearest = keys::nearest(bare, names().map(|name| &name[4..]));
        let nearest = nearest.and_then(|bare| names().find(|name| &name[4..] == bare));
        Cause::UnknownFunction { name: name.to_owned(), nearest }
    })
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Nanoseconds of a duration such as `250ms` or `0.5s`, parts of a nanosecond cut off; absent if `text` is none
/// or too long for 64 bits.
pub(super) fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(digits_end);
    let (_, unit_ns) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    // Nine digits reach a nanosecond in the largest unit.
    let mut place_ns = unit_ns;
    for digit in fraction.bytes().take(9) {
        place_ns /= 10;
        total = total.checked_add(u64::from(digit - b'0') * place_ns)?;
    }
    Some(total)
}

impl fmt::Display for Marker {
    /// The marker as configuration writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi { function, site: None } => write!(f, "mpi:{function}"),
            Self::Mpi { function, site: Some(site) } => write!(f, "mpi:{function}@{site}"),
            Self::Period(period_ns) => {
                let whole = |(_, unit_ns): &&(&str, u64)| period_ns % unit_ns == 0;
                let (unit, unit_ns) =
                    UNITS.iter().rev().find(whole).expect("one nanosecond divides everything");
                write!(f, "period:{}{unit}", period_ns / unit_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(nanoseconds("250ms"), Some(250_000_000));
        assert_eq!(nanoseconds("0.5s"), Some(500_000_000));
        assert_eq!(nanoseconds("1.5us"), Some(1_500));
        assert_eq!(nanoseconds("7 ns"), Some(7));
        assert_eq!(nanoseconds("0.123456789987s"), Some(123_456_789));
        for text in
            ["", "5", "ms", ".5s", "1.s", "1.2.3s", "-1s", "5m", "5 m s", "99999999999999999999s", "1e3s"]
        {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }

    #[test]
    fn markers_print_back() {
        for text in ["period:250ms", "period:1s", "period:1ns", "mpi:MPI_Allreduce", "mpi:MPI_Send@a.c:3"] {
            assert_eq!(marker(text).expect(text).to_string(), text);
        }
        assert_eq!(marker("period:1500ms").unwrap().to_string(), "period:1500ms");
    }

    #[test]
    fn functions_are_found_in_any_case_and_suggested() {
        assert_eq!(marker("mpi:mpi_allreduce").unwrap().to_string(), "mpi:MPI_Allreduce");
        let nearest = |name| match function(name) {
            Err(Cause::UnknownFunction { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest("MPI_Alreduce"), Some("MPI_Allreduce"));
        assert_eq!(nearest("allreduce"), Some("MPI_Allreduce"));
        assert_eq!(nearest("MPI_Nothing_like_it"), None);
        // Slicing by bytes must not meet the middle of a character.
        assert_eq!(nearest("MPÜ_x"), None);
        assert_eq!(nearest("ÄÄÄ"), None);
    }

    #[test]
    fn events_of_later_versions_are_named_as_such() {
        assert_eq!(event("*"), Ok(Event::Window));
        assert_eq!(event("mpi_send"), Ok(Event::Function("MPI_Send".into())));
        assert!(matches!(event("TIMESTEP"), Err(Cause::NotInThisVersion { .. })));
        assert!(matches!(event("path:A>B"), Err(Cause::NotInThisVersion { .. })));
        assert!(matches!(event("MPI_Snd"), Err(Cause::UnknownFunction { nearest: Some("MPI_Send"), .. })));
    }
}
