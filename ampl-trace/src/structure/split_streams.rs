//! Bytes of variable-length integers in two lanes: those that begin one, and those that go on with it.
//!
//! What goes on is the high part of a number, and mostly the same. Between the others it would make every byte look less
//! likely than it is; apart it takes next to nothing, and those that begin a number are told from one another by what they
//! are alone.

/// Whether a byte says that the number goes on behind it.
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

/// What [`split`] made these lanes of; `None` where it has not.
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
