//! Rules about changes: `mpi.time@MPI_*>5% and 10ms`.

use std::fmt;

use ampl_core::config::nanoseconds;

use super::quantity::{Key, Kind, RunQuantity, Scope, Unit};

/// Comparison of a change with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The change is above it.
    Above,
    /// The change is at least as much.
    AtLeast,
    /// The change is below it.
    Below,
    /// The change is at most as much.
    AtMost,
    /// The change is another.
    Other,
}

/// A threshold of changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Relative to the base.
    Relative(f64),
    /// In the quantity's unit.
    Absolute(f64),
}

/// A change that fails a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The rule as it was written.
    pub text: String,
    /// The quantity.
    pub what: RunQuantity,
    /// Pattern of the parts of the run, with `*` for any letters; none for the usual ones.
    pub scope: Option<String>,
    /// Comparison.
    pub op: Op,
    /// Threshold.
    pub threshold: Threshold,
    /// Least change in the quantity's unit.
    pub floor: Option<f64>,
}

/// Fault of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There is no comparison in it.
    NoComparison,
    /// No quantity stands before the comparison.
    NoQuantity,
    /// The value cannot be read.
    NoValue(String),
    /// A time is never exactly the same.
    TimeDiffers,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoComparison => f.write_str("a comparison is missing: one of > >= < <= !="),
            Self::NoQuantity => f.write_str("a quantity is missing before the comparison"),
            Self::NoValue(text) => write!(f, "'{text}' is not a value"),
            Self::TimeDiffers => f.write_str("a time is another in each run: use > or <"),
        }
    }
}

impl Rule {
    /// The rule that `text` states.
    ///
    /// # Errors
    /// A [`RuleError`].
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (at, length, op) =
            [("!=", Op::Other), (">=", Op::AtLeast), ("<=", Op::AtMost), (">", Op::Above), ("<", Op::Below)]
                .into_iter()
                .filter_map(|(sign, op)| Some((text.rfind(sign)?, sign.len(), op)))
                .max_by_key(|&(at, length, _)| (at + length, length))
                .ok_or(RuleError::NoComparison)?;
        let name = text[..at].trim();
        let (name, scope) = match name.split_once('@') {
            Some((name, scope)) => (name.trim(), Some(scope.trim().to_owned())),
            None => (name, None),
        };
        if name.is_empty() {
            return Err(RuleError::NoQuantity);
        }
        let what = RunQuantity::by_name(name);
        if op == Op::Other && what.kind() == Kind::Time {
            return Err(RuleError::TimeDiffers);
        }
        let value = text[at + length..].trim();
        let (value, floor) = match value.split_once(" and ") {
            Some((value, floor)) => (value.trim(), Some(absolute(floor, what.unit())?)),
            None => (value, None),
        };
        let threshold = threshold(value, &what)?;
        Ok(Self { text: text.trim().to_owned(), what, scope, op, threshold, floor })
    }

    /// The rule with that floor.
    ///
    /// # Errors
    /// [`RuleError::NoValue`]
    pub fn with_floor(mut self, text: &str) -> Result<Self, RuleError> {
        self.floor = Some(absolute(text, self.what.unit())?);
        Ok(self)
    }

    /// True where it is about `key`.
    pub fn is_about(&self, key: &Key) -> bool {
        let pattern = |pattern: &String| matches(pattern, &key.scope.to_string());
        self.what == key.what
            && match &self.scope {
                Some(scope) => pattern(scope),
                // What is exact is compared everywhere: a call more here must not hide one less there.
                None if self.op == Op::Other => true,
                None => key.scope == Scope::Run,
            }
    }

    /// True for a change `relative` to the base and `absolute` in the quantity's unit that the threshold and the floor
    /// let fail.
    pub fn holds(&self, relative: f64, absolute: f64) -> bool {
        let (change, limit) = match self.threshold {
            Threshold::Relative(limit) => (relative, limit),
            Threshold::Absolute(limit) => (absolute, limit),
        };
        let passed = match self.op {
            Op::Above => change > limit,
            Op::AtLeast => change >= limit,
            Op::Below => change < limit,
            Op::AtMost => change <= limit,
            Op::Other => change != limit,
        };
        passed && self.floor.is_none_or(|floor| absolute.abs() >= floor)
    }

    /// True where it fails changes upwards.
    pub fn is_upwards(&self) -> bool {
        matches!(self.op, Op::Above | Op::AtLeast)
    }

    /// Change that noise must be excluded from: none, or a threshold that already allows less.
    pub fn reference(&self, base: f64) -> f64 {
        let limit = match (self.threshold, self.what.unit()) {
            (Threshold::Relative(limit), _) | (Threshold::Absolute(limit), Unit::Fraction) => limit,
            (Threshold::Absolute(limit), _) if base > 0.0 => limit / base,
            (Threshold::Absolute(_), _) => 0.0,
        };
        if self.is_upwards() { limit.min(0.0) } else { limit.max(0.0) }
    }
}

/// The threshold that `text` states: in percent, as a fraction, or in the unit.
fn threshold(text: &str, what: &RunQuantity) -> Result<Threshold, RuleError> {
    let fault = || RuleError::NoValue(text.to_owned());
    let plain = text.strip_prefix('+').unwrap_or(text).trim();
    let finite = |value: f64| if value.is_finite() { Ok(value) } else { Err(fault()) };
    // Shares change in points, written either way.
    let relative = |value: f64| match what.unit() {
        Unit::Fraction => Threshold::Absolute(value),
        _ => Threshold::Relative(value),
    };
    if let Some(number) = plain.strip_suffix('%') {
        let value: f64 = number.trim().parse().map_err(|_| fault())?;
        return Ok(relative(finite(value)? / 100.0));
    }
    match plain.parse::<f64>() {
        Ok(value) if what.unit() == Unit::Fraction => Ok(Threshold::Absolute(finite(value)?)),
        // Things are counted in whole numbers; of times a bare number is a fraction.
        Ok(value) if what.kind() == Kind::Structure && value.fract() == 0.0 => {
            Ok(Threshold::Absolute(finite(value)?))
        }
        Ok(value) => Ok(relative(finite(value)?)),
        Err(_) => Ok(Threshold::Absolute(absolute(plain, what.unit())?)),
    }
}

/// A value in `unit`: `10ms`, `4kB`, `0.03`, `17`.
fn absolute(text: &str, unit: Unit) -> Result<f64, RuleError> {
    let fault = || RuleError::NoValue(text.trim().to_owned());
    let text = text.trim();
    let (sign, plain) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match unit {
        Unit::Nanoseconds => nanoseconds(plain).map(|nanos| nanos as f64),
        Unit::Bytes => bytes(plain),
        Unit::Fraction if plain.ends_with('%') => {
            plain.trim_end_matches('%').trim().parse().ok().map(|value: f64| value / 100.0)
        }
        _ => plain.parse().ok(),
    };
    value.filter(|value| value.is_finite()).map(|value| sign * value).ok_or_else(fault)
}

fn bytes(text: &str) -> Option<f64> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale = match text[end..].trim() {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    Some(text[..end].trim().parse::<f64>().ok()? * scale)
}

/// True where `text` is as `pattern` says, in which `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn rules_are_read() {
        let time = rule("mpi.time>5%");
        assert_eq!((time.what.clone(), time.op, time.scope.clone()), (RunQuantity::MpiTime, Op::Above, None));
        assert_eq!(time.threshold, Threshold::Relative(0.05));
        assert_eq!(rule("mpi.time > +5 %").threshold, rule("mpi.time>0.05").threshold);
        assert_eq!(rule("elapsed>2s").threshold, Threshold::Absolute(2e9));
        let calls = rule("calls != 0");
        assert_eq!((calls.op, calls.threshold), (Op::Other, Threshold::Absolute(0.0)));
        assert_eq!(rule("calls>5%").threshold, Threshold::Relative(0.05));
        assert_eq!(rule("load_balance<-0.03").threshold, Threshold::Absolute(-0.03));
        assert_eq!(rule("load_balance<-3%").threshold, Threshold::Absolute(-0.03));
        assert_eq!(rule("bytes.sent>=4kB").threshold, Threshold::Absolute(4000.0));
        let floor = rule("compute.time@stratum:* > 5% and 10ms");
        assert_eq!((floor.scope.as_deref(), floor.floor), (Some("stratum:*"), Some(1e7)));
        assert_eq!(rule("mpi.time>1%").with_floor("1ms").unwrap().floor, Some(1e6));
    }

    #[test]
    fn faults_are_named() {
        for (text, error) in [
            ("mpi.time", RuleError::NoComparison),
            (">5%", RuleError::NoQuantity),
            ("mpi.time>much", RuleError::NoValue("much".into())),
            ("mpi.time>", RuleError::NoValue("".into())),
            ("mpi.time>nan%", RuleError::NoValue("nan%".into())),
            ("mpi.time!=0", RuleError::TimeDiffers),
            ("mpi.time>5% and 3kg", RuleError::NoValue("3kg".into())),
        ] {
            assert_eq!(Rule::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn thresholds_and_floors_both_count() {
        let above = rule("mpi.time>5% and 10ms");
        assert!(above.holds(0.06, 11e6) && !above.holds(0.06, 9e6) && !above.holds(0.05, 11e6));
        let below = rule("load_balance<-3%");
        assert!(below.holds(-0.5, -0.04) && !below.holds(-0.5, -0.02));
        let other = rule("calls!=0");
        assert!(other.holds(0.0, -1.0) && !other.holds(0.0, 0.0));
        assert!(rule("calls<=-2").holds(0.0, -2.0) && rule("calls>=2").holds(0.0, 2.0));
        // An improvement that is asked for is tested against itself.
        assert_eq!(rule("elapsed>-5%").reference(1.0), -0.05);
        assert_eq!((above.reference(1.0), rule("elapsed>2s").reference(1e9)), (0.0, 0.0));
    }

    #[test]
    fn parts_of_a_run_are_asked_for_by_patterns() {
        let function = |name: &str| Key { scope: Scope::Function(name.into()), what: RunQuantity::MpiTime };
        let site = Scope::Site { function: "MPI_Send".into(), place: "a.c:5".into() };
        let site = Key { scope: site, what: RunQuantity::MpiTime };
        assert!(rule("mpi.time>5%").is_about(&Key::run(RunQuantity::MpiTime)));
        assert!(!rule("mpi.time>5%").is_about(&function("MPI_Send")));
        assert!(rule("mpi.time@MPI_Send>5%").is_about(&function("MPI_Send")));
        assert!(!rule("mpi.time@MPI_Send>5%").is_about(&site));
        assert!(rule("mpi.time@MPI_Send@*>5%").is_about(&site));
        assert!(rule("mpi.time@*>5%").is_about(&site) && rule("mpi.time@*c:5>5%").is_about(&site));
        assert!(!rule("mpi.time@M*x*5>5%").is_about(&site) && rule("mpi.time@M*d*5>5%").is_about(&site));
        assert!(!rule("calls@*>5%").is_about(&site));
        let calls = Key { scope: Scope::Function("MPI_Send".into()), what: RunQuantity::Calls };
        assert!(rule("calls!=0").is_about(&calls) && !rule("calls>0").is_about(&calls));
    }
}
