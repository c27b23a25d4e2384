//! Call paths without the repetitions of recursion.

/// Longest cycle of functions that call each other.
const LONGEST_RECURSION: usize = 8;

/// Leaves one of the repetitions that recursion makes in a path.
pub fn fold<T: PartialEq>(path: &mut Vec<T>) {
    for length in 1..=LONGEST_RECURSION {
        let mut at = 0;
        while at + 2 * length <= path.len() {
            let is_again = path[at..at + length] == path[at + length..at + 2 * length];
            if is_again {
                path.drain(at..at + length);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_leaves_one_repetition() {
        let folded = |path: &[u32]| {
            let mut path = path.to_vec();
            fold(&mut path);
            path
        };
        assert_eq!(folded(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(folded(&[1, 2, 2, 2, 3]), [1, 2, 3]);
        assert_eq!(folded(&[1, 2, 3, 2, 3, 2, 3, 4]), [1, 2, 3, 4]);
        // As the depth of recursion grows, the path stays.
        assert_eq!(folded(&[9, 5, 6, 5, 6, 1]), folded(&[9, 5, 6, 1]));
        assert!(folded(&[]).is_empty());
    }
}
