//! Messages of the tree that are sent together, because the edge was busy.

/// Bytes before each message in a batch: its length. The last is followed by a length of 0.
pub const LENGTH: usize = 4;

/// Bytes of a batch for messages of at most `message` bytes: two of any kind fit, and as many small ones as windows
/// gather between two polls.
pub const fn room(message: usize) -> usize {
    let two = 2 * (LENGTH + message) + LENGTH;
    if two > 1 << 16 { two } else { 1 << 16 }
}

/// The messages in a batch.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (message, behind) = rest.split_at_checked(length).filter(|_| length > 0)?;
        bytes = behind;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_together_comes_apart() {
        let together = |parts: &[&[u8]]| {
            let with_length = |part: &&[u8]| [&(part.len() as u32).to_le_bytes()[..], part].concat();
            [parts.iter().flat_map(with_length).collect(), vec![0; LENGTH]].concat()
        };
        for parts in [&[][..], &[&b"one"[..]], &[b"one", b"two messages", &[0xFF; 9]]] {
            // What an earlier, longer one has left lies behind it.
            let bytes = [together(parts), together(&[b"left over"])].concat();
            assert_eq!(messages(&bytes).collect::<Vec<_>>(), parts);
        }
        // Cut short, or never written by us.
        assert_eq!(messages(&together(&[b"one", b"two"])[..12]).count(), 1);
        assert_eq!(messages(&[0xFF; 64]).count() + messages(&[1, 0]).count(), 0);
        for message in [0, 100, 5000, 1 << 20] {
            assert!(room(message) >= 2 * (LENGTH + message) + LENGTH);
        }
    }
}
