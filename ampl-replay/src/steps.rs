//! A run with fewer steps: a short replay that stands for the long one.

use std::sync::Arc;
use std::time::Duration;

use ampl_analysis::timesteps::{Absence, timesteps};
use ampl_reader::sites::Symbols;
use ampl_reader::{Call, Rank, Run};

/// Steps that are replayed: the first ones, and the last.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Numbers of the calls that begin steps, ascending.
    begins: Arc<[u64]>,
    kept: u64,
    begun: u64,
}

/// Place of a call among the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is replayed, and begins a step if so.
    Played(bool),
    /// It is in a step that is left out.
    LeftOut,
}

impl Cut {
    /// `kept` steps of those that the calls numbered `begins` begin; at least two are kept.
    pub fn new(begins: Vec<u64>, kept: u64) -> Self {
        Self { begins: begins.into(), kept: kept.max(2), begun: 0 }
    }

    /// The same of `rank`, by the loop that `ampl timesteps` finds.
    ///
    /// # Errors
    /// The reason for which there are no steps to leave out.
    pub fn of(run: &Run, rank: &Rank<'_>, kept: u64) -> Result<Self, String> {
        let mut symbols = Symbols::default();
        let found = timesteps(run.structure(), &mut |module, offset| {
            let function = symbols.function(module, offset)?;
            offset.checked_sub(function.offset?)
        });
        let own = found.outcome.as_ref().map_err(|absence| reason(*absence).to_owned())?;
        if own.confidence < 1.0 {
            return Err("ranks show different numbers of steps".to_owned());
        }
        let begins = found.begins(rank.structure.rank).and_then(|begins| begins.calls(&rank.structure));
        let begins = begins.ok_or("no call begins each step: some steps are told by others only")?;
        Ok(Self::new(begins, kept))
    }

    /// Steps of the run.
    pub fn all(&self) -> u64 {
        self.begins.len() as u64
    }

    /// Steps that are left out.
    pub fn left_out(&self) -> u64 {
        self.all().saturating_sub(self.kept)
    }

    /// Place of `call`, the next one.
    pub fn place(&mut self, call: &Call) -> Place {
        let begins = self.begins.get(self.begun as usize) == Some(&call.seq);
        self.begun += u64::from(begins);
        match self.begun < self.kept || self.begun >= self.all() {
            true => Place::Played(begins),
            false => Place::LeftOut,
        }
    }
}

fn reason(absence: Absence) -> &'static str {
    match absence {
        Absence::NoCalls => "no call is stored",
        Absence::NoLoop => "no loop over time was found",
        Absence::Disagreement => "ranks show different numbers of steps",
        Absence::TooIrregular => "the calls are too irregular to find a loop over time",
    }
}

/// Prediction of a rank's time with all steps, from those that were replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Begin of each step since the start of the replay, and computation up to there.
    steps: Vec<(Duration, Duration)>,
    computed: Duration,
    left_out: Duration,
}

impl Prediction {
    /// Notes computation before a call: of the replay, or of a step that is left out.
    pub fn compute(&mut self, time: Duration, is_left_out: bool) {
        match is_left_out {
            true => self.left_out += time,
            false => self.computed += time,
        }
    }

    /// Notes that a step begins, `since` the start.
    pub fn begin(&mut self, since: Duration) {
        self.steps.push((since, self.computed));
    }

    /// Mean time of a step besides its computation, without the first one, which warms up, and the last two: between
    /// these some are left out.
    pub fn rest_of_step(&self) -> Duration {
        let [_, second, .., last, _] = &self.steps[..] else { return Duration::ZERO };
        let number = self.steps.len() as u32 - 3;
        let [time, computed] = [last.0.saturating_sub(second.0), last.1.saturating_sub(second.1)];
        time.saturating_sub(computed) / number.max(1)
    }

    /// Time of all steps, where the replay took `elapsed` without `steps` of them.
    pub fn whole(&self, elapsed: Duration, steps: u64) -> Duration {
        let rest = self.rest_of_step().as_nanos().saturating_mul(steps.into());
        elapsed + self.left_out + Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completions::tests::call;

    #[test]
    fn the_first_steps_and_the_last_are_kept_with_all_around_them() {
        let at = |seq: u64| Call { seq, ..call("MPI_Bcast", Vec::new(), Vec::new()) };
        // A call before the loop, ten steps of two calls, one call behind.
        let calls: Vec<Call> = (0..22).map(at).collect();
        let begins: Vec<u64> = (0..10).map(|step| 2 * step + 1).collect();
        let mut cut = Cut::new(begins, 3);
        assert_eq!((cut.all(), cut.left_out()), (10, 7));
        let mut begun = Vec::new();
        let mut played = |call: &&Call| match cut.place(call) {
            Place::LeftOut => false,
            Place::Played(begins) => {
                begun.extend(begins.then_some(call.seq));
                true
            }
        };
        let played: Vec<u64> = calls.iter().filter(|call| played(call)).map(|call| call.seq).collect();
        assert_eq!(played, [0, 1, 2, 3, 4, 19, 20, 21]);
        assert_eq!(begun, [1, 3, 19]);
    }

    #[test]
    fn steps_left_out_take_their_own_computation_and_the_mean_of_the_rest() {
        let ms = Duration::from_millis;
        let mut own = Prediction::default();
        for (begin, computation) in [(10, 3), (30, 4), (35, 3), (42, 5)] {
            own.begin(ms(begin));
            own.compute(ms(computation), false);
        }
        own.compute(ms(70), true);
        own.begin(ms(50));
        // Of 12 ms in two steps 7 were computed.
        assert_eq!(own.rest_of_step(), Duration::from_micros(2500));
        assert_eq!(own.whole(ms(60), 4), ms(60 + 70 + 10));
    }
}
