//! A timeline as a picture of characters: a line for a rank, a character for a pixel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ampl_analysis::query::timeline::{COMPUTE, COMPUTE_OR_UNTIMED, Share, Timeline, UNSAMPLED};

use crate::human::{cut, duration, percent, plural, wrap};

/// Columns of the ranks' names.
const LABEL: usize = 10;

/// Pixels that fit into a line of `width` columns.
pub fn pixels(width: usize) -> u32 {
    width.saturating_sub(LABEL + 2).max(1) as u32
}

/// The picture of `timeline`, with a legend in lines of `width` columns.
pub fn text(timeline: &Timeline, width: usize) -> String {
    let marks = marks(timeline);
    let pixels = timeline.rows.first().map_or(0, |row| row.shares.len());
    let at = |pixel: usize| duration(timeline.t0_ns as f64 + timeline.pixel_ns * pixel as f64);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "from {} until {}, {} each; a mark is the function with the largest share",
        at(0),
        at(pixels),
        duration(timeline.pixel_ns)
    );
    let mut drawn: BTreeSet<&str> = BTreeSet::new();
    for row in &timeline.rows {
        let mut mark = |shares: &Vec<Share>| {
            let Some((most, mark)) = shares.first().and_then(|most| Some((most, marks.get(most.function)?)))
            else {
                return ' ';
            };
            drawn.insert(most.function);
            mark.0
        };
        let line: String = row.shares.iter().map(&mut mark).collect();
        let label = row.ranks.clone().unwrap_or_else(|| row.rank.to_string());
        let _ = writeln!(out, "{:>LABEL$} |{line}", cut(&label, LABEL));
    }
    let mut legend: Vec<(&str, char, f64)> =
        marks.iter().map(|(name, &(mark, sum))| (*name, mark, sum)).collect();
    legend.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(b.0)));
    let all: f64 = legend.iter().map(|entry| entry.2).sum();
    let entry = |(name, mark, sum): &(&str, char, f64)| format!("{mark} {name} {}", percent(sum / all));
    let (shown, others): (Vec<_>, Vec<_>) = legend.iter().partition(|(name, ..)| drawn.contains(name));
    let mut legend = shown.into_iter().map(entry).collect::<Vec<_>>().join("; ");
    if !others.is_empty() {
        let rest: f64 = others.iter().map(|(.., sum)| sum).sum();
        let _ = write!(legend, "; others {}", percent(rest / all));
    }
    for line in wrap(&format!("{legend}; of the time of {}", rows(timeline)), width, "  ") {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn rows(timeline: &Timeline) -> String {
    plural(timeline.extent.ranks, "rank")
}

/// A mark for each function, and the sum of its shares: `.` for computing, `,` where that may be calls without times, `?` for what is not known, a letter of its
/// name for a function of MPI, those that take more time first.
fn marks(timeline: &Timeline) -> BTreeMap<&'static str, (char, f64)> {
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for row in &timeline.rows {
        let ranks = row.ranks.as_deref().map_or(1, members) as f64;
        for share in row.shares.iter().flatten() {
            *sums.entry(share.function).or_default() += ranks * share.share;
        }
    }
    let mut order: Vec<(&'static str, f64)> = sums.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut used: Vec<char> = Vec::new();
    let mut marks = BTreeMap::new();
    for (name, sum) in order {
        let letters = name.strip_prefix("MPI_").unwrap_or(name);
        let upper = letters.chars().take(1).map(|letter| letter.to_ascii_uppercase());
        let own = upper.chain(letters.chars().filter(char::is_ascii_alphabetic));
        let mark = match name {
            COMPUTE => '.',
            COMPUTE_OR_UNTIMED => ',',
            UNSAMPLED => '?',
            _ => own
                .chain('a'..='z')
                .chain('A'..='Z')
                .chain('0'..='9')
                .find(|mark| !used.contains(mark))
                .unwrap_or('*'),
        };
        used.push(mark);
        marks.insert(name, (mark, sum));
    }
    marks
}

/// Number of ranks in `0-3,8`.
fn members(ranks: &str) -> u64 {
    let of = |part: &str| match part.split_once('-') {
        Some((low, high)) => high.parse::<u64>().unwrap_or(0).saturating_sub(low.parse().unwrap_or(0)) + 1,
        None => 1,
    };
    ranks.split(',').map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_analysis::query::Extent;
    use ampl_analysis::query::timeline::Row;

    #[test]
    fn marks_are_distinct_and_the_largest_share_of_a_pixel_is_drawn() {
        let share = |function, share| Share { function, share };
        let shares = vec![
            vec![share("MPI_Send", 0.6), share(COMPUTE, 0.4)],
            vec![share(COMPUTE, 0.9), share("MPI_Ssend", 0.1)],
            vec![share("MPI_Ssend", 0.7), share("MPI_Send", 0.3)],
            vec![share(UNSAMPLED, 1.0)],
            Vec::new(),
        ];
        let timeline = Timeline {
            t0_ns: 0,
            pixel_ns: 1e9,
            rows: vec![Row { rank: 3, ranks: None, shares }],
            extent: Extent { ranks: 1, ..Extent::default() },
        };
        let text = text(&timeline, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "from 0 ns until 5 s, 1 s each; a mark is the function with the largest share");
        assert_eq!(lines[1], "         3 |S.s? ", "the last pixel has no share");
        // A sum of shares may be next to a whole number.
        let legend = text
            .lines()
            .skip(2)
            .collect::<Vec<_>>()
            .join(" ")
            .replace("25.0 %", "25 %")
            .replace("20.0 %", "20 %");
        let parts: Vec<&str> = legend.split("; ").collect();
        let expected = [". compute 32.5 %", "? unsampled 25 %", "S MPI_Send 22.5 %", "s MPI_Ssend 20 %"];
        assert_eq!(parts[..4], expected, "{text}");
        assert_eq!((members("0-3,8"), members("7")), (5, 1));
    }
}
