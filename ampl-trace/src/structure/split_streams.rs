//! Bytes of variable-length integers in two lanes: first bytes, and continuation bytes.
//!
//! Continuation bytes are the high part of a number, and mostly the same. Between first bytes they would make every
//! byte seem less likely than it is; apart they take next to nothing, and first bytes are predicted by first bytes
//! alone.

/// True where the number goes on behind the byte.
fn goes_on(byte: u8) -> bool {
    byte & 0x80 != 0
}

/// Any bytes, in two lanes.
pub fn split(bytes: &[u8]) -> [Vec<u8>; 2] {
    // Which lane is as good as chance: no branch may depend on it.
    let mut lanes = [vec![0; bytes.len()], vec![0; bytes.len()]];
    let (mut ends, mut lane) = ([0; 2], 0);
    for &byte in bytes {
        lanes[lane][ends[lane]] = byte;
        ends[lane] += 1;
        lane = usize::from(goes_on(byte));
    }
    lanes.iter_mut().zip(ends).for_each(|(lane, end)| lane.truncate(end));
    lanes
}

/// The bytes that [`split`] made these lanes of; `None` where it has not.
pub fn woven(lanes: [&[u8]; 2]) -> Option<Vec<u8>> {
    let mut left = lanes;
    let length = lanes[0].len() + lanes[1].len();
    let mut bytes = Vec::with_capacity(length);
    let mut lane = 0;
    while bytes.len() < length {
        let (&byte, rest) = left[lane].split_first()?;
        left[lane] = rest;
        bytes.push(byte);
        lane = usize::from(goes_on(byte));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            let [first, rest] = split(&bytes);
            prop_assert_eq!(woven([&first, &rest]), Some(bytes));
        }

        /// Lanes that nothing was split into are refused, or split again into the same.
        #[test]
        fn any_lanes_are_woven_or_refused(first: Vec<u8>, rest: Vec<u8>) {
            if let Some(bytes) = woven([&first, &rest]) {
                prop_assert_eq!(split(&bytes), [first, rest]);
            }
        }
    }
}
