//! Gaps as bytes.
//!
//! Functions by their names; per thread the kinds of unrecorded calls, their sequence, and the moments of gaps, each
//! relative to the one before. Integers are variable-length.

use ampl_core::mpi::{FUNCTION_COUNT, Function};

use super::{Gaps, Reason, Span, ThreadGaps, Unrecorded};
use crate::grammar::Grammar;
use crate::varint::{Reader, put, put_signed};

impl Gaps {
    /// Bytes that [`Gaps::read`] reads; none where there are no gaps.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        let mut functions: Vec<u16> =
            self.threads.iter().flat_map(|thread| &thread.kinds).map(|kind| kind.function).collect();
        functions.sort_unstable();
        functions.dedup();
        put(&mut out, functions.len() as u64);
        for &function in &functions {
            let name = if usize::from(function) < FUNCTION_COUNT { Function(function).name() } else { "" };
            put(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        put(&mut out, self.threads.len() as u64);
        for thread in &self.threads {
            thread.write(&functions, &mut out);
        }
        out
    }

    /// The gaps in `bytes`; `None` if they are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let reader = &mut Reader::new(bytes);
        let mut functions = Vec::new();
        for _ in 0..reader.get()? {
            let length = usize::try_from(reader.get()?).ok()?;
            let name = std::str::from_utf8(reader.take(length)?).ok()?;
            functions.push(Function::by_name(name).map_or(u16::MAX, |function| function.0));
        }
        let mut threads = Vec::new();
        for _ in 0..reader.get()? {
            threads.push(ThreadGaps::read(&functions, reader)?);
        }
        reader.is_empty().then_some(Self { threads })
    }
}

impl ThreadGaps {
    fn write(&self, functions: &[u16], out: &mut Vec<u8>) {
        put(out, self.thread.into());
        put(out, self.kinds.len() as u64);
        for kind in &self.kinds {
            let function = functions.binary_search(&kind.function).expect("all of them are listed");
            put(out, function as u64);
            put(out, kind.reason as u64);
            put(out, kind.site.into());
        }
        self.sequence.write(out);
        put(out, self.spans.len() as u64);
        put(out, self.rest.is_some().into());
        let mut before = NONE;
        for span in self.spans.iter().chain(&self.rest) {
            put(out, span.seq.wrapping_sub(before.seq));
            put_signed(out, span.from_ns.wrapping_sub(before.until_ns));
            put_signed(out, span.until_ns.wrapping_sub(span.from_ns));
            put(out, span.reasons.into());
            before = *span;
        }
    }

    fn read(functions: &[u16], reader: &mut Reader<'_>) -> Option<Self> {
        let thread = u32::try_from(reader.get()?).ok()?;
        let mut kinds = Vec::new();
        for _ in 0..reader.get()? {
            let function = *functions.get(usize::try_from(reader.get()?).ok()?)?;
            let reason = Reason::from_number(reader.get()?);
            kinds.push(Unrecorded { function, reason, site: u32::try_from(reader.get()?).ok()? });
        }
        let sequence = Grammar::read(reader)?;
        let (number, has_rest) = (reader.get()?, reader.get()? != 0);
        let (mut spans, mut before) = (Vec::new(), NONE);
        for _ in 0..number {
            spans.push(read_span(&mut before, reader)?);
        }
        let rest = if has_rest { Some(read_span(&mut before, reader)?) } else { None };
        // A damaged file must not have them out of order: they are searched.
        spans.is_sorted_by_key(|span| span.seq).then_some(Self { thread, kinds, sequence, spans, rest })
    }
}

/// The span before the first.
const NONE: Span = Span { seq: 0, from_ns: 0, until_ns: 0, reasons: 0 };

/// The span behind the one `before`, which it becomes.
fn read_span(before: &mut Span, reader: &mut Reader<'_>) -> Option<Span> {
    let seq = before.seq.wrapping_add(reader.get()?);
    let from_ns = before.until_ns.wrapping_add(reader.get_signed()?);
    let until_ns = from_ns.wrapping_add(reader.get_signed()?);
    *before = Span { seq, from_ns, until_ns, reasons: u16::try_from(reader.get()?).ok()? };
    Some(*before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Cursor;
    use super::*;
    use crate::grammar::Builder;

    /// Unrecorded calls of a thread, one entry a gap.
    type Drawn = Vec<Vec<(usize, u64)>>;

    fn gaps(drawn: &[Drawn]) -> Gaps {
        let kinds: Vec<Unrecorded> = (0..6u16)
            .map(|number| Unrecorded {
                function: number / 2 * 7,
                site: u32::from(number % 4),
                reason: Reason::from_number(u64::from(1 + number % 3)),
            })
            .collect();
        let thread = |(thread, drawn): (u32, &Drawn)| {
            let (mut builder, mut spans, mut seq) = (Builder::new(), Vec::new(), 5);
            for gap in drawn {
                let reasons = gap.iter().fold(0, |all, &(kind, _)| all | kinds[kind].reason.bit());
                spans.push(Span { seq, from_ns: seq as i64 * 3 - 40, until_ns: seq as i64 * 3, reasons });
                for &(kind, calls) in gap {
                    builder.push(kind as u32, calls);
                    seq += calls;
                }
                seq += 2;
            }
            let rest = spans.last().copied().filter(|_| thread % 2 == 0);
            ThreadGaps { thread, kinds: kinds.clone(), sequence: builder.grammar(), spans, rest }
        };
        Gaps { threads: (0..).zip(drawn).map(thread).collect() }
    }

    fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
        let gap = prop::collection::vec((0..6usize, 1..5u64), 1..4);
        prop::collection::vec(prop::collection::vec(gap, 1..30), 0..3)
    }

    proptest! {
        #[test]
        fn gaps_come_back(drawn in drawn()) {
            let gaps = gaps(&drawn);
            prop_assert_eq!(Gaps::read(&gaps.write()), Some(gaps));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Gaps::read(&bytes);
        }

        /// Each gap has the calls that were put there, by reason, function and site, and its own moments.
        #[test]
        fn each_gap_has_its_own_calls(drawn in drawn()) {
            let gaps = gaps(&drawn);
            for (thread, drawn) in gaps.threads.iter().zip(&drawn) {
                let mut cursor = Cursor::new(thread);
                let mut seq = 5;
                for (number, gap) in drawn.iter().enumerate() {
                    let calls = gap.iter().map(|&(_, calls)| calls).sum::<u64>();
                    // The last is at the thread's end.
                    let found = if number + 1 < drawn.len() { cursor.take(seq, calls) } else { cursor.rest(seq) };
                    let mut left: std::collections::BTreeMap<(Reason, u16, Option<u32>), u64> = Default::default();
                    for &(kind, calls) in gap {
                        let kind = thread.kinds[kind];
                        *left.entry((kind.reason, kind.function, kind.site.checked_sub(1))).or_default() += calls;
                    }
                    let mut at = seq;
                    for found in found {
                        prop_assert_eq!((found.seq, found.thread), (at, thread.thread));
                        prop_assert_eq!(found.span_ns, Some((seq as i64 * 3 - 40, seq as i64 * 3)));
                        prop_assert_eq!(found.parts.iter().map(|part| part.calls).sum::<u64>(), found.calls);
                        at += found.calls;
                        for part in found.parts {
                            let own = left.remove(&(found.reason, part.function, part.site));
                            prop_assert_eq!(own, Some(part.calls));
                        }
                    }
                    prop_assert!(left.is_empty() && at == seq + calls);
                    seq += calls + 2;
                }
            }
        }
    }
}
