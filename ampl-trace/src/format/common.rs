//! Texts that ranks of a bundle have in common, each once, in the order in which ranks first have them.

use rustc_hash::FxHashMap;

use super::sections::{squeezed, unsqueezed};
use crate::varint::{self, Reader};

/// Bytes that texts stand for in all ranks together: so many, and so many for each of the payload. Few bytes of a damaged
/// file must not stand for very many.
const SHARED: u64 = 1 << 20;
const SHARED_TIMES: u64 = 1 << 10;

/// Most bytes that the texts of `payload` may stand for.
pub fn most(payload: &[u8]) -> u64 {
    SHARED.saturating_add((payload.len() as u64).saturating_mul(SHARED_TIMES))
}

/// Texts on their way to a bundle.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: FxHashMap<Vec<u8>, usize>,
    bytes: Vec<u8>,
}

impl Texts {
    /// Number of `text`, from 0, and true if it is new.
    pub fn add(&mut self, text: Vec<u8>) -> (usize, bool) {
        let next = self.numbers.len();
        let number = *self.numbers.entry(text).or_insert_with_key(|text| {
            varint::put(&mut self.bytes, text.len() as u64);
            self.bytes.extend(text);
            next
        });
        (number, number == next)
    }

    /// Appends all of them to `payload`.
    pub fn put(&self, payload: &mut Vec<u8>) {
        let texts = squeezed(&self.bytes);
        varint::put(payload, texts.len() as u64);
        payload.extend(texts);
    }
}

/// Contents of each text, and its length.
pub type Known<T> = Vec<(T, usize)>;

/// The texts at the beginning of `payload`, each as `read` reads it and its length, and what is behind them; `None` where
/// they make no sense.
pub fn read<T>(payload: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Option<(Known<T>, &[u8])> {
    let mut reader = Reader::new(payload);
    let length = usize::try_from(reader.get()?).ok()?;
    let bytes = unsqueezed(reader.take(length)?)?;
    let (mut texts, mut found) = (Reader::new(&bytes), Vec::new());
    while !texts.is_empty() {
        let length = usize::try_from(texts.get()?).ok()?;
        found.push((read(texts.take(length)?)?, length));
    }
    Some((found, &payload[reader.position()..]))
}
