//! Call sites for people: labels, and the whole table.

pub mod label;
mod table;

use ampl_analysis::calls::Late;
use ampl_reader::totals::LEAST;

pub use table::text;

/// `late 5, 9`; `None` where no rank is known to be late.
pub fn late(late: &Late) -> Option<String> {
    let Late::Ranks(ranks) = late else { return None };
    let names: Vec<String> = ranks.iter().take(LEAST - 1).map(u32::to_string).collect();
    let more = if ranks.len() < LEAST { "" } else { ", …" };
    Some(format!("late {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ranks_as_are_known_by_name_may_be_more() {
        assert_eq!(late(&Late::Ranks(vec![2, 1])).as_deref(), Some("late 2, 1"));
        assert_eq!(late(&Late::Ranks((0..LEAST as u32).collect())).as_deref(), Some("late 0, 1, 2, …"));
        assert_eq!((late(&Late::Nobody), late(&Late::Unknown)), (None, None));
    }
}
