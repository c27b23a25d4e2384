//! Markers and events: the small languages inside configuration values.

use std::fmt;

use super::error::Cause;
use super::site::Site;
use super::{Event, Marker, SiteMatch, schema};
use crate::mpi::{Class, FUNCTIONS, Function};

/// Forms of a marker.
const MARKERS: [&str; 5] = ["period:250ms", "mpi:FUNCTION", "region:NAME", "pcontrol", "auto"];

/// Kinds of event, as advice in an error.
const EVENTS: &str = "use an MPI function, region:NAME, path:OUTER>INNER or \"*\"";

/// The longest period, a year: ends of windows must not be beyond what clocks count.
const LONGEST_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The marker that `text` names.
pub(super) fn marker(text: &str) -> Result<Marker, Cause> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    match (word, rest) {
        ("period", Some(period)) => match nanoseconds(period) {
            Some(period_ns @ 1..=LONGEST_NS) => Ok(Marker::Period(period_ns)),
            _ => Err(Cause::Invalid {
                found: format!("\"{text}\""),
                expected: "a period above zero, of a year at most, with its unit: ns, us, ms or s, as in \
                           \"period:250ms\""
                    .into(),
            }),
        },
        ("mpi", Some(call)) => {
            let (name, site) = call.split_once('@').map_or((call, None), |(name, site)| (name, Some(site)));
            let function = met(function(name)?, text)?.name().to_owned();
            let site = site.map(|site| Site::parse(site).ok_or(site)).transpose().map_err(|site| {
                Cause::Invalid {
                    found: format!("at call site \"{site}\""),
                    expected: "the site as FILE:LINE or MODULE+0xOFFSET".into(),
                }
            })?;
            Ok(Marker::Mpi { function, site })
        }
        ("region", Some(name)) => region(text, name, "\"region:TIMESTEP\"").map(Marker::Region),
        ("pcontrol", None) => Ok(Marker::Pcontrol),
        ("auto", None) => Ok(Marker::Auto),
        _ => {
            let words = MARKERS.map(|marker| marker.split(':').next().unwrap_or(marker));
            let nearest = schema::nearest(word, words)
                .and_then(|word| MARKERS.into_iter().find(|marker| marker.starts_with(word)));
            Err(Cause::UnknownWord { word: text.to_owned(), allowed: MARKERS.to_vec(), nearest })
        }
    }
}

/// The event that `text` names: `*`, an MPI function, a call site, `region:NAME`, `path:OUTER>INNER`, or a bare
/// name, which is a region unless it looks like a function.
pub(super) fn event(text: &str) -> Result<Event, Cause> {
    if text == "*" {
        return Ok(Event::Window);
    }
    if let Some(name) = text.strip_prefix("region:") {
        return region(text, name, "\"region:TIMESTEP\"").map(Event::Region);
    }
    if let Some(path) = text.strip_prefix("path:") {
        let names = path.split('>').map(|name| region(text, name, "\"path:SOLVE>HALO\""));
        return names.collect::<Result<_, _>>().map(Event::Path);
    }
    if let Some(site) = Site::parse(text) {
        return Ok(Event::Site(site));
    }
    match function(text) {
        Ok(function) => met(function, text).map(|function| Event::Function(function.name().to_owned())),
        Err(cause @ Cause::UnknownFunction { nearest: Some(_), .. }) => Err(cause),
        Err(cause) if text.to_lowercase().starts_with("mpi") || text.is_empty() => Err(cause),
        // What has a colon is a misspelt kind of event rather than a region's name.
        Err(_) if text.contains(':') && !text.contains("::") => {
            Err(Cause::Invalid { found: format!("{text:?}"), expected: EVENTS.replacen("use ", "", 1) })
        }
        Err(_) => region(text, text, "\"region:TIMESTEP\"").map(Event::Region),
    }
}

/// MPI function or call site that `text` matches in a `[[site]]`.
pub(super) fn site_match(text: &str) -> Result<SiteMatch, Cause> {
    match Site::parse(text) {
        Some(site) => Ok(SiteMatch::Site(site)),
        None => met(function(text)?, text).map(|function| SiteMatch::Function(function.name().to_owned())),
    }
}

/// `function`, or an error where its calls are only counted, or begin or end MPI; `text` names it.
fn met(function: Function, text: &str) -> Result<Function, Cause> {
    let why = match function.spec().class {
        Class::CountOnly => "is only counted",
        Class::Lifecycle => "begins or ends what ampl sees",
        _ => return Ok(function),
    };
    let expected = format!(
        "a function called between the beginning and the end, such as MPI_Allreduce: {} {why}",
        function.name()
    );
    Err(Cause::Invalid { found: format!("{text:?}"), expected })
}

/// The region's name if it is one: something, and nothing that would break a line. `example` is of its kind.
fn region(text: &str, name: &str, example: &str) -> Result<String, Cause> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        let expected = format!("the region's name, as in {example}");
        return Err(Cause::Invalid { found: format!("{text:?}"), expected });
    }
    Ok(name.to_owned())
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
        let nearest = schema::nearest(bare, names().map(|name| &name[4..]));
        let nearest = nearest.and_then(|bare| names().find(|name| &name[4..] == bare));
        Cause::UnknownFunction { name: name.to_owned(), nearest }
    })
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Nanoseconds of a duration such as `250ms` or `0.5s`, parts of a nanosecond cut off; absent if `text` is none
/// or too long for 64 bits.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction, unit_ns) = parts(text)?;
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    // Nine digits reach a nanosecond in the largest unit.
    let mut place_ns = unit_ns;
    for digit in fraction.bytes().take(9) {
        place_ns /= 10;
        total = total.checked_add(u64::from(digit - b'0') * place_ns)?;
    }
    Some(total)
}

/// Nanoseconds of `trace.time_floor`.
pub(super) fn time_floor(text: &str) -> Result<u64, Cause> {
    nanoseconds(text).ok_or_else(|| {
        // A duration that is too long has no fault in its unit.
        let expected = match parts(text) {
            Some(_) => format!("a duration of at most {}s, such as \"5us\"", u64::MAX / 1_000_000_000),
            None => "a duration with its unit, such as \"5us\"".to_owned(),
        };
        Cause::Invalid { found: format!("{text:?}"), expected }
    })
}

/// Digits before and behind the point of a duration, and its unit in nanoseconds.
fn parts(text: &str) -> Option<(&str, &str, u64)> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(digits_end);
    let (_, unit_ns) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let sound = !whole.is_empty() && !fraction.is_empty() && !fraction.contains('.');
    sound.then_some((whole, fraction, unit_ns))
}

const SIZES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
];

/// Bytes of a limit.
pub(super) fn size(text: &str) -> Result<u64, Cause> {
    let found = bytes(text.trim()).filter(|&bytes| bytes >= 1.0 && bytes < i64::MAX as f64);
    found.map(|bytes| bytes as u64).ok_or_else(|| {
        let expected = "bytes with their unit, such as \"64MiB\"".to_owned();
        Cause::Invalid { found: format!("{text:?}"), expected }
    })
}

/// Bytes per second of `sampling.budget`.
pub(super) fn budget(text: &str) -> Result<f64, Cause> {
    bytes_per_second(text).ok_or_else(|| {
        let expected = "bytes per second above zero with their unit, such as \"1MB/s\"".to_owned();
        Cause::Invalid { found: format!("{text:?}"), expected }
    })
}

/// Bytes per second of a rate such as `1MB/s` or `0.5 GiB/s`; absent if `text` is none or zero.
fn bytes_per_second(text: &str) -> Option<f64> {
    bytes(text.trim().strip_suffix("/s")?).filter(|&rate| rate > 0.0)
}

/// Bytes of a size such as `1MB` or `0.5 GiB`.
fn bytes(size: &str) -> Option<f64> {
    let digits_end = size.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = size.split_at(digits_end);
    let (_, unit_bytes) = SIZES.into_iter().find(|(name, _)| *name == unit.trim())?;
    Some(digits.parse::<f64>().ok()? * unit_bytes).filter(|size| size.is_finite())
}

impl fmt::Display for Marker {
    /// The marker as configuration writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi { function, site: None } => write!(f, "mpi:{function}"),
            Self::Mpi { function, site: Some(site) } => write!(f, "mpi:{function}@{site}"),
            Self::Region(name) => write!(f, "region:{name}"),
            Self::Pcontrol => f.write_str("pcontrol"),
            Self::Auto => f.write_str("auto"),
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
        let most = u64::MAX / 1_000_000_000;
        assert_eq!(nanoseconds(&format!("{most}s")), Some(most * 1_000_000_000));
        let is_too_long = |text: &str| match time_floor(text) {
            Err(Cause::Invalid { expected, .. }) => expected.contains("at most"),
            _ => false,
        };
        assert!(!is_too_long(&format!("{most}s")) && is_too_long(&format!("{}s", most + 1)));
        assert!(is_too_long("99999999999999999999s") && !is_too_long("5"));
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(bytes_per_second("1MB/s"), Some(1e6));
        assert_eq!(bytes_per_second("0.5 KiB/s"), Some(512.0));
        assert_eq!(bytes_per_second("3B/s"), Some(3.0));
        for text in ["", "1MB", "1/s", "MB/s", "0MB/s", "-1MB/s", "1mb/s", "1.2.3B/s", "1e3B/s", "1MB/h"] {
            assert_eq!(bytes_per_second(text), None, "{text}");
        }
    }

    #[test]
    fn markers_print_back() {
        for text in [
            "period:250ms",
            "period:1s",
            "period:1ns",
            "mpi:MPI_Allreduce",
            "mpi:MPI_Send@a.c:3",
            "region:a::b <c>",
            "pcontrol",
            "auto",
        ] {
            assert_eq!(marker(text).expect(text).to_string(), text);
        }
        assert_eq!(marker("period:1500ms").unwrap().to_string(), "period:1500ms");
        assert!(marker("period:31536000s").is_ok());
        for none in ["period:0s", "period:31536001s", "period:18446744073709551615ns", "period:1"] {
            assert!(marker(none).is_err(), "{none}");
        }
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
    fn what_ends_no_window_is_no_marker() {
        let refused = |found: Result<String, Cause>| match found {
            Err(Cause::Invalid { expected, .. }) => expected,
            other => panic!("{other:?}"),
        };
        let marker = |text: &str| marker(text).map(|marker| marker.to_string());
        for name in ["MPI_Wtime", "MPI_Wtick", "MPI_Aint_add", "MPI_Comm_c2f"] {
            assert!(refused(marker(&format!("mpi:{name}"))).contains("is only counted"), "{name}");
            assert!(
                refused(event(name).map(|event| event.name().into())).contains("MPI_Allreduce"),
                "{name}"
            );
            assert!(site_match(name).is_err(), "{name}");
        }
        for name in ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort"] {
            assert!(refused(marker(&format!("mpi:{name}@a.c:3"))).contains("begins or ends"), "{name}");
            assert!(event(name).is_err() && site_match(name).is_err(), "{name}");
        }
        assert_eq!(marker("mpi:MPI_Comm_rank"), Ok("mpi:MPI_Comm_rank".into()));
        // The advice is about what was written.
        let nameless = refused(marker("region:"));
        assert!(nameless.contains("region:TIMESTEP") && !nameless.contains("path:"), "{nameless}");
        assert!(refused(event("path:A>").map(|event| event.name().into())).contains("path:SOLVE>HALO"));
    }

    #[test]
    fn events_are_told_apart_and_print_back() {
        let path = |names: &[&str]| Event::Path(names.iter().map(|&name| name.to_owned()).collect());
        for (text, expected) in [
            ("*", Event::Window),
            ("MPI_Send", Event::Function("MPI_Send".into())),
            ("solve.c:12", Event::Site(Site::parse("solve.c:12").unwrap())),
            ("app+0x40", Event::Site(Site::parse("app+0x40").unwrap())),
            ("region:MPI_Send", Event::Region("MPI_Send".into())),
            ("path:A>B b>C", path(&["A", "B b", "C"])),
            ("path:A", path(&["A"])),
        ] {
            assert_eq!(event(text), Ok(expected));
            assert_eq!(event(text).unwrap().name(), text);
        }
        assert_eq!(event("mpi_send"), Ok(Event::Function("MPI_Send".into())));
        assert_eq!(event("TIMESTEP"), Ok(Event::Region("TIMESTEP".into())));
        assert_eq!(event("solver::step"), Ok(Event::Region("solver::step".into())));
        assert!(matches!(event("MPI_Snd"), Err(Cause::UnknownFunction { nearest: Some("MPI_Send"), .. })));
        for text in ["region:", "path:", "path:A>", "path:>B", "regoin:A", "region:a\nb", "solve.c:0"] {
            assert!(matches!(event(text), Err(Cause::Invalid { .. })), "{text}: {:?}", event(text));
        }
    }
}
