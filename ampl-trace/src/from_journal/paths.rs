//! Call paths of a journal, and the list of sites that they become.

use std::collections::BTreeMap;

use ampl_core::config::MOST_FRAMES;
use rustc_hash::FxHashMap;

use crate::site::Site;

/// Module and offset.
type Frame = (u32, u64);

/// The paths met so far, from the call outwards, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub struct Paths {
    numbers: BTreeMap<Vec<Frame>, u32>,
}

impl Paths {
    /// The number of the site in the body of a record (index in the thread's table, then module and offset of each
    /// frame), with that index; `None` if the record is too short.
    pub fn take(&mut self, body: &[u64]) -> Option<(u32, u32)> {
        let (&index, frames) = body.split_first()?;
        let frames = frames.as_chunks::<2>().0.iter().take(MOST_FRAMES as usize);
        let path: Vec<Frame> = frames.map(|&[module, offset]| (module as u32, offset)).collect();
        let next = self.numbers.len() as u32;
        (!path.is_empty()).then(|| (index as u32, *self.numbers.entry(path).or_insert(next)))
    }

    /// As [`take`](Self::take), of a record that has the number of the way behind the index: number of the path with both.
    pub fn take_way(&mut self, body: &[u64]) -> Option<((u32, u32), u32)> {
        let (&[index, way], frames) = body.split_first_chunk()?;
        let path = [&[index][..], frames].concat();
        self.take(&path).map(|(index, number)| ((index, way as u32), number))
    }

    /// The sites by number, and behind them the callers of their functions: each once, in the order in which the sites
    /// before need them, so that few of them need words.
    pub fn sites(&self) -> Vec<Site> {
        let mut nodes: Vec<&[Frame]> = vec![&[]; self.numbers.len()];
        for (path, &number) in &self.numbers {
            nodes[number as usize] = path;
        }
        let mut known: FxHashMap<&[Frame], u32> = FxHashMap::default();
        let mut sites = Vec::with_capacity(nodes.len());
        while let Some((&(module, offset), rest)) = nodes.get(sites.len()).and_then(|path| path.split_first())
        {
            let mut caller = 0;
            if !rest.is_empty() {
                caller = *known.entry(rest).or_insert(nodes.len() as u32 + 1);
                if caller as usize > nodes.len() {
                    nodes.push(rest);
                }
            }
            sites.push(Site { module, offset, caller });
        }
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::call_path;
    use proptest::prelude::*;

    #[test]
    fn what_paths_share_is_there_once() {
        let mut paths = Paths::default();
        // Two calls in one function, which two others call.
        for (index, path) in [[1, 10, 20], [1, 11, 20], [2, 10, 20], [1, 10, 20]].iter().enumerate() {
            let body: Vec<u64> =
                std::iter::once(index as u64).chain(path.iter().flat_map(|&o| [0, o])).collect();
            assert_eq!(paths.take(&body), Some((index as u32, index as u32 % 3)));
        }
        let site = |(offset, caller)| Site { module: 0, offset, caller };
        assert_eq!(paths.sites(), [(1, 4), (1, 5), (2, 4), (10, 6), (11, 6), (20, 0)].map(site));
        assert_eq!((paths.take(&[]), paths.take(&[0]), paths.take(&[0, 1])), (None, None, None));
    }

    proptest! {
        #[test]
        fn every_path_comes_back(
            all in prop::collection::vec(prop::collection::vec((0u32..2, 0u64..3), 1..6), 0..20)
        ) {
            let mut paths = Paths::default();
            let mut numbers = Vec::new();
            for path in &all {
                let words = path.iter().flat_map(|&(module, offset)| [u64::from(module), offset]);
                let body: Vec<u64> = std::iter::once(7).chain(words).collect();
                numbers.push(paths.take(&body).unwrap().1);
            }
            let sites = paths.sites();
            for (path, number) in all.iter().zip(numbers) {
                let found: Vec<_> = call_path(&sites, number).map(|site| (site.module, site.offset)).collect();
                prop_assert_eq!(&found, path);
            }
        }
    }
}
