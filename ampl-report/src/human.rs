//! Numbers as people read them.

use ampl_core::plain::steers;
use ampl_core::units::RankSet;

/// Longest text of a set of ranks in a sentence, bytes.
const MOST_OF_A_SET: usize = 60;

/// `nanos` with a unit, three significant digits: `412 ns`, `1.23 ms`, `61.5 s`.
pub fn duration(nanos: f64) -> String {
    let (scale, unit) = match nanos.abs() {
        size if size >= 999.5e6 => (1e9, "s"),
        size if size >= 999.5e3 => (1e6, "ms"),
        size if size >= 999.5 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", digits(nanos / scale))
}

/// `bytes` with a decimal unit: `17 B`, `1.23 MB`.
pub fn bytes(bytes: f64) -> String {
    let (scale, unit) = match bytes.abs() {
        size if size >= 999.5e9 => (1e12, "TB"),
        size if size >= 999.5e6 => (1e9, "GB"),
        size if size >= 999.5e3 => (1e6, "MB"),
        size if size >= 999.5 => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {unit}", digits(bytes / scale))
}

/// Three significant digits, without an exponent below a million million.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 1e-4 => 2 - size.log10().floor() as i32,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.*}", decimals as usize);
    // Whole numbers stay whole.
    if value == value.trunc() { format!("{value:.0}") } else { text }
}

/// `share` of one in percent: `41.2 %`.
pub fn percent(share: f64) -> String {
    // Rounding errors of zero.
    let share = if share.abs() < 1e-9 { 0.0 } else { share };
    format!("{} %", digits(100.0 * share))
}

/// `count` with its thousands apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let plain = count.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 rank`, `8 ranks`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// At most `width` characters of `text`, the end replaced by `…` where it is longer.
pub fn cut(text: &str, width: usize) -> String {
    match text.chars().count() {
        length if length <= width => text.to_owned(),
        _ => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// At most `width` characters of `text`, whole words; ` …` stands for the rest. A first word that is longer loses its
/// middle.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        if line.chars().count() + word.trim_end().chars().count() + 2 > width {
            break;
        }
        line += word;
    }
    match line.trim_end() {
        "" => middle(text.split(' ').next().unwrap_or_default(), width),
        line => format!("{line} …"),
    }
}

/// At most `width` characters of `text`: more of its end than of its beginning, and `…` between where it is longer.
pub fn middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 3, kept - kept / 3);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// `text` in lines of at most `width` characters, broken between words; all but the first begin with `indent`. A
/// longer word has a line of its own.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut is_empty = true;
    for word in text.split_inclusive(' ') {
        let full = |line: &String| line.chars().count() + word.trim_end().chars().count() > width;
        if lines.last().is_some_and(|line| !is_empty && full(line)) {
            lines.push(indent.to_owned());
        }
        lines.last_mut().expect("one at least").push_str(word);
        is_empty = false;
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// `text` as one word of a shell: quoted where it must be.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// `mpi.time of MPI_Send`; of whole windows, event `*`, the metric alone.
pub fn of_event(metric: &str, event: &str) -> String {
    if event == "*" { metric.to_owned() } else { format!("{metric} of {event}") }
}

/// The unit that values of a metric are printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// No unit.
    Plain,
}

impl Unit {
    /// The unit of the metric of that name.
    pub fn of(metric: &str) -> Self {
        match metric {
            "wall" | "perf.task-clock" | "perf.cpu-clock" => Self::Time,
            _ if metric.ends_with(".time") => Self::Time,
            _ if metric.starts_with("bytes.") => Self::Bytes,
            _ => Self::Plain,
        }
    }

    /// `value` in this unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Time => duration(value),
            Self::Bytes => bytes(value),
            Self::Plain => digits(value),
        }
    }
}

/// `rank 3`, or `2 ranks (0-1)`.
pub fn ranks(ranks: &RankSet) -> String {
    match ranks.len() {
        1 => format!("rank {ranks}"),
        several => format!("{} ({})", plural(several, "rank"), first(ranks)),
    }
}

/// `ranks`, or the first of them and `…`: a sentence about ten thousand names a few.
pub fn first(ranks: &RankSet) -> String {
    let text = ranks.to_string();
    if text.len() <= MOST_OF_A_SET {
        return text;
    }
    let end = text[..MOST_OF_A_SET].rfind(',').unwrap_or(MOST_OF_A_SET);
    format!("{},…", &text[..end])
}

/// `ranks 0-3,8`; `2,431 ranks (0-1,5-6,…)` where these are not all.
pub fn named(ranks: &RankSet) -> String {
    let text = first(ranks);
    match ranks.len() {
        1 => format!("rank {text}"),
        several if text.ends_with('…') => format!("{} ({text})", plural(several, "rank")),
        _ => format!("ranks {text}"),
    }
}

/// `text` with a capital.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// `text` of one line, which may be another's, without characters that steer a terminal.
pub fn plain(text: &str) -> String {
    text.replace(|letter| steers(letter) || letter.is_control(), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_a_few_of_many_ranks() {
        let every = |step: usize, end: u32| (0..end).step_by(step).collect::<RankSet>();
        assert_eq!(named(&every(1, 10_000)), "ranks 0-9999");
        assert_eq!(named(&every(5, 20)), "ranks 0,5,10,15");
        let many = "2,000 ranks (0,5,10,15,20,25,30,35,40,45,50,55,60,65,70,75,80,85,90,95,…)";
        assert_eq!((named(&every(5, 10_000)), ranks(&every(5, 10_000))), (many.into(), many.into()));
        assert_eq!(named(&every(1, 1)), "rank 0");
    }

    #[test]
    fn units_change_before_a_fourth_digit_appears() {
        for (nanos, text) in [
            (0.0, "0 ns"),
            (0.5, "0.500 ns"),
            (412.0, "412 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 us"),
            (1234.0, "1.23 us"),
            (12_345_678.0, "12.3 ms"),
            (999_500_000.0, "1.00 s"),
            (3.6e12, "3600 s"),
            (-1500.0, "-1.50 us"),
        ] {
            assert_eq!(duration(nanos), text);
        }
        assert_eq!((bytes(17.0), bytes(1_234_000.0)), ("17 B".into(), "1.23 MB".into()));
        assert_eq!(
            (percent(0.412), percent(1.0), percent(0.000_31)),
            ("41.2 %".into(), "100 %".into(), "0.0310 %".into())
        );
        assert_eq!(digits(1e-9), "1.0e-9");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!((fit("one two", 7), fit("one two three", 9)), ("one two".into(), "one two …".into()));
        assert_eq!((fit("one two three", 8), fit("abcdefgh ij", 5)), ("one …".into(), "a…fgh".into()));
        assert_eq!((middle("abcdefgh", 8), middle("abcdefghi", 7)), ("abcdefgh".into(), "ab…fghi".into()));
        assert_eq!(wrap("one two three", 7, "  "), ["one two", "  three"]);
        assert_eq!(wrap("one elephantine three", 7, " "), ["one", " elephantine", " three"]);
        assert_eq!(wrap("", 7, " "), [""]);
    }

    #[test]
    fn counts_and_words() {
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!((plural(1, "rank"), plural(8, "rank")), ("1 rank".into(), "8 ranks".into()));
        assert_eq!((cut("abcd", 4), cut("abcde", 4)), ("abcd".into(), "abc…".into()));
        let words = ["/tmp/run-1", "it's", "", "a b"].map(shell_word);
        assert_eq!(words, ["/tmp/run-1", "'it'\\''s'", "''", "'a b'"]);
        assert_eq!(Unit::of("mpi.time"), Unit::Time);
        assert_eq!((Unit::of("perf.task-clock"), Unit::of("perf.cycles")), (Unit::Time, Unit::Plain));
        assert_eq!(Unit::of("bytes.sent").text(2000.0), "2 kB");
        assert_eq!(Unit::of("calls").text(12.345), "12.3");
    }
}
