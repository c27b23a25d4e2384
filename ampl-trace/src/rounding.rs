//! Rounding of a rank's window summaries.

use ampl_core::config::Quantity;
use ampl_core::plan::Plan;
use ampl_core::units::Rank;

use crate::cells::{Cell, Cells};
use crate::census::Census;
use crate::model::RankTrace;
use crate::rounded;

/// Rounds measured times and counters in windows of `rank`, as `output.summary_error` of `plan` asks, and returns
/// what that takes from sums. Bytes, calls and metrics of the program stay as they are, as does everything that is
/// recorded to verify bounds.
pub fn round_windows(plan: &Plan, rank: &mut RankTrace) -> Census {
    let mut census = Census::default();
    let digits = rounded::digits(plan.config.output.summary_error);
    if digits == 0 || plan.config.output.verify {
        return census;
    }
    let is_measured = |quantity: &Quantity| {
        matches!(quantity, Quantity::MpiTime | Quantity::ComputeTime | Quantity::Perf(_) | Quantity::Papi(_))
    };
    let measured: Vec<bool> = plan.metrics.iter().map(|metric| is_measured(&metric.quantity)).collect();
    let number = Rank(rank.process.rank);
    let group = plan.groups.iter().position(|group| group.members.contains(number));
    rank.digits = digits;
    for window in rank.windows.entries_mut().iter_mut().filter(|window| window.count() == 1) {
        window.own_ns = rounded::nearest(window.own_ns, rounded::own_digits(digits));
        let number = window.window;
        let round = |(metric, cell): (usize, Cell)| {
            if !measured.get(metric).is_some_and(|&measured| measured) || cell != Cell::one(cell.sum) {
                return cell;
            }
            let Some(value) = whole(cell.sum) else { return cell };
            let rounded = rounded::nearest(value, digits);
            let lacks = value as i64 - rounded as i64;
            if let Some(group) = group.filter(|_| lacks != 0) {
                census.add(group as u32, metric as u32, number, lacks);
            }
            Cell::one(rounded as f64)
        };
        window.cells = window.cells.iter().enumerate().map(round).collect::<Cells>();
    }
    census
}

/// `value` as a whole number that is not negative, from which it comes back.
fn whole(value: f64) -> Option<u64> {
    const MOST: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    ((0.0..=MOST).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use ampl_core::config::Config;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{WindowSummaries, WindowSummary};

    fn plan(config: &str) -> Plan {
        Plan::new(Config::parse(config).unwrap().0, 64).unwrap()
    }

    fn rank(number: u32, values: &[u64]) -> RankTrace {
        let mut rank = RankTrace { windows: windows(values), ..RankTrace::default() };
        rank.process.rank = number;
        rank
    }

    fn windows(values: &[u64]) -> WindowSummaries {
        let window = |(number, &value): (u64, &u64)| WindowSummary {
            window: number,
            repeat: 1,
            own_ns: value >> 9,
            cells: (0..6).map(|metric| Cell::one((value >> metric) as f64)).collect(),
            ..WindowSummary::default()
        };
        (0..).zip(values).map(window).collect()
    }

    proptest! {
        #[test]
        fn sums_of_rounded_values_and_what_they_lack_are_exact(
            ranks in prop::collection::vec(prop::collection::vec(0..1u64 << 40, 5), 1..9),
        ) {
            let plan = plan("");
            let mut census = Census::default();
            let mut rounded: Vec<WindowSummaries> = Vec::new();
            for (rank, values) in (0..).zip(&ranks) {
                let mut own = self::rank(rank, values);
                census.join(round_windows(&plan, &mut own));
                rounded.push(own.windows);
            }
            prop_assert_eq!(Census::decode(&census.encode()), Some(census.clone()));
            for window in 0..5u64 {
                for metric in 0..6 {
                    let of = |own: &WindowSummaries| own.get(window).unwrap().cells.get(metric).unwrap().sum;
                    let exact: f64 = ranks.iter().map(|values| (values[window as usize] >> metric) as f64).sum();
                    let found: f64 = rounded.iter().map(of).sum();
                    prop_assert_eq!(found + census.lacks(0, metric, window..=window), exact, "{} {}", window, metric);
                    for (own, values) in rounded.iter().zip(&ranks) {
                        let exact = (values[window as usize] >> metric) as f64;
                        prop_assert!((of(own) - exact).abs() <= 0.001 * exact);
                    }
                }
            }
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let _ = Census::decode(&bytes);
            let _ = Census::decode(&[&[1, 0, 1, 200][..], &bytes].concat());
        }
    }

    #[test]
    fn what_is_to_be_exact_is() {
        let values = [123_456_789, 987_654_321];
        for config in ["[output]\nsummary_error = 0\n", "[output]\nverify = true\n"] {
            let mut own = rank(3, &values);
            assert!(round_windows(&plan(config), &mut own).is_empty(), "{config}");
            assert_eq!(own, rank(3, &values), "{config}");
        }
        let mut own = rank(3, &values);
        own.windows.entries_mut()[0].repeat = 7;
        round_windows(&plan(""), &mut own);
        let own = own.windows;
        assert_eq!(own.entries()[0].cells, windows(&values).entries()[0].cells, "a run of windows");
        let cell = |metric: usize| own.entries()[1].cells.get(metric).unwrap().sum as u64;
        assert_eq!([cell(0), cell(3), cell(4), cell(5)], [0, 3, 4, 5].map(|metric| values[1] >> metric));
        assert_ne!([cell(1), cell(2)], [1, 2].map(|metric| values[1] >> metric));
    }
}
