//! Moments in a message: only what there is.
//!
//! Most are of one rank, so without deviations, or of none.

use super::MessageError;
use super::wire::{Reader, Writer};
use crate::stats::Moments;

/// Numbers of which there may be any.
const NUMBERS: usize = 11;

/// Bytes of moments at most.
pub(super) const MOST: usize = 2 + NUMBERS * 8;

/// Bytes of moments at least.
pub(super) const LEAST: usize = 2;

/// All numbers, as bits.
fn numbers(moments: &Moments) -> [u64; NUMBERS] {
    let Moments { ranks, n, y, cyy, cyn, cnn, cy3, cy4, q, min, max } = *moments;
    let [y, cyy, cyn, cnn, cy3, cy4, q, min, max] =
        [y, cyy, cyn, cnn, cy3, cy4, q, min, max].map(f64::to_bits);
    [ranks, n, y, cyy, cyn, cnn, cy3, cy4, q, min, max]
}

/// Appends a bit for each number that is there, then these numbers.
pub(super) fn encode(moments: &Moments, to: &mut Writer) {
    let (all, none) = (numbers(moments), numbers(&Moments::default()));
    // Most are of metrics that the policy does not read, or of windows that are not kept.
    if all == none {
        return to.u16(0);
    }
    let (mut set, mut bytes, mut end) = (0u16, [0; MOST], LEAST);
    for (place, number) in all.into_iter().enumerate().filter(|&(place, number)| number != none[place]) {
        set |= 1 << place;
        bytes[end..end + 8].copy_from_slice(&number.to_le_bytes());
        end += 8;
    }
    bytes[..LEAST].copy_from_slice(&set.to_le_bytes());
    to.bytes(&bytes[..end]);
}

/// Moments from bytes of any number.
pub(super) fn decode(from: &mut Reader) -> Result<Moments, MessageError> {
    from.expect_some(LEAST)?;
    let set = from.u16();
    if set == 0 {
        return Ok(Moments::default());
    }
    from.expect_some(8 * set.count_ones() as usize)?;
    let wrong = MessageError::Value { field: "moments" };
    let mut all = numbers(&Moments::default());
    for (_, number) in all.iter_mut().enumerate().filter(|(place, _)| set >> place & 1 == 1) {
        let value = from.u64();
        // What is as it would be without being told has one form, too.
        if std::mem::replace(number, value) == value {
            return Err(wrong);
        }
    }
    let [ranks, n, y, cyy, cyn, cnn, cy3, cy4, q, min, max] = all;
    let [y, cyy, cyn, cnn, cy3, cy4, q, min, max] =
        [y, cyy, cyn, cnn, cy3, cy4, q, min, max].map(f64::from_bits);
    let sums = [y, cyy, cyn, cnn, cy3, cy4, q];
    if set >> NUMBERS != 0 || sums.iter().any(|sum| !sum.is_finite()) || min.is_nan() || max.is_nan() {
        return Err(wrong);
    }
    Ok(Moments { ranks, n, y, cyy, cyn, cnn, cy3, cy4, q, min, max })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(moments: &Moments) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(moments, &mut Writer(&mut bytes));
        bytes
    }

    #[test]
    fn nobody_takes_two_bytes_and_one_rank_half_of_what_many_do() {
        assert_eq!(encoded(&Moments::default()), [0; LEAST]);
        let one = Moments::of_rank(3, 6.0, 14.0, 1.0, 3.0);
        let many = [2.5, 7.0, 1.0].map(|y| Moments::of_rank(y as u64, y, y * y, y, y));
        let many = many.iter().fold(one, Moments::merged);
        assert_eq!((encoded(&one).len(), encoded(&many).len()), (2 + 6 * 8, MOST));
    }

    proptest! {
        #[test]
        fn what_is_sent_comes_back_in_one_form(
            some in prop::collection::vec((1..9u64, 0..5u64, -9.0..9.0f64), 0..4),
            bytes in prop::collection::vec(any::<u8>(), 0..MOST),
            set in 0..1u16 << NUMBERS,
        ) {
            let one = |&(ranks, n, y): &(u64, u64, f64)| Moments::of_rank_windows(ranks, n, y, y * y, y, y);
            let moments = some.iter().map(one).fold(Moments::default(), |sum, one| sum.merged(&one));
            let sent = encoded(&moments);
            prop_assert_eq!(decode(&mut Reader::new(&sent, 0).unwrap()), Ok(moments));
            for cut in 0..sent.len() {
                prop_assert!(decode(&mut Reader::new(&sent[..cut], 0).unwrap()).is_err());
            }
            for any in [bytes.clone(), [&set.to_le_bytes()[..], &bytes].concat()] {
                if let Ok(moments) = decode(&mut Reader::new(&any, 0).unwrap()) {
                    prop_assert!(any.starts_with(&encoded(&moments)));
                }
            }
        }
    }
}
