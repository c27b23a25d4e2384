//! Whole jobs in turns: bare and watched ones follow each other, and ratios are taken within a round.

use anyhow::{Context as _, Result};

use super::job::{Bench, Finished, State};
use super::options::Options;
use super::program::Program;
use crate::bench::spread::Spread;

/// A number of a job that is compared.
type Measure = fn(&Finished) -> f64;

const MEASURES: [(&str, Measure); 4] = [
    ("cpu, Init to Finalize", |job| job.ranks.iter().map(|rank| rank.inside).sum()),
    ("wall, Init to Finalize", |job| job.ranks.iter().map(|rank| rank.inside_wall).fold(0.0, f64::max)),
    ("cpu, whole job", |job| job.ranks.iter().map(|rank| rank.whole).sum()),
    ("wall, whole job", |job| job.wall * 1e9),
];

/// Prints the extra cost of watched jobs over bare ones.
///
/// # Errors
/// When a job fails.
pub fn run(bench: &Bench, options: &Options, programs: &[Program]) -> Result<()> {
    for program in programs {
        let mut states = vec![State::Bare];
        match options.state {
            Some(state) => states.extend([state, State::Disabled]),
            None => states.extend(State::WATCHED),
        }
        let mut rounds = Vec::new();
        for round in 0..options.pairs {
            let mut order: Vec<usize> = (0..states.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut jobs: Vec<Option<Finished>> = states.iter().map(|_| None).collect();
            for index in order {
                jobs[index] = Some(bench.run(&program.words, states[index])?);
            }
            rounds.push(jobs.into_iter().flatten().collect::<Vec<_>>());
        }
        let bare: Vec<f64> = rounds.iter().map(|jobs| MEASURES[0].1(&jobs[0]) / 1e9).collect();
        println!(
            "\n{}, pairs: watched over bare jobs within each of {} rounds; a bare one takes {:.2} s of \
             processor time from Init to Finalize",
            program.name,
            options.pairs,
            Spread::of(&bare).context("no rounds")?.median
        );
        println!("{:<10} {:<24} {:>44} {:>10}", "state", "", "median [95 %] (quartiles)", "of minima");
        for (index, state) in states.iter().enumerate().skip(1) {
            for (name, measure) in MEASURES {
                let (ratios, minima) = compare(&rounds, index, measure).context("no rounds")?;
                println!("{:<10} {name:<24} {ratios:>44} {:>8.2} %", state.name(), 100.0 * minima);
            }
            if let Some(line) = own_time(&rounds, index) {
                println!("{:<10} {line}", state.name());
            }
        }
    }
    Ok(())
}

/// Spread over the rounds of state `index` over bare, minus one; and that of the smallest of each.
fn compare(rounds: &[Vec<Finished>], index: usize, measure: Measure) -> Option<(Spread, f64)> {
    let ratios: Vec<f64> =
        rounds.iter().map(|jobs| measure(&jobs[index]) / measure(&jobs[0]) - 1.0).collect();
    let least = |index: usize| rounds.iter().map(|jobs| measure(&jobs[index])).fold(f64::INFINITY, f64::min);
    Some((Spread::of(&ratios)?, least(index) / least(0) - 1.0))
}

/// The agent's report beside the difference, by medians and by minima; `None` where nothing was recorded.
///
/// Minima are of the jobs least disturbed, and the only ones to go by where the difference is smaller than the noise.
fn own_time(rounds: &[Vec<Finished>], index: usize) -> Option<String> {
    let inside = MEASURES[0].1;
    let difference: Vec<f64> = rounds.iter().map(|jobs| inside(&jobs[index]) - inside(&jobs[0])).collect();
    let own: Vec<_> = rounds.iter().filter_map(|jobs| jobs[index].own).collect();
    let agent: Vec<f64> = own.iter().map(|own| own.agent_ns).collect();
    let calls = Spread::of(&own.iter().map(|own| own.calls).collect::<Vec<_>>())?.median;
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let of_state = |index: usize| least(&mut rounds.iter().map(|jobs| inside(&jobs[index])));
    let (median, difference) = (Spread::of(&agent)?.median, Spread::of(&difference)?.median);
    let (smallest, of_minima) = (least(&mut agent.iter().copied()), of_state(index) - of_state(0));
    let share = median / Spread::of(&rounds.iter().map(|jobs| inside(&jobs[0])).collect::<Vec<_>>())?.median;
    Some(format!(
        "the agent says {:.2} % of that processor time, {:.0} ns per call; measured {:.0} ns, factor {:.2}; \
         of minima {:.0} and {:.0} ns, factor {:.2}",
        100.0 * share,
        median / calls,
        difference / calls,
        median / difference,
        smallest / calls,
        of_minima / calls,
        smallest / of_minima
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::overhead::job::{RankCost, SelfTime};

    #[test]
    fn ratios_are_taken_within_a_round() {
        let job = |inside: f64, agent_ns: f64| Finished {
            ranks: vec![RankCost { inside, inside_wall: inside, whole: inside }; 2],
            wall: inside,
            stdout: String::new(),
            own: Some(SelfTime { agent_ns, calls: 10.0 }),
        };
        // The second round is slower as a whole, and no worse.
        let rounds = [vec![job(100.0, 0.0), job(110.0, 30.0)], vec![job(200.0, 0.0), job(220.0, 30.0)]];
        let (ratios, minima) = compare(&rounds, 1, MEASURES[0].1).unwrap();
        assert!((ratios.median - 0.1).abs() < 1e-12 && (minima - 0.1).abs() < 1e-12);
        let line = own_time(&rounds, 1).unwrap();
        assert!(line.ends_with("of minima 3 and 2 ns, factor 1.50"), "{line}");
        assert!(line.contains("10.00 % of") && line.contains("measured 3 ns, factor 1.00"), "{line}");
    }
}
