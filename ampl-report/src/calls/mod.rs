//! Call sites for people: labels, and the whole table.

pub mod label;
mod table;

use ampl_analysis::calls::Late;
use ampl_core::units::RankSet;

pub use table::text;

/// Columns of `late` and ranks.
const WIDTH: usize = 16;

/// `late 5, 9`, `late 0-31`, `only 5 waits`; `None` where no rank is known to be late.
///
/// Ranks are in order of lateness if all of them fit, else as ranges, else the first of them.
pub fn late(late: &Late) -> Option<String> {
    let (named, more) = match late {
        Late::Ranks { named, more } => (named, more),
        Late::AllBut { waiting, .. } => return Some(only(waiting)),
        Late::Nobody | Late::Unknown => return None,
    };
    let list = |count: usize, end: &str| {
        let names: Vec<String> = named.iter().take(count).map(u32::to_string).collect();
        format!("late {}{end}", names.join(", "))
    };
    let fits = |text: &String| text.chars().count() <= WIDTH && !more;
    let ranges = format!("late {}", named.iter().copied().collect::<RankSet>());
    let whole = Some(list(named.len(), "")).filter(fits).or_else(|| Some(ranges).filter(fits));
    let first =
        || (1..named.len()).rev().map(|count| list(count, ", …")).find(|text| text.chars().count() <= WIDTH);
    Some(whole.or_else(first).unwrap_or_else(|| list(1, ", …")))
}

/// The few ranks that wait for all others.
fn only(waiting: &[u32]) -> String {
    match waiting {
        [one] => format!("only {one} waits"),
        several => {
            let ranges = several.iter().copied().collect::<RankSet>().to_string();
            let fits = "only  wait".len() + ranges.len() <= WIDTH;
            if fits { format!("only {ranges} wait") } else { format!("only {} wait", several.len()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ranks_fit_into_their_column() {
        let said = |named: &[u32], more| late(&Late::Ranks { named: named.to_vec(), more }).unwrap();
        assert_eq!(said(&[2, 1], false), "late 2, 1");
        assert_eq!(said(&[0, 1, 2, 3], true), "late 0, 1, 2, …");
        let half: Vec<u32> = (0..32).rev().collect();
        assert_eq!(said(&half, false), "late 0-31");
        assert_eq!(said(&[100_003, 7, 100_001, 9], false), "late 100003, …");
        assert_eq!((late(&Late::Nobody), late(&Late::Unknown)), (None, None));
        let but =
            |waiting: &[u32]| late(&Late::AllBut { waiting: waiting.to_vec(), others: vec![1] }).unwrap();
        assert_eq!(
            [&[2][..], &[3, 2], &[2, 14, 900]].map(but),
            ["only 2 waits", "only 2-3 wait", "only 3 wait"]
        );
    }
}
