//! Time that ranks wait for those that compute more, by the purpose of the calls in which they do.

use std::collections::BTreeMap;

use super::Facts;
use super::cost::{Costs, Purpose};

/// Share of the ranks' time, `all_ns` nanoseconds of so many threads, in which they wait in calls of each purpose because others compute more;
/// all of them are `imbalance`.
///
/// Where the same ranks compute more throughout, the time of the others grows in the calls where they wait, by the slope
/// of a regression on compute time. The rest may be waited in any calls, and is divided by their shares.
pub fn waited(
    facts: &Facts<'_>,
    costs: &Costs,
    (all_ns, threads): (f64, f64),
    imbalance: f64,
) -> BTreeMap<Purpose, f64> {
    let times = &facts.run.times;
    let ranks = times.len().max(1) as f64;
    let mean = times.iter().map(|times| times.compute).sum::<f64>() / ranks;
    let most = times.iter().map(|times| times.compute).fold(0.0, f64::max);
    let program: f64 = times.iter().map(|times| times.of_program()).sum::<f64>().max(1.0);
    let lasting = (ranks * (most - mean) / program).clamp(0.0, imbalance);
    let slope = |purpose| {
        let own: BTreeMap<u32, f64> = costs.ranks(purpose).collect();
        let (mut both, mut spread) = (0.0, 0.0);
        for times in times {
            let more = times.compute - mean;
            both += more * own.get(&times.rank).copied().unwrap_or(0.0) / threads;
            spread += more * more;
        }
        if spread > 0.0 { (-both / spread).max(0.0) } else { 0.0 }
    };
    let slopes = Purpose::ALL.map(|purpose| (purpose, slope(purpose)));
    let sum = slopes.iter().map(|(_, slope)| slope).sum::<f64>().max(1.0);
    let share = |purpose| costs.total(purpose) / all_ns;
    let of = slopes.map(|(purpose, slope)| (purpose, (lasting * slope / sum).min(share(purpose))));
    let rest = imbalance - of.iter().map(|(_, part)| part).sum::<f64>();
    let others: f64 = of.iter().map(|&(purpose, part)| share(purpose) - part).sum();
    let scale = if others > 0.0 { (rest / others).clamp(0.0, 1.0) } else { 0.0 };
    of.map(|(purpose, part)| (purpose, part + scale * (share(purpose) - part))).into_iter().collect()
}
