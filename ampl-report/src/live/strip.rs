//! Efficiencies by window as a row of blocks.

use ampl_analysis::efficiency::Row;
use ratatui::style::{Color, Style};
use ratatui::text::Span;

const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Sign of a window whose efficiency is not known.
const UNKNOWN: &str = "·";

/// Blocks of the last windows of `rows`, at most `width`: one each, from 0 at the bottom to 100 % at the top. Returns
/// the first window that is shown.
pub fn strip(rows: &[Row], width: usize) -> (Option<u64>, Vec<Span<'static>>) {
    let windows: Vec<(u64, Option<f64>)> =
        rows.iter().filter_map(|row| Some((row.window?, row.parallel))).collect();
    let Some(&(last, _)) = windows.last() else { return (None, Vec::new()) };
    let first = last.saturating_sub(width.saturating_sub(1) as u64).max(windows[0].0);
    let of = |window: u64| {
        let found = windows.binary_search_by_key(&window, |of| of.0).ok();
        found.and_then(|at| windows[at].1)
    };
    (Some(first), (first..=last).map(|window| block(of(window))).collect())
}

fn block(share: Option<f64>) -> Span<'static> {
    let Some(share) = share else { return Span::raw(UNKNOWN) };
    let step = ((share * 8.0).ceil() as usize).clamp(1, 8) - 1;
    // Colours that differ for those who cannot tell red from green.
    let colour = match share {
        share if share >= 0.8 => Color::Cyan,
        share if share >= 0.6 => Color::Yellow,
        _ => Color::Magenta,
    };
    Span::styled(BLOCKS[step], Style::new().fg(colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(share: Option<f64>) -> String {
        block(share).content.into_owned()
    }

    #[test]
    fn blocks_begin_at_zero() {
        let shares = [Some(0.0), Some(0.125), Some(0.13), Some(0.5), Some(0.99), Some(1.0), None];
        assert_eq!(shares.map(text).concat(), "▁▁▂▄██·");
    }
}
