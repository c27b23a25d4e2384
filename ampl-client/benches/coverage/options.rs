//! Options of the measurement.

use ampl_core::config::{Mechanism, Selection, Sizing, Summaries};
use ampl_testkit::Kind;

pub const USAGE: &str = "\
options of coverage (all optional):
  --ranks LIST        numbers of ranks (32,128,2048)
  --largest           65536 ranks too
  --levels LIST       confidence/error in percent (90/8,95/5,99/3)
  --methods LIST      ampl-2008, sampled, predictive, retrospective (all)
  --populations LIST  of the eleven (all)
  --seeds N           seeds per population (8)
  --first-seed S      the first of them (1)
  --windows N         windows per run (48)
  --interval N        windows per update interval (4)
  --mechanism WORD    subset or global (subset)
  --undeclared        another metric that no bound is about, from the same ranks
  --detail            a line per population";

/// A legal combination of summaries, selection and sizing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Ampl2008,
    Sampled,
    Predictive,
    Retrospective,
}

impl Method {
    pub const ALL: [Self; 4] = [Self::Ampl2008, Self::Sampled, Self::Predictive, Self::Retrospective];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ampl2008 => "ampl-2008",
            Self::Sampled => "sampled",
            Self::Predictive => "predictive",
            Self::Retrospective => "retrospective",
        }
    }

    /// The settings that ask for it.
    pub fn settings(self) -> (Summaries, Selection, Sizing) {
        match self {
            Self::Ampl2008 => (Summaries::Sampled, Selection::Predictive, Sizing::Ampl2008),
            Self::Sampled => (Summaries::Sampled, Selection::Predictive, Sizing::Neyman),
            Self::Predictive => (Summaries::Census, Selection::Predictive, Sizing::Neyman),
            Self::Retrospective => (Summaries::Census, Selection::Retrospective, Sizing::Neyman),
        }
    }

    /// Aims that STATISTICS §4 sets: how far below the nominal value the mean coverage and the worst population may
    /// lie, and the most that gm may be. `None` for the control, which must fall short.
    pub fn aims(self, ranks: u32) -> Option<(f64, f64, f64)> {
        match self {
            Self::Ampl2008 => None,
            Self::Sampled => Some((0.01, 0.07, 1.1)),
            Self::Predictive => Some((0.005, 0.05, 1.05)),
            Self::Retrospective => Some((0.0, 0.03, if ranks <= 32 { 0.50 } else { 0.40 })),
        }
    }
}

/// Confidence and relative error, in (0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    pub confidence: f64,
    pub error: f64,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub ranks: Vec<u32>,
    pub levels: Vec<Level>,
    pub methods: Vec<Method>,
    pub populations: Vec<Kind>,
    pub seeds: u64,
    pub first_seed: u64,
    pub windows: u64,
    pub interval: u32,
    pub mechanism: Mechanism,
    pub undeclared: bool,
    pub detail: bool,
}

impl Options {
    /// Options that `words` ask for.
    ///
    /// # Errors
    /// What is wrong with them, and the usage.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self {
            ranks: vec![32, 128, 2048],
            levels: levels("90/8,95/5,99/3").expect("they are levels"),
            methods: Method::ALL.to_vec(),
            populations: Kind::ALL.to_vec(),
            seeds: 8,
            first_seed: 1,
            windows: 48,
            interval: 4,
            mechanism: Mechanism::Subset,
            undeclared: false,
            detail: false,
        };
        let mut words = words.iter().map(String::as_str);
        while let Some(name) = words.next() {
            match name {
                "--largest" => options.ranks.push(65_536),
                "--undeclared" => options.undeclared = true,
                "--detail" => options.detail = true,
                _ => {
                    let value = words.next().unwrap_or_default();
                    options
                        .set(name, value)
                        .ok_or_else(|| format!("{name} {value}: not understood\n{USAGE}"))?;
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let positive = || value.parse().ok().filter(|&number: &u64| number > 0);
        match name {
            "--ranks" => self.ranks = list(value, |word| word.parse().ok().filter(|&ranks| ranks > 0))?,
            "--levels" => self.levels = levels(value)?,
            "--methods" => {
                let of = |word: &str| Method::ALL.into_iter().find(|method| method.name() == word);
                self.methods = list(value, of)?;
            }
            "--populations" => self.populations = list(value, Kind::by_name)?,
            "--seeds" => self.seeds = positive()?,
            "--first-seed" => self.first_seed = value.parse().ok().filter(|&seed| seed < 1 << 60)?,
            "--windows" => self.windows = positive()?,
            "--interval" => self.interval = u32::try_from(positive()?).ok()?,
            "--mechanism" => {
                self.mechanism = match value {
                    "subset" => Mechanism::Subset,
                    "global" => Mechanism::Global,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    pub fn mechanism_name(&self) -> &'static str {
        match self.mechanism {
            Mechanism::Subset => "subset",
            Mechanism::Global => "global",
        }
    }
}

fn list<T>(text: &str, of: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|word| of(word.trim())).collect()
}

fn levels(text: &str) -> Option<Vec<Level>> {
    let share = |word: &str| {
        word.parse::<f64>().ok().map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0)
    };
    list(text, |word| {
        let (confidence, error) = word.split_once('/')?;
        Some(Level { confidence: share(confidence)?, error: share(error)? })
    })
}
