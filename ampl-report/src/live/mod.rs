//! A run under way as lines for a terminal, or as plain text.

mod lines;
mod strip;
#[cfg(test)]
mod tests;

use std::path::Path;

use ampl_analysis::live::{Live, State};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::human::shell_word;

/// A reading of a run, with what is shown beside it.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The run.
    pub live: &'a Live,
    /// Facts about the run: label and text.
    pub facts: &'a [(&'static str, String)],
    /// Its directory.
    pub run: &'a Path,
    /// Hosts whose journals are not on this node, and their ranks.
    pub elsewhere: &'a [(String, String)],
    /// Parts that could not be read.
    pub damage: &'a [String],
    /// Remark about the reading itself.
    pub note: Option<&'a str>,
}

impl View<'_> {
    /// The state of the job in a line, where it does not run.
    pub fn ended(&self) -> Option<String> {
        let run = shell_word(&self.run.display().to_string());
        match self.live.state {
            State::Runs => None,
            State::Complete => Some(format!("the job has ended: ampl info {run} has its summary")),
            State::Died => Some(format!(
                "the launcher has returned and there is no whole trace: ampl info {run} has what is left"
            )),
            State::NoProcess => {
                Some("no process of the job runs on this node: it has ended, or runs on others".into())
            }
        }
    }
}

/// Lines of the whole view for `width` columns, without styles.
pub fn text(view: &View<'_>, width: usize) -> String {
    let all = lines::header(view, width).into_iter().chain(lines::body(view, width));
    let plain = |line: Line<'_>| {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        // Names of the program are no commands for a terminal.
        text.chars().filter(|letter| !letter.is_control()).collect::<String>().trim_end().to_owned() + "\n"
    };
    all.map(plain).collect()
}

/// Draws the view, scrolled down by `scroll` lines; returns the most lines that can be scrolled.
pub fn draw(frame: &mut Frame<'_>, view: &View<'_>, scroll: usize) -> usize {
    let width = usize::from(frame.area().width);
    let (header, body) = (lines::header(view, width), lines::body(view, width));
    let parts = Layout::vertical([
        Constraint::Length(u16::try_from(header.len()).unwrap_or(u16::MAX)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [top, middle, bottom] = parts.areas(frame.area());
    let most = body.len().saturating_sub(usize::from(middle.height));
    let from = scroll.min(most);
    frame.render_widget(Paragraph::new(header), top);
    let shown: Vec<Line<'_>> = body.into_iter().skip(from).take(usize::from(middle.height)).collect();
    frame.render_widget(Paragraph::new(shown), middle);
    let keys = match most {
        0 => " q leaves; the job goes on".to_owned(),
        _ => format!(" q leaves; the job goes on   arrows scroll ({} more lines)", most - from),
    };
    frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), bottom);
    most
}
