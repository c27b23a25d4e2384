//! Spread of equal runs: standard deviations of logarithms, learned and stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::change::{Noise, Scale, deviation};
use super::profile::Profile;
use super::quantity::{Key, Unit};

/// Fewest runs that a spread is learned from.
pub const FEWEST: usize = 3;

/// Spread of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The quantity.
    pub what: String,
    /// The part of the run.
    pub scope: String,
    /// Standard deviation of one run: of the logarithm, or of a share. 0 of a structure that varies.
    pub deviation: f64,
    /// Number of equal runs.
    pub runs: u64,
    /// True of a number of calls or bytes that varies between equal runs.
    #[serde(default)]
    pub varies: bool,
}

/// Spreads of a program's quantities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The quantities, by part of the run.
    #[serde(default)]
    pub quantity: Vec<Known>,
}

impl Spread {
    /// The spread of equal `runs`, at least [`FEWEST`].
    pub fn learn(runs: &[Profile]) -> Self {
        let mut quantity = Vec::new();
        let number = runs.len() as u64;
        let exact: BTreeSet<&Key> = runs.iter().flat_map(|run| run.counts.keys()).collect();
        for key in exact {
            let values: BTreeSet<u64> =
                runs.iter().map(|run| run.counts.get(key).copied().unwrap_or(0)).collect();
            if values.len() > 1 {
                quantity.push(Known::of(key, 0.0, number, true));
            }
        }
        let mut values: BTreeMap<&Key, Vec<f64>> = BTreeMap::new();
        for (key, &value) in runs.iter().flat_map(|run| &run.times) {
            let log = if scale(key) == Scale::Ratio { value.ln() } else { value };
            values.entry(key).or_default().push(log);
        }
        for (key, values) in values {
            let spread = deviation(&values);
            if values.len() == runs.len() && spread.is_finite() {
                quantity.push(Known::of(key, spread, number, false));
            }
        }
        Self { quantity }
    }

    /// The spreads that `text` states, as [`to_toml`](Self::to_toml) writes it.
    ///
    /// # Errors
    /// The fault as the parser names it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spread: Self = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let sound = |known: &Known| known.deviation.is_finite() && known.deviation >= 0.0;
        match spread.quantity.iter().find(|known| !sound(known)) {
            Some(known) => Err(format!("the deviation of {} is not a number from 0", known.what)),
            None => Ok(spread),
        }
    }

    /// The spreads as TOML.
    pub fn to_toml(&self) -> String {
        let mut out =
            "# How much equal runs differ, by 'ampl diff --calibrate'; read with 'ampl diff --spread'.\n"
                .to_owned();
        let quoted = |text: &str| toml_edit::Value::from(text).to_string();
        for known in &self.quantity {
            let (what, scope) = (quoted(&known.what), quoted(&known.scope));
            let rest = match known.varies {
                true => "deviation = 0.0\nvaries = true".to_owned(),
                false => format!("deviation = {:?}", known.deviation),
            };
            let _ = write!(
                out,
                "\n[[quantity]]\nwhat = {what}\nscope = {scope}\nruns = {}\n{rest}\n",
                known.runs
            );
        }
        out
    }

    fn known(&self, key: &Key) -> Option<&Known> {
        let scope = key.scope.to_string();
        self.quantity.iter().find(|known| known.what == key.what.name() && known.scope == scope)
    }

    /// Knowledge about the noise of `key`.
    pub fn noise(&self, key: &Key) -> Noise {
        match self.known(key).filter(|known| !known.varies) {
            Some(known) => Noise::Learned { deviation: known.deviation, runs: known.runs },
            None => Noise::Runs,
        }
    }

    /// True where the structure `key` varies between equal runs.
    pub fn varies(&self, key: &Key) -> bool {
        self.known(key).is_some_and(|known| known.varies)
    }
}

impl Known {
    fn of(key: &Key, deviation: f64, runs: u64, varies: bool) -> Self {
        Self { what: key.what.name().to_owned(), scope: key.scope.to_string(), deviation, runs, varies }
    }
}

/// Scale of changes of `key`.
pub fn scale(key: &Key) -> Scale {
    if key.what.unit() == Unit::Fraction { Scale::Difference } else { Scale::Ratio }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::quantity::{RunQuantity, Scope};

    #[test]
    fn what_is_learned_comes_back() {
        let run = |elapsed: f64, polls: u64| {
            let mut run = Profile::default();
            run.times.insert(Key::run(RunQuantity::Elapsed), elapsed);
            run.times.insert(Key::run(RunQuantity::LoadBalance), elapsed / 10.0);
            let site = Scope::Site { function: "MPI_Send".into(), place: "a \"b\".c:5".into() };
            run.counts.insert(Key { scope: site, what: RunQuantity::Calls }, polls);
            run.counts.insert(Key::run(RunQuantity::Calls), 7);
            run
        };
        let spread = Spread::learn(&[run(1.0, 3), run(2.0, 4), run(4.0, 3)]);
        let back = Spread::parse(&spread.to_toml()).unwrap();
        assert_eq!(back, spread);
        let Noise::Learned { deviation, runs } = back.noise(&Key::run(RunQuantity::Elapsed)) else {
            panic!()
        };
        assert!((deviation - 2f64.ln()).abs() < 1e-12 && runs == 3);
        assert_eq!(back.noise(&Key::run(RunQuantity::MpiTime)), Noise::Runs);
        let site = Scope::Site { function: "MPI_Send".into(), place: "a \"b\".c:5".into() };
        assert!(
            back.varies(&Key { scope: site, what: RunQuantity::Calls })
                && !back.varies(&Key::run(RunQuantity::Calls))
        );
        for text in
            ["[[quantity]]\nwhat = 3", "[[quantity]]\nwhat=\"a\"\nscope=\"run\"\nruns=3\ndeviation=nan"]
        {
            assert!(Spread::parse(text).is_err());
        }
    }
}
