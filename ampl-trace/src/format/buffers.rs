//! Buffers of ranks, one rank after the other: equal ones are stored once.

use super::common::{self, Texts};
use super::succession::Succession;
use crate::bits::{Reader, Writer};
use crate::buffers::Buffers;

/// The buffers of some ranks, each as [`Buffers::write`] has it, as bytes.
pub fn encode(all: Vec<Vec<u8>>) -> Vec<u8> {
    let (mut texts, mut order, mut bits) = (Texts::default(), Succession::default(), Writer::default());
    for own in all {
        order.code(&mut bits, texts.add(own).0);
    }
    let mut payload = Vec::new();
    texts.put(&mut payload);
    payload.extend(bits.into_bytes());
    payload
}

/// The buffers of so many ranks; `None` where the payload makes no sense.
pub fn decode(ranks: usize, payload: &[u8]) -> Option<Vec<Buffers>> {
    let (known, rest) = common::read(payload, Buffers::read)?;
    let mut left = common::most(payload);
    let (mut order, mut bits) = (Succession::default(), Reader::new(rest));
    let mut found = Vec::with_capacity(ranks);
    for _ in 0..ranks {
        let (number, _) = order.code(&mut bits, 0)?;
        let (buffers, length) = known.get(number)?;
        left = left.checked_sub(*length as u64)?;
        bits.is_sound().then_some(())?;
        found.push(buffers.clone());
    }
    (order.known() == known.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buffers::{Move, ThreadBuffers, Varying};
    use crate::places::other;

    fn buffers(places: &[u64]) -> Buffers {
        let mut thread = ThreadBuffers { thread: 1, ..ThreadBuffers::default() };
        let mut builder = crate::grammar::Builder::new();
        for (signature, &place) in (0..).zip(places) {
            let sets = vec![vec![other(None, place)]];
            thread.signatures.push(Varying { first_move: 7 * u64::from(signature), sets });
            thread.moves.push(Move { signature, since: 0, to: 1 });
            builder.push(signature, 1);
        }
        thread.sequence = builder.into_grammar();
        Buffers { threads: vec![thread] }
    }

    proptest! {
        #[test]
        fn buffers_of_ranks_come_back(ranks in prop::collection::vec(prop::collection::vec(0..3u64, 0..4), 1..20)) {
            let all: Vec<Buffers> = ranks.iter().map(|places| buffers(places)).collect();
            let bytes: Vec<Vec<u8>> = all.iter().map(Buffers::write).collect();
            prop_assert_eq!(decode(all.len(), &encode(bytes)), Some(all));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, cut in 0..20usize) {
            let _ = decode(9, &bytes);
            let mut coded = encode(vec![buffers(&[5, 9]).write(); 9]);
            coded.truncate(coded.len().saturating_sub(cut));
            coded.extend(bytes);
            let _ = decode(9, &coded);
        }
    }

    #[test]
    fn equal_ranks_take_little() {
        let one = buffers(&(0..50).collect::<Vec<_>>()).write();
        assert!(encode(vec![one.clone(); 256]).len() < encode(vec![one]).len() + 16);
    }
}
