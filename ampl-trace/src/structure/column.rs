//! One value of every rank of a group, as runs of arithmetic progressions. Joining two columns takes time in
//! proportion to their runs.

/// Values in a row with equal differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Position behind the last, from the beginning of the column.
    end: u32,
    start: u64,
    step: u64,
}

/// Values by position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    runs: Vec<Run>,
}

impl Column {
    /// A column of `value`, so many times.
    pub fn constant(value: u64, times: u32) -> Self {
        Self { runs: (times > 0).then_some(Run { end: times, start: value, step: 0 }).into_iter().collect() }
    }

    /// Number of values.
    pub fn len(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    fn begin(&self, index: usize) -> u32 {
        index.checked_sub(1).map_or(0, |before| self.runs[before].end)
    }

    /// The value at `position`; 0 behind the last.
    pub fn value(&self, position: u32) -> u64 {
        let index = self.runs.partition_point(|run| run.end <= position);
        let Some(run) = self.runs.get(index) else { return 0 };
        run.start.wrapping_add(run.step.wrapping_mul(u64::from(position - self.begin(index))))
    }

    /// All values, in order.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.pieces().flat_map(|(length, start, step)| {
            (0..u64::from(length)).map(move |index| start.wrapping_add(step.wrapping_mul(index)))
        })
    }

    /// Length, first value and difference of every run.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let lengths = self.runs.iter().enumerate().map(|(index, run)| run.end - self.begin(index));
        lengths.zip(&self.runs).map(|(length, run)| (length, run.start, run.step))
    }

    /// Appends a run; it is joined with the last where they make one.
    pub fn append(&mut self, length: u32, start: u64, step: u64) {
        let Some(last) = self.runs.len().checked_sub(1) else {
            return self.runs.push(Run { end: length, start, step });
        };
        let begin = self.begin(last);
        let run = &mut self.runs[last];
        let have = run.end - begin;
        let end = run.end + length;
        let behind = |step: u64| run.start.wrapping_add(step.wrapping_mul(u64::from(have)));
        // A single value fits any difference.
        let joined = match (have, length) {
            (1, 1) => start.wrapping_sub(run.start),
            (1, _) => step,
            _ => run.step,
        };
        if behind(joined) == start && (length == 1 || step == joined) {
            let run = &mut self.runs[last];
            (run.end, run.step) = (end, joined);
        } else {
            self.runs.push(Run { end, start, step });
        }
    }

    /// Appends `value`.
    pub fn push(&mut self, value: u64) {
        self.append(1, value, 0);
    }
}
