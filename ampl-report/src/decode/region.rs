//! An entry or exit of a region as a line.

use ampl_reader::{Edge, RegionEvent};

/// `     17  w2     +0.104213881 s         -  enter TIMESTEP`
pub fn text(name: &str, edge: Edge, event: &RegionEvent) -> String {
    let window = event.timed.map_or("-".into(), |moment| format!("w{}", moment.window));
    let at = event.timed.map_or("-".into(), |moment| super::moment(moment.at_ns));
    let mut line = format!("{:>7}  {window:<5} {at:>15}  {:>8}  {} {name}", event.seq, "-", edge.name());
    if event.unseen {
        line += "  (some time before)";
    }
    if event.thread != 0 {
        line += &format!("  thread {}", event.thread);
    }
    line
}

#[cfg(test)]
mod tests {
    use ampl_reader::{Moment, Region};

    use super::*;

    fn event(timed: Option<Moment>, unseen: bool, thread: u32) -> RegionEvent {
        RegionEvent { seq: 17, thread, region: Region::Named("STEP".into()), timed, unseen, terminal: 3 }
    }

    #[test]
    fn text_shows_the_same() {
        let timed = Some(Moment { window: 2, at_ns: 104_213_881 });
        let line = text("STEP", Edge::Enter, &event(timed, false, 0));
        assert_eq!(line, "     17  w2     +0.104213881 s         -  enter STEP");
        let line = text("STEP", Edge::Exit, &event(None, true, 1));
        assert!(line.ends_with("-  exit STEP  (some time before)  thread 1"), "{line}");
    }
}
