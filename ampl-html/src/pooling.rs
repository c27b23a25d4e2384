//! Joining neighbours, where there are more ranks or windows than a page can show.

use std::ops::Range;

/// Parts of `0..count`, at most `most` of nearly equal size, in order.
pub fn parts(count: usize, most: usize) -> Vec<Range<usize>> {
    let parts = count.min(most.max(1));
    (0..parts).map(|part| part * count / parts..(part + 1) * count / parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (count, most) in [(0, 5), (3, 5), (5, 5), (6, 5), (1000, 7)] {
            let found = parts(count, most);
            assert!(found.len() <= most && found.iter().all(|part| !part.is_empty()));
            assert!(found.iter().cloned().flatten().eq(0..count), "{count} {most}");
        }
    }
}
