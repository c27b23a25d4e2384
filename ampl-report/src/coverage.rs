//! Words for the share of the ranks' time that a number rests on.

use ampl_analysis::coverage::Coverage;
use ampl_analysis::pauses::Pauses;

use crate::human::{percent, plural};

/// `19 of 51 windows`; where ranks left nothing at all, `7 of 8 ranks`.
pub fn part(coverage: &Coverage) -> String {
    if coverage.unseen {
        return "ampl does not see all MPI functions".into();
    }
    match coverage.ranks < coverage.of_ranks {
        true => format!("{} of {}", coverage.ranks, plural(coverage.of_ranks, "rank")),
        false => format!("{} of {}", coverage.windows, plural(coverage.of_windows, "window")),
    }
}

/// `19 of 51 windows, 37.2 % of the run's time`.
pub fn words(coverage: &Coverage) -> String {
    format!("{}, {} of the run's time", part(coverage), percent(coverage.share))
}

/// `55.1 % of the run was paused`, by the program.
pub fn paused(pauses: &Pauses) -> String {
    match pauses.share {
        Some(share) => format!("{} of the run was paused", percent(share)),
        None => "for how long it was paused is not known".into(),
    }
}

/// Text in place of a number: `not known (19 of 51 windows)`.
pub fn unknown(coverage: &Coverage) -> String {
    format!("not known ({})", part(coverage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_by_the_share() {
        let of = Coverage {
            share: 0.372,
            observed: 1.0,
            windows: 19,
            of_windows: 51,
            ranks: 4,
            of_ranks: 4,
            unseen: false,
        };
        assert_eq!(unknown(&of), "not known (19 of 51 windows)");
        assert_eq!(words(&of), "19 of 51 windows, 37.2 % of the run's time");
        let absent = Coverage { ranks: 7, of_ranks: 8, ..of };
        assert_eq!(unknown(&absent), "not known (7 of 8 ranks)");
        let unseen = Coverage { unseen: true, ..of };
        assert_eq!(unknown(&unseen), "not known (ampl does not see all MPI functions)");
    }
}
