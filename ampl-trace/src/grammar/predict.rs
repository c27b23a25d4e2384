//! Follows a known loop: expects the last rule once more and only counts.

use super::arena::{NIL, rule_of};
use super::engine::Engine;

/// A rule that is being followed.
#[derive(Clone, Debug)]
struct Frame {
    rule: usize,
    /// The position reached.
    at: u32,
    /// Number of times that the rule at that position has been completed.
    done: u64,
    /// Index in [`Cursor::changes`] from which this expansion's counts are.
    base: usize,
}

/// Position of the sequence in a rule that is expected; empty while none is.
///
/// Complete parts inside the outermost rule are in the counts of their rules already; the rest is here.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    frames: Vec<Frame>,
    /// Counts that differ from those of the expansion before, by position, frame by frame.
    changes: Vec<(u32, u64)>,
}

impl Cursor {
    /// Appends a run to the sequence; its terminal is not that of the run before.
    #[inline]
    pub fn feed(&mut self, engine: &mut Engine, terminal: u32, count: u64) {
        if !self.frames.is_empty() && self.follow(engine, terminal, count) {
            return;
        }
        if self.start(engine, terminal) {
            let followed = self.follow(engine, terminal, count);
            debug_assert!(followed, "it begins so");
        } else {
            engine.append(terminal << 1, count);
        }
    }

    /// Expects the innermost rule at the end of the sequence that begins with `terminal`.
    fn start(&mut self, engine: &Engine, terminal: u32) -> bool {
        let arena = &engine.arena;
        let (mut at, mut expected) = (arena.rules[0].last, None);
        while at != NIL
            && let Some(rule) = rule_of(arena.at(at).symbol)
        {
            if arena.rules[rule].head == terminal {
                expected = Some(rule);
            }
            at = arena.rules[rule].last;
        }
        // Goes on with the last run, which may be so behind a restored grammar.
        if at != NIL && arena.at(at).symbol == terminal << 1 {
            return false;
        }
        if let Some(rule) = expected {
            self.frames.push(Frame { rule, at: arena.rules[rule].first, done: 0, base: 0 });
        }
        expected.is_some()
    }

    /// Follows a run; false if it is not the expected one, and then nothing is expected any more.
    fn follow(&mut self, engine: &mut Engine, terminal: u32, count: u64) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            let position = engine.arena.at(frame.at);
            let Some(rule) = rule_of(position.symbol) else {
                if position.symbol >> 1 != terminal {
                    break;
                }
                self.count(engine, count);
                return true;
            };
            let head =
                |symbol: u32| rule_of(symbol).map_or(symbol >> 1, |rule| engine.arena.rules[rule].head);
            let again = head(position.symbol) == terminal;
            // If both fit: as often as the last time.
            let on = || {
                position.next != NIL
                    && frame.done >= position.value
                    && head(engine.arena.at(position.next).symbol) == terminal
            };
            if again && (frame.done == 0 || !on()) {
                let (at, base) = (engine.arena.rules[rule].first, self.changes.len());
                self.frames.push(Frame { rule, at, done: 0, base });
            } else if frame.done > 0 {
                let done = frame.done;
                self.count(engine, done);
            } else {
                break;
            }
        }
        self.give_up(engine);
        false
    }

    /// Leaves the position, whose count is known.
    #[inline]
    fn count(&mut self, engine: &mut Engine, count: u64) {
        let Some(frame) = self.frames.last_mut() else { return };
        let position = engine.arena.at(frame.at);
        if position.value != count {
            self.changes.push((frame.at, count));
        }
        if position.next != NIL {
            frame.at = position.next;
            frame.done = 0;
            return;
        }
        let (rule, base) = (frame.rule, frame.base);
        let expansions = engine.arena.rules[rule].expansions;
        engine.arena.rules[rule].expansions += 1;
        for (at, count) in self.changes.drain(base..) {
            engine.arena.record(at, count, expansions);
        }
        self.frames.pop();
        match self.frames.last_mut() {
            Some(outer) => outer.done += 1,
            None => engine.append((rule as u32) << 1 | 1, 1),
        }
    }

    /// Appends the part of the expected rule so far; nothing is expected then.
    pub fn give_up(&mut self, engine: &mut Engine) {
        if self.frames.is_empty() {
            return;
        }
        let mut symbols = Vec::new();
        self.dump(engine, |symbol, count| symbols.push((symbol, count)));
        self.frames.clear();
        self.changes.clear();
        engine.append_all(&symbols);
    }

    /// Passes the part of the expected rule so far, which is not in the sequence yet, to `take`.
    pub fn dump(&self, engine: &Engine, mut take: impl FnMut(u32, u64)) {
        let arena = &engine.arena;
        let mut changes = self.changes.iter().copied().peekable();
        for frame in &self.frames {
            let mut at = arena.rules[frame.rule].first;
            while at != frame.at {
                let position = arena.at(at);
                let changed = changes.next_if(|&(changed, _)| changed == at);
                take(position.symbol, changed.map_or(position.value, |(_, count)| count));
                at = position.next;
            }
            if frame.done > 0 {
                take(arena.at(at).symbol, frame.done);
            }
        }
    }
}
