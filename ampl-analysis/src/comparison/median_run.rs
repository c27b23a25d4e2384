//! The run that stands for its side.

use super::{Key, Profile, RunQuantity, Scope};

/// Number of the run of median length; of an even number the shorter of the two.
pub fn median_run(profiles: &[Profile]) -> usize {
    let elapsed = Key { scope: Scope::Run, what: RunQuantity::Elapsed };
    let length = |at: &usize| profiles[*at].times.get(&elapsed).copied().unwrap_or(f64::MAX);
    let mut order: Vec<usize> = (0..profiles.len()).collect();
    order.sort_by(|a, b| length(a).total_cmp(&length(b)));
    order[(order.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_median_length_stands_for_its_side() {
        let profile = |length: Option<f64>| {
            let mut profile = Profile::default();
            let elapsed = Key { scope: Scope::Run, what: RunQuantity::Elapsed };
            length.into_iter().for_each(|length| _ = profile.times.insert(elapsed.clone(), length));
            profile
        };
        let of =
            |lengths: &[Option<f64>]| median_run(&lengths.iter().map(|&of| profile(of)).collect::<Vec<_>>());
        assert_eq!(of(&[Some(5.0)]), 0);
        assert_eq!(of(&[Some(5.0), Some(1.0), Some(3.0)]), 2);
        assert_eq!(of(&[Some(5.0), Some(1.0), Some(3.0), Some(9.0)]), 2);
        // One whose length is not known is not chosen before others.
        assert_eq!(of(&[None, Some(1.0)]), 1);
    }
}
