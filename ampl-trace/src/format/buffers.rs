//! Buffers of ranks, one rank after the other: equal ones are stored once.

use rustc_hash::FxHashMap;

use super::sections::{squeezed, unsqueezed};
use super::succession::Succession;
use crate::bits::{Reader, Writer};
use crate::buffers::Buffers;
use crate::varint;

/// Bytes that stand for the buffers of many ranks: so many, and so many for each of the payload. Few bytes of a
/// damaged file must not stand for very many.
const SHARED: u64 = 1 << 20;
const SHARED_TIMES: u64 = 1 << 10;

/// The buffers of some ranks, each as [`Buffers::write`] has it, as bytes.
pub fn encode(all: &[Vec<u8>]) -> Vec<u8> {
    let (mut numbers, mut texts) = (FxHashMap::default(), Vec::new());
    let (mut order, mut bits) = (Succession::default(), Writer::default());
    for own in all {
        let next = numbers.len();
        let number = *numbers.entry(&own[..]).or_insert_with(|| {
            varint::put(&mut texts, own.len() as u64);
            texts.extend_from_slice(own);
            next
        });
        order.code(&mut bits, number);
    }
    let texts = squeezed(&texts);
    let mut payload = Vec::new();
    varint::put(&mut payload, texts.len() as u64);
    payload.extend(texts);
    payload.extend(bits.into_bytes());
    payload
}

/// The buffers of so many ranks; `None` where the payload makes no sense.
pub fn decode(ranks: usize, payload: &[u8]) -> Option<Vec<Buffers>> {
    let mut reader = varint::Reader::new(payload);
    let length = usize::try_from(reader.get()?).ok()?;
    let texts = unsqueezed(reader.take(length)?)?;
    let mut texts = varint::Reader::new(&texts);
    let mut known = Vec::new();
    while !texts.is_empty() {
        let length = usize::try_from(texts.get()?).ok()?;
        known.push((Buffers::read(texts.take(length)?)?, length));
    }
    let mut left = SHARED.saturating_add((payload.len() as u64).saturating_mul(SHARED_TIMES));
    let (mut order, mut bits) = (Succession::default(), Reader::new(&payload[reader.position()..]));
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
            prop_assert_eq!(decode(all.len(), &encode(&bytes)), Some(all));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, cut in 0..20usize) {
            let _ = decode(9, &bytes);
            let mut coded = encode(&vec![buffers(&[5, 9]).write(); 9]);
            coded.truncate(coded.len().saturating_sub(cut));
            coded.extend(bytes);
            let _ = decode(9, &coded);
        }
    }

    #[test]
    fn equal_ranks_take_little() {
        let all = vec![buffers(&(0..50).collect::<Vec<_>>()).write(); 256];
        assert!(encode(&all).len() < encode(&all[..1]).len() + 16);
    }
}
