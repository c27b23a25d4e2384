//! Windows that are closed and wait for the tree.

use std::collections::VecDeque;

use ampl_core::draw::Keep;
use ampl_core::units::WindowId;
use ampl_trace::cells::Cell;

/// A window that this rank has finished.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedWindow {
    /// Its number.
    pub window: WindowId,
    /// The last of as many windows as were closed together; as a rule, itself.
    pub last: WindowId,
    /// One cell per metric of the plan, added up over these windows.
    pub cells: Vec<Cell>,
    /// Draw of the window, and its probability.
    pub keep: Keep,
    /// Bytes of calls stored because this rank or a message partner was drawn; where that is decided later, bytes they
    /// would take if the window is kept.
    pub bytes: u64,
    /// Bytes kept since the window before, of any window.
    pub spent: u64,
    /// True where the window was summarised to its end; otherwise its cells mean nothing.
    pub measured: bool,
}

/// Closed windows that wait for the tree, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Closed(VecDeque<ClosedWindow>);

/// Most windows that wait; beyond, neighbours that were drawn alike are added up.
const WAITING: usize = 512;

impl Closed {
    /// Takes a window, or several that were closed together.
    pub fn leave(&mut self, next: ClosedWindow) {
        let waiting = self.0.len();
        match self.0.back_mut().filter(|_| waiting >= WAITING) {
            None => self.0.push_back(next),
            // Do not extend a range over a window that was left out: a range means that all its windows are there.
            Some(last)
                if last.keep == next.keep
                    && last.measured == next.measured
                    && last.last.next() == next.window =>
            {
                last.cells.iter_mut().zip(&next.cells).for_each(|(sum, cell)| sum.add(cell));
                last.last = next.last;
                last.bytes += next.bytes;
                last.spent += next.spent;
            }
            // The window is not reported then; the tree can detect that.
            Some(_) => {}
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives the oldest.
    pub fn take(&mut self) -> Option<ClosedWindow> {
        self.0.pop_front()
    }
}
