//! Stretches of time for which a run has no times of calls.

use ampl_trace::model::WindowSummary;

/// Windows in a row whose times are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// End, nanoseconds since T0.
    pub end_ns: i64,
    /// Number of the first window.
    pub first: u64,
    /// Number of the last window.
    pub last: u64,
}

/// Stretches of `windows` whose times are not kept.
pub fn not_kept<'a>(windows: impl Iterator<Item = &'a WindowSummary>) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for window in windows.filter(|window| !window.kept) {
        let (start_ns, end_ns, number) = (window.start_ns, window.end_ns, window.window);
        match found.last_mut() {
            Some(stretch) if stretch.end_ns == start_ns => (stretch.end_ns, stretch.last) = (end_ns, number),
            _ => found.push(Stretch { start_ns, end_ns, first: number, last: number }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_in_a_row_are_one_stretch() {
        let window = |number: u64, kept| WindowSummary {
            window: number,
            start_ns: number as i64 * 10,
            end_ns: number as i64 * 10 + 10,
            kept,
            ..WindowSummary::default()
        };
        let windows =
            [window(0, false), window(1, false), window(2, true), window(3, false), window(5, false)];
        let found: Vec<_> =
            not_kept(windows.iter()).iter().map(|stretch| (stretch.first, stretch.last)).collect();
        assert_eq!(found, [(0, 1), (3, 3), (5, 5)]);
    }
}
