//! Shapes of the searched sequence, and the ways their calls came by as far as sampled calls show them.

use std::hash::Hasher;

use ampl_core::message::StepCall;
use ampl_trace::loops::{Token, fold, raw_hashes};
use ampl_trace::totals::{FirstCalls, Turns};
use rustc_hash::FxHasher;

use super::{Shape, Steps, Thread};

impl Thread {
    /// Functions that lead to the calls of `shape`, from the innermost outwards.
    pub(super) fn way(&self, shape: &Shape) -> Option<Vec<u64>> {
        let mut way: Vec<u64> = shape.function.into_iter().collect();
        match &shape.callers[..] {
            [] => way.extend(&*self.ways.get(shape.sites.first()?)?.functions),
            callers => way.extend(callers),
        }
        Some(way)
    }

    /// First calls of `shape`, where they came from elsewhere than those behind them.
    pub(super) fn first_calls(&self, shape: &Shape) -> Option<FirstCalls> {
        let [site] = shape.sites[..] else { return None };
        self.ways.get(&site)?.first()
    }

    /// Ways that sampled calls of `shape` came by.
    pub(super) fn turns(&self, shape: &Shape) -> Turns {
        let [site] = shape.sites[..] else { return Turns::default() };
        self.ways.get(&site).map(|known| known.turns).unwrap_or_default()
    }

    /// Finds the meaning of terminals that have come since the last search.
    pub(super) fn learn_terminals(&self, steps: &mut Steps) {
        for terminal in steps.tokens.len()..self.signatures.len() {
            let Some((head, words)) = self.signatures.get(terminal) else { break };
            let (function, flags, site) = (head as u16, (head >> 16) as u8, (head >> 32) as u32);
            let token = Token::of_no_shape(function, flags);
            let token = token.unwrap_or_else(|| Token::Shape(self.shape(steps, function, site)));
            steps.tokens.push(token);
            steps.arguments.push(raw_hashes(function, flags, words));
        }
    }

    /// Number of the shape of calls of `function` from the site of that index.
    pub(super) fn shape(&self, steps: &mut Steps, function: u16, site: u32) -> u32 {
        if let Some(&shape) = steps.of_site.get(&(function, site)) {
            return shape;
        }
        let frames = self.frames(site);
        let call = StepCall { function, path: self.path_hash(&frames) };
        let shapes = &mut steps.shapes;
        let number = *steps.of_call.entry(call).or_insert_with(|| {
            let around = frames.first().and_then(|&inner| self.shared.function_around(inner));
            let callers = frames.get(1..).unwrap_or_default().into();
            shapes.push(Shape { call, sites: Vec::new(), function: around, callers });
            shapes.len() as u32 - 1
        });
        shapes[number as usize].sites.push(site);
        steps.of_site.insert((function, site), number);
        number
    }

    /// Return addresses of the path of the site of that index, without the repetitions of recursion; none where calls
    /// are not told apart by place.
    pub(super) fn frames(&self, site: u32) -> Vec<u64> {
        if !self.has_sites || site == 0 {
            return Vec::new();
        }
        let mut frames = self.paths.frames(self.sites.address(site)).into_vec();
        fold(&mut frames);
        frames
    }

    /// Hash of a path, the same in all processes that run the same code.
    pub(super) fn path_hash(&self, frames: &[u64]) -> u64 {
        let mut hasher = FxHasher::default();
        for &frame in frames {
            let (path, offset) = (self.shared.resolve)(frame);
            hasher.write(path.rsplit('/').next().unwrap_or(&path).as_bytes());
            hasher.write_u64(offset);
        }
        if frames.is_empty() { 0 } else { hasher.finish() }
    }
}
