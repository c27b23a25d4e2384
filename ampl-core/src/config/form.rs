//! Forms of values: how a setting is read from TOML and written, and what the documentation and errors call it.
//!
//! A row of the [table of keys](super::schema) names one of these.

use toml::de::DeValue;

use super::error::Cause;
use super::fraction;
use super::schema::{Key, Shape};
use super::write::quoted;
use crate::units::{Rank, RankSet};

/// Values of a type `T` as a job file has them.
pub(super) trait Form<T> {
    /// The setting that `value` stands for, which has the form's [`Shape`].
    fn read(&self, value: &DeValue<'_>) -> Result<T, Cause>;

    /// `setting` as TOML; `None` where nothing is to be written.
    fn write(&self, setting: &T) -> Option<String>;
}

/// Whole numbers.
pub(super) struct Whole {
    pub least: i64,
    pub most: i64,
    /// The range for the documentation.
    pub range: &'static str,
    /// A valid value, for errors.
    pub wanted: &'static str,
}

impl Whole {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: Shape::Integer, range: self.range, ..key }
    }

    fn number<T: TryFrom<i64>>(&self, value: &DeValue<'_>) -> Result<T, Cause> {
        let number = integer(value).filter(|number| (self.least..=self.most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| invalid(value, self.wanted))
    }
}

impl Form<u32> for Whole {
    fn read(&self, value: &DeValue<'_>) -> Result<u32, Cause> {
        self.number(value)
    }

    fn write(&self, setting: &u32) -> Option<String> {
        Some(setting.to_string())
    }
}

impl Form<u64> for Whole {
    fn read(&self, value: &DeValue<'_>) -> Result<u64, Cause> {
        self.number(value)
    }

    fn write(&self, setting: &u64) -> Option<String> {
        Some(setting.to_string())
    }
}

impl Form<Rank> for Whole {
    fn read(&self, value: &DeValue<'_>) -> Result<Rank, Cause> {
        self.number(value).map(Rank)
    }

    fn write(&self, setting: &Rank) -> Option<String> {
        Some(setting.0.to_string())
    }
}

/// Numbers with a fraction; in percent too, where the shape is [`Shape::Fraction`].
pub(super) struct Real {
    pub shape: Shape,
    pub fits: fn(f64) -> bool,
    pub range: &'static str,
    pub wanted: &'static str,
}

impl Real {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: self.shape, range: self.range, ..key }
    }
}

impl Form<f64> for Real {
    fn read(&self, value: &DeValue<'_>) -> Result<f64, Cause> {
        let found = number(value).or_else(|| value.as_str().and_then(fraction::percentage));
        found.filter(|&found| (self.fits)(found)).ok_or_else(|| invalid(value, self.wanted))
    }

    fn write(&self, setting: &f64) -> Option<String> {
        // {:?} prints the shortest digits that read back, always with a point or an exponent.
        Some(format!("{setting:?}"))
    }
}

/// `true` and `false`.
pub(super) struct Flag;

impl Flag {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: Shape::Boolean, ..key }
    }
}

impl Form<bool> for Flag {
    fn read(&self, value: &DeValue<'_>) -> Result<bool, Cause> {
        value.as_bool().ok_or_else(|| invalid(value, "true or false"))
    }

    fn write(&self, setting: &bool) -> Option<String> {
        Some(setting.to_string())
    }
}

/// One of a few words, each of which stands for a value.
pub(super) struct Words<T: 'static> {
    pub words: &'static [&'static str],
    /// Words and their meanings.
    pub forms: &'static [(&'static str, &'static str)],
    pub values: &'static [T],
}

impl<T> Words<T> {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: Shape::Word(self.words), forms: self.forms, ..key }
    }
}

impl<T: Clone + PartialEq> Form<T> for Words<T> {
    fn read(&self, value: &DeValue<'_>) -> Result<T, Cause> {
        let word = self.words.iter().position(|word| value.as_str() == Some(word));
        word.and_then(|at| self.values.get(at)).cloned().ok_or_else(|| invalid(value, "another word"))
    }

    fn write(&self, setting: &T) -> Option<String> {
        let at = self.values.iter().position(|value| value == setting)?;
        self.words.get(at).map(|word| quoted(word))
    }
}

/// The form of words: `"word" => value, "meaning"` for each.
macro_rules! words {
    ($($word:literal => $value:expr, $meaning:expr;)+) => {
        $crate::config::form::Words {
            words: &[$($word),+],
            forms: &[$(($word, $meaning)),+],
            values: &[$($value),+],
        }
    };
}
pub(super) use words;

/// Text in a small language of its own.
pub(super) struct Text<T> {
    pub read: fn(&str) -> Result<T, Cause>,
    pub write: fn(&T) -> Option<String>,
}

impl<T> Text<T> {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: Shape::Text, ..key }
    }
}

impl<T> Form<T> for Text<T> {
    fn read(&self, value: &DeValue<'_>) -> Result<T, Cause> {
        (self.read)(value.as_str().unwrap_or_default())
    }

    fn write(&self, setting: &T) -> Option<String> {
        (self.write)(setting)
    }
}

/// A setting that may be absent.
pub(super) struct Maybe<F>(pub F);

impl Maybe<Whole> {
    pub const fn describe(&self, key: Key) -> Key {
        self.0.describe(key)
    }
}

impl Maybe<Real> {
    pub const fn describe(&self, key: Key) -> Key {
        self.0.describe(key)
    }
}

impl<T> Maybe<Text<T>> {
    pub const fn describe(&self, key: Key) -> Key {
        self.0.describe(key)
    }
}

impl<T: Clone + PartialEq> Maybe<Words<T>> {
    pub const fn describe(&self, key: Key) -> Key {
        self.0.describe(key)
    }
}

impl<T, F: Form<T>> Form<Option<T>> for Maybe<F> {
    fn read(&self, value: &DeValue<'_>) -> Result<Option<T>, Cause> {
        self.0.read(value).map(Some)
    }

    fn write(&self, setting: &Option<T>) -> Option<String> {
        self.0.write(setting.as_ref()?)
    }
}

/// A whole number, or `"auto"` for none.
pub(super) struct OrAuto(pub Whole);

impl OrAuto {
    pub const fn describe(&self, key: Key) -> Key {
        Key { shape: Shape::Count, range: self.0.range, ..key }
    }
}

impl Form<Option<u32>> for OrAuto {
    fn read(&self, value: &DeValue<'_>) -> Result<Option<u32>, Cause> {
        if value.is_str() { Ok(None) } else { self.0.read(value).map(Some) }
    }

    fn write(&self, setting: &Option<u32>) -> Option<String> {
        setting.map(|number| number.to_string())
    }
}

/// Ranks in text, as in `0-127,200`.
pub(super) fn ranks(text: &str) -> Result<RankSet, Cause> {
    RankSet::parse(text).map_err(|error| {
        let expected = format!("ranks, as in \"0-127,200\" ({error})");
        Cause::Invalid { found: format!("{text:?}"), expected }
    })
}

/// An error of `value`; `wanted` describes a valid one.
pub(super) fn invalid(value: &DeValue<'_>, wanted: &str) -> Cause {
    let text = value.as_str().map(|text| format!("{text:?}"));
    let whole = || integer(value).map(|number| number.to_string());
    let found = text.or_else(whole).or_else(|| number(value).map(|number| number.to_string()));
    Cause::Invalid { found: found.unwrap_or_default(), expected: wanted.to_owned() }
}

/// The number, if it is whole and 64 bits hold it.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The number, if it has a fraction or an exponent, and is not too large.
pub(super) fn float(value: &DeValue<'_>) -> Option<f64> {
    let text = value.as_float()?.as_str();
    text.parse().ok().filter(|value: &f64| value.is_finite() || !text.contains(|c: char| c.is_ascii_digit()))
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    float(value).or_else(|| integer(value).map(|integer| integer as f64))
}
