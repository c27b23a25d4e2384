//! Windows that are decided after they are over.

use ampl_core::draw::Keep;
use ampl_core::units::WindowId;
use ampl_trace::record::{DECISION_KEPT, Kind, NO_STRATUM};

use super::Thread;
use crate::stream::CallTimes;
use crate::window_decisions::LateDraw;

impl Thread {
    /// Takes the decision about `window` and all older ones: draw and stratum, or `None` where the draw at its
    /// beginning holds. Writes it into the journal.
    pub fn judged(&mut self, window: WindowId, decided: Option<(Keep, u16)>) {
        match decided {
            Some((keep, stratum)) => self.decided(window, Some(keep), &[stratum.into()]),
            None => self.decided(window, None, &[]),
        }
    }

    /// True where windows that wait for their decision hardly leave room for others.
    pub fn is_crowded(&self) -> bool {
        self.stream.is_crowded()
    }

    /// Draws windows that are over by the directive that should have drawn them at their beginning, and that has come
    /// since.
    pub fn draw_late(&mut self) {
        while let Some((window, drawn)) = self.shared.drawn_late() {
            match drawn {
                Some(LateDraw { keep, stratum, update }) => {
                    self.decided(window, Some(keep), &[stratum.map_or(NO_STRATUM, u64::from), update]);
                }
                None => self.decided(window, None, &[]),
            }
        }
    }

    /// Takes a decision; `more` are the words of its record behind the draw and its probability.
    fn decided(&mut self, window: WindowId, keep: Option<Keep>, more: &[u64]) {
        let shared = self.shared.clone();
        let keep = shared.lock().decisions.judge(window, keep);
        if let Some(keep) = keep {
            let flags = if keep.kept { DECISION_KEPT } else { 0 };
            self.body.clear();
            self.body.extend([window.0, keep.probability.to_bits()]);
            self.body.extend(more);
            self.stream.record(Kind::Retrospective, flags, &self.body);
        }
    }

    /// Records a call for which the buffer has no room: the oldest windows are decided now.
    #[cold]
    pub(super) fn record_after_all(&mut self, call: &CallTimes) {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        let mut stored = self.stores;
        while stored && !self.stream.call(call) {
            let oldest = self.stream.oldest_buffered().unwrap_or(self.window);
            if oldest < self.window {
                shared.force(&mut open, oldest);
                self.stream.resolve(|window| open.decisions.of(window));
            } else {
                // The window alone is too large.
                let decided = shared.force(&mut open, self.window);
                stored = decided.or_else(|| open.decisions.of(self.window)).unwrap_or(false);
                self.stream.decide_open(stored);
                self.stores = stored;
                self.note_plain();
            }
        }
    }
}
