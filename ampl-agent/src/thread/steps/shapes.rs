//! Shapes of the searched sequence, and the functions on the way to their calls.

use std::hash::Hasher;

use ampl_core::message::StepCall;
use ampl_trace::loops::{Token, fold, raw_hashes};
use rustc_hash::FxHasher;

use super::{Place, Shape, Steps, Thread};

impl Thread {
    /// Functions that lead to the calls of `shape`, from the innermost outwards.
    pub(super) fn way(&self, shape: &Shape) -> Option<Vec<u64>> {
        let own = shape.function.into_iter().chain(shape.callers.iter().copied());
        (!shape.callers.is_empty()).then(|| own.collect())
    }

    /// Finds the meaning of terminals that have come since the last search.
    pub(super) fn learn_terminals(&self, steps: &mut Steps) {
        for terminal in steps.tokens.len()..self.signatures.len() {
            let Some((head, words)) = self.signatures.get(terminal) else { break };
            let (function, flags, way) = (head as u16, (head >> 16) as u8, (head >> 24) as u8);
            let site = (head >> 32) as u32;
            let token = Token::of_no_shape(function, flags);
            let token = token.unwrap_or_else(|| Token::Shape(self.shape(steps, function, site, way)));
            steps.tokens.push(token);
            steps.arguments.push(raw_hashes(function, flags, words));
        }
    }

    /// Number of the shape of calls of `function` from the site of that index that come by `way`.
    pub(super) fn shape(&self, steps: &mut Steps, function: u16, site: u32, way: u8) -> u32 {
        if let Some(&shape) = steps.known.get(&(function, site, way)) {
            return shape;
        }
        let place = self.place_of(steps, function, site);
        let frames = self.frames(site);
        let callers = match self.callers.get(&(site, way)) {
            Some(callers) => callers.clone(),
            None => frames.get(1..).unwrap_or_default().into(),
        };
        let shapes = &mut steps.shapes;
        let number = *steps.of_way.entry((place, callers)).or_insert_with_key(|(_, callers)| {
            let function = frames.first().and_then(|&inner| self.shared.function_around(inner));
            shapes.push(Shape { place, function, callers: callers.clone() });
            shapes.len() as u32 - 1
        });
        steps.known.insert((function, site, way), number);
        number
    }

    /// Number of the place of calls of `function` from the site of that index.
    fn place_of(&self, steps: &mut Steps, function: u16, site: u32) -> u32 {
        if let Some(&place) = steps.of_site.get(&(function, site)) {
            return place;
        }
        let call = StepCall { function, path: self.path_hash(&self.frames(site)) };
        let places = &mut steps.places;
        let number = *steps.of_call.entry(call).or_insert_with(|| {
            places.push(Place { call, sites: Vec::new() });
            places.len() as u32 - 1
        });
        places[number as usize].sites.push(site);
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
