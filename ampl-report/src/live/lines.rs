//! The lines of the view.

use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency::Basis;
use ampl_analysis::live::{Awaited, State};
use ampl_core::units::RankSet;
use ampl_reader::model::EndBasis;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::View;
use super::strip::strip;
use crate::decisions::{kept, reason};
use crate::human::{bytes, count, cut, duration, fit, percent, plural, wrap};
use crate::summary::places::together;

/// Columns of labels.
const LABEL: usize = 16;
/// Characters of a list of ranks.
const RANKS: usize = 40;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);

/// The command, the state of the job, and what makes the view unreliable.
pub fn header(view: &View<'_>, width: usize) -> Vec<Line<'static>> {
    let run = view.run.display().to_string();
    let mut all = vec![Line::styled(fit(&format!("ampl top: {run}"), width), BOLD)];
    let since = duration(view.live.elapsed_ns as f64);
    let state = match (view.live.state, view.live.basis) {
        (State::Runs, _) => format!("running for {since}"),
        (State::Complete, _) => format!("ended after {since}"),
        (_, Some(EndBasis::LastCall)) => format!("last call after {since}"),
        _ => format!("ended after {since}, without a whole trace"),
    };
    let ranks = plural(view.live.ranks.into(), "rank");
    let calls = format!("{} MPI calls", count(view.live.calls));
    let rest = view.facts.iter().map(|(_, text)| text.as_str());
    let words: Vec<&str> = [state.as_str(), &ranks, &calls].into_iter().chain(rest).collect();
    all.extend(wrap(&words.join(" · "), width, "  ").into_iter().map(Line::raw));
    let alarms = [view.ended(), view.note.map(str::to_owned)];
    for text in alarms.into_iter().flatten() {
        all.extend(wrap(&text, width, "  ").into_iter().map(|line| Line::styled(line, ALARM)));
    }
    all
}

/// Everything below the header.
pub fn body(view: &View<'_>, width: usize) -> Vec<Line<'static>> {
    let mut out = Lines { all: Vec::new(), width };
    if !view.live.rows.is_empty() {
        waits(&mut out, view);
        states(&mut out, view);
    }
    unheard(&mut out, view);
    efficiency(&mut out, view);
    sample(&mut out, view);
    rates(&mut out, view);
    out.all
}

struct Lines {
    all: Vec<Line<'static>>,
    width: usize,
}

impl Lines {
    fn title(&mut self, text: &str) {
        self.all.push(Line::default());
        self.all.push(Line::styled(text.to_owned(), BOLD));
    }

    /// A text with its label, over several lines where it is long.
    fn field(&mut self, label: &str, text: &str, style: Style) {
        let width = self.width.saturating_sub(LABEL + 3).max(20);
        for (number, line) in wrap(text, width, "  ").into_iter().enumerate() {
            let label = if number == 0 { cut(label, LABEL) } else { String::new() };
            let label = Span::raw(format!("  {label:<LABEL$} "));
            self.all.push(Line::from(vec![label, Span::styled(line, style)]));
        }
    }
}

/// `rank 3`, `ranks 0-2`, or `40 ranks (0,2,4,…)` where the list is long.
fn named(ranks: &RankSet) -> String {
    let list = ranks.to_string();
    match ranks.len() {
        1 => format!("rank {list}"),
        _ if list.len() <= 12 => format!("ranks {list}"),
        some => format!("{} ({})", plural(some, "rank"), cut(&list, RANKS)),
    }
}

fn waits(out: &mut Lines, view: &View<'_>) {
    let live = view.live;
    let waiting = &live.waiting;
    let title = match live.basis {
        Some(EndBasis::Now) => "Waiting (in one call for a second or longer)",
        _ => "Waiting at the end (in one call for a second or longer)",
    };
    out.title(title);
    if waiting.ranks.is_empty() {
        return out.field("nobody", "no rank has been in one call for a second", Style::new());
    }
    for Awaited { ranks, row, by } in waiting.awaited.iter().take(4) {
        let state = match row.and_then(|row| live.rows.get(row)) {
            Some(row) => {
                let one = together(std::slice::from_ref(row));
                one.first()
                    .map(|place| place.text(live.basis.unwrap_or(EndBasis::LastCall)))
                    .unwrap_or_default()
            }
            None => "nothing of which can be read here".into(),
        };
        let wait = if by.len() == 1 { "waits" } else { "wait" };
        out.field(&named(ranks), &state, ALARM);
        out.field("", &format!("{} {wait} for that", named(by)), Style::new());
    }
    if waiting.awaited.len() > 4 {
        out.field("", &format!("{} more places are waited for", waiting.awaited.len() - 4), Style::new());
    }
    if !waiting.circle.is_empty() {
        let text = match waiting.circle.len() {
            1 => "waits for itself alone".into(),
            _ => "wait for each other, and for no other rank".to_owned(),
        };
        out.field(&named(&waiting.circle), &text, ALARM);
        if !waiting.circle_by.is_empty() {
            let wait = if waiting.circle_by.len() == 1 { "waits" } else { "wait" };
            out.field("", &format!("{} {wait} for that", named(&waiting.circle_by)), Style::new());
        }
    }
    if !waiting.open.is_empty() {
        let text =
            "for a rank that is not known: any source, several requests, or a communicator of unknown ranks";
        let wait = if waiting.open.len() == 1 { "waits" } else { "wait" };
        out.field(&named(&waiting.open), &format!("{wait} {text}"), Style::new());
    }
}

fn states(out: &mut Lines, view: &View<'_>) {
    out.title("Ranks by state");
    let basis = view.live.basis.unwrap_or(EndBasis::LastCall);
    for place in together(&view.live.rows) {
        let style = if place.is_process_lost() { ALARM } else { Style::new() };
        let text = match place.members.len() {
            1..=3 => place.text(basis),
            some => format!("{}: {}", plural(some, "rank"), place.text(basis)),
        };
        let list = cut(&place.members.to_string(), LABEL);
        out.field(&list, &text, style);
    }
}

fn unheard(out: &mut Lines, view: &View<'_>) {
    let live = view.live;
    if live.absent.is_empty() && live.gone.is_empty() && view.damage.is_empty() {
        return;
    }
    out.title("Not heard from");
    if !live.absent.is_empty() {
        let text = match view.elsewhere {
            [] => "left nothing that can be read: they have not left MPI_Init, or run on other hosts".into(),
            hosts => {
                let hosts: Vec<String> =
                    hosts.iter().take(4).map(|(host, ranks)| format!("{ranks} on {host}")).collect();
                format!("their journals are on other hosts ({}): run ampl top there", hosts.join("; "))
            }
        };
        out.field(&named(&live.absent), &text, ALARM);
    }
    if !live.gone.is_empty() {
        out.field(&named(&live.gone), "the process is gone, and the job runs", ALARM);
    }
    for damage in view.damage.iter().take(3) {
        out.field("cannot be read", damage, ALARM);
    }
}

fn efficiency(out: &mut Lines, view: &View<'_>) {
    let rows = &view.live.efficiency;
    let (first, blocks) = strip(rows, out.width.saturating_sub(LABEL + 3));
    let (Some(first), Some(last)) = (first, rows.iter().filter_map(|row| row.window).next_back()) else {
        return;
    };
    let basis = match rows.first().map(|run| run.basis) {
        Some(Basis::Sampled) => "sampled",
        Some(Basis::Totals) => "totals by function",
        _ => "census",
    };
    out.title(&format!(
        "Parallel efficiency by window (share of the ranks' time that computes; {basis}, scale 0 to 100 %)"
    ));
    let mut spans = vec![Span::raw(format!("  {:<LABEL$} ", format!("{first} to {last}")))];
    spans.extend(blocks);
    out.all.push(Line::from(spans));
    let known = rows.iter().rev().find(|row| row.window.is_some() && row.parallel.is_some());
    match known {
        Some(row) => {
            let shares = [("load balance", row.load_balance), ("communication", row.communication)];
            let shares =
                shares.iter().filter_map(|(name, share)| Some(format!("{name} {}", percent((*share)?))));
            let slowest =
                row.slowest.as_ref().map(|of| format!("most compute time: rank {} on {}", of.rank, of.host));
            let words: Vec<String> =
                [row.parallel.map(percent)].into_iter().flatten().chain(shares).chain(slowest).collect();
            out.field(&format!("window {}", row.window.unwrap_or(0)), &words.join(", "), Style::new());
        }
        None => out.field("", "not known: no window was measured by all ranks", Style::new()),
    }
    if let Some(run) = rows.first().filter(|run| run.window.is_none())
        && let Some(parallel) = run.parallel
    {
        out.field("so far", &format!("{}{}", percent(parallel), extent(view)), Style::new());
    }
}

/// Words about the part of the run that a number rests on; none where it is all.
fn extent(view: &View<'_>) -> String {
    match view.live.coverage() {
        Some(part) if part.extent() != Extent::Whole => {
            format!(" ({} of the ranks' time is measured)", percent(part.share))
        }
        _ => String::new(),
    }
}

fn sample(out: &mut Lines, view: &View<'_>) {
    let live = view.live;
    let [kept_windows, windows] = live.kept_windows;
    if live.decisions.is_empty() && windows == 0 {
        return;
    }
    out.title("Sample");
    for decision in live.decisions.iter().take(6) {
        let absolute = live.absolute.contains(&decision.group);
        let text = format!(
            "{} ranks from window {}: {}",
            kept(decision),
            decision.window,
            reason(decision, absolute)
        );
        out.field(&format!("group {}", decision.group), &text, Style::new());
    }
    if live.decisions.len() > 6 {
        out.field("", &format!("{} more groups: see ampl decisions", live.decisions.len() - 6), Style::new());
    }
    if live.decisions.is_empty() {
        out.field("groups", "no decision yet", Style::new());
    }
    let text = format!("times of {} of {} rank-windows", count(kept_windows), count(windows));
    out.field("kept so far", &text, Style::new());
}

fn rates(out: &mut Lines, view: &View<'_>) {
    let live = view.live;
    out.title("Rates");
    let sent = match live.sent {
        Some(sent) => {
            let ago = duration((live.elapsed_ns - sent.end_ns).max(0) as f64);
            let rate = bytes(sent.per_second);
            format!("{rate}/s by all ranks in window {}, which ended {ago} ago (census)", sent.window)
        }
        None => "not known: no window was closed by all ranks".into(),
    };
    out.field("bytes sent", &sent, Style::new());
    let mut stored = bytes(live.trace_bytes as f64);
    if live.state == State::Runs {
        stored += " if the job ended now";
    }
    if live.elapsed_ns > 0 {
        stored += &format!(", {}/s", bytes(live.trace_bytes as f64 / (live.elapsed_ns as f64 / 1e9)));
    }
    out.field("trace", &stored, Style::new());
    let own = &live.overhead;
    let mut text = match own.windows_share {
        Some(share) => format!("{} of the ranks' time since MPI_Init", percent(share)),
        None => "not known".into(),
    };
    if let Some(per_call) = own.per_call_ns {
        text += &format!(", {} per call", duration(per_call));
    }
    if let Some(step) = own.steps.last() {
        let steps = plural(own.steps.len() as u64, "step");
        text += &format!("; {steps}, the last to '{}' on rank {}", step.level.name(), step.rank);
    }
    out.field("ampl's own time", &text, Style::new());
}
