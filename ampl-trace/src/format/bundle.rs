//! Sections of many ranks in one: what ranks have in common is stored once, and heads take no room of their own.
//!
//! A bundle has at most [`MOST_RANKS`] ranks, and sections of 1 MiB in all, so that reading a rank of it stays cheap.

use super::gaps::Counted;
use super::kind::Kind;
use super::sections::unsqueezed;
use super::{buffers, gaps, places, windows};
use crate::bits::{Reader, Writer};
use crate::buffers::Buffers;
use crate::column::LIMIT;
use crate::gaps::Gaps;
use crate::places::Places;
use crate::timing::Node;
use crate::varint;
use crate::window_summary::WindowSummaries;

/// Most ranks of a bundle.
pub const MOST_RANKS: usize = 256;
/// Most bytes of the sections of a bundle, as they are apart.
const MOST_OF_ALL: usize = 1 << 20;

/// Most bytes of a rank's section of `kind` that goes into a bundle: larger ones have learnt what ranks have in common.
/// Addresses are stored plain where they are apart.
pub fn most_bytes(kind: Kind) -> usize {
    if kind == Kind::Addresses { MOST_OF_ALL } else { 4096 }
}

/// Contents of one rank in a bundle.
#[derive(Clone, Debug)]
pub enum Content {
    /// Addresses of its places.
    Places(Places),
    /// Its windows, or those of which there are weights.
    Windows(WindowSummaries),
    /// Calls that it counted and did not record.
    Gaps(Gaps),
    /// Buffers of its calls.
    Buffers(Buffers),
}

/// A bundle to which ranks are added.
#[derive(Debug)]
pub struct Bundler {
    kind: Kind,
    ranks: Vec<u32>,
    /// Bytes of the sections, as they are apart.
    bytes: usize,
    coding: Coding,
}

#[derive(Debug)]
enum Coding {
    Places(Box<places::Coder>, Writer),
    Windows {
        coder: Box<windows::Coder<Writer>>,
        same: Node,
        digits: u32,
        before: Vec<u8>,
    },
    /// Gaps, and the calls of the process.
    Gaps(Vec<(Gaps, Option<Counted>)>),
    /// Sections as they are apart.
    Buffers(Vec<Vec<u8>>),
}

impl Bundler {
    /// A bundle of sections of that kind which begins with that `payload`; `None` where these have sections of their own.
    pub fn new(kind: Kind, payload: &[u8]) -> Option<Self> {
        let coding = match kind {
            Kind::Addresses => Coding::Places(Box::new(places::Coder::NEW), Writer::default()),
            Kind::Windows | Kind::Weights => {
                let (_, digits) = windows::decode_with(payload)?;
                let coder = Box::new(windows::Coder::new(Writer::default(), digits));
                Coding::Windows { coder, same: Node::NEW, digits, before: Vec::new() }
            }
            Kind::Gaps => Coding::Gaps(Vec::new()),
            Kind::Buffers => Coding::Buffers(Vec::new()),
            _ => return None,
        };
        Some(Self { kind, ranks: Vec::new(), bytes: 0, coding })
    }

    /// Adds the section of a rank behind those so far; false where it does not fit in here. `calls` are those of its
    /// process, where they are known.
    pub fn add(&mut self, rank: u32, payload: &[u8], calls: impl Fn() -> Option<Counted>) -> bool {
        let is_next = self.ranks.last().is_none_or(|&last| last < rank);
        let fits = payload.len() <= most_bytes(self.kind) && self.bytes + payload.len() <= MOST_OF_ALL;
        if !is_next || self.ranks.len() == MOST_RANKS || !fits {
            return false;
        }
        let added = match &mut self.coding {
            Coding::Places(coder, bits) => {
                Places::read(payload).is_some_and(|places| coder.code(bits, &places).is_some())
            }
            Coding::Windows { coder, same, digits, before } => match windows::decode_with(payload) {
                Some((found, theirs)) if theirs == *digits => {
                    let is_same = !self.ranks.is_empty() && payload == *before;
                    if !self.ranks.is_empty() {
                        same.code(&mut coder.bits, LIMIT, is_same);
                    }
                    if !is_same {
                        coder.put_all(&found);
                        *before = payload.to_vec();
                    }
                    true
                }
                _ => false,
            },
            Coding::Gaps(all) => Gaps::read(payload).map(|gaps| all.push((gaps, calls()))).is_some(),
            Coding::Buffers(all) => {
                let before = all.iter().map(Vec::len).sum::<usize>();
                let own = unsqueezed(payload).filter(|own| before + own.len() <= MOST_OF_ALL);
                own.map(|own| all.push(own)).is_some()
            }
        };
        if added {
            self.ranks.push(rank);
            self.bytes += payload.len();
        }
        added
    }

    /// Kind, first rank and payload of the bundle.
    pub fn finish(self) -> Option<(Kind, u32, Vec<u8>)> {
        let &first = self.ranks.first()?;
        let spans: Vec<&[u32]> = self.ranks.chunk_by(|one, next| one + 1 == *next).collect();
        let mut payload = Vec::new();
        varint::put(&mut payload, spans.len() as u64);
        let mut end = first;
        for span in spans {
            varint::put(&mut payload, (span[0] - end).into());
            varint::put(&mut payload, span.len() as u64 - 1);
            end = span[span.len() - 1] + 1;
        }
        match self.coding {
            Coding::Places(_, bits) => payload.extend(bits.into_bytes()),
            Coding::Windows { coder, digits, .. } => {
                payload.push(digits as u8);
                payload.extend(coder.bits.into_bytes());
            }
            Coding::Gaps(all) => payload.extend(gaps::encode(&all)),
            Coding::Buffers(all) => payload.extend(buffers::encode(all)),
        }
        Some((self.kind.of_many()?, first, payload))
    }
}

/// The ranks of a bundle from `first` on, and what is behind them.
fn ranks(first: u32, payload: &[u8]) -> Option<(Vec<u32>, &[u8])> {
    let mut reader = varint::Reader::new(payload);
    let (mut ranks, mut end) = (Vec::new(), first);
    for _ in 0..reader.get()? {
        let from = end.checked_add(u32::try_from(reader.get()?).ok()?)?;
        let length = usize::try_from(reader.get()?).ok()?.checked_add(1)?;
        if length > MOST_RANKS - ranks.len() {
            return None;
        }
        end = from.checked_add(length as u32)?;
        ranks.extend(from..end);
    }
    Some((ranks, &payload[reader.position()..]))
}

/// The ranks of a bundle of that kind from `first` on, ascending, with their contents; `None` where the payload makes no
/// sense. `calls` are those of a rank's process, where they are known.
pub fn decode(
    kind: Kind,
    first: u32,
    payload: &[u8],
    calls: impl Fn(u32) -> Option<Counted>,
) -> Option<Vec<(u32, Content)>> {
    let (ranks, payload) = ranks(first, payload)?;
    let mut found: Vec<(u32, Content)> = Vec::with_capacity(ranks.len());
    match kind {
        Kind::AddressesOfRanks => {
            let (mut coder, mut bits) = (places::Coder::NEW, Reader::new(payload));
            for rank in ranks {
                let places = coder.code(&mut bits, &Places::default()).filter(|_| bits.is_sound())?;
                found.push((rank, Content::Places(places)));
            }
        }
        Kind::WindowsOfRanks | Kind::WeightsOfRanks => {
            let (&digits, payload) = payload.split_first()?;
            let digits = if digits == 0 { 0 } else { windows::check_digits(digits)? };
            let (mut coder, mut same) = (windows::Coder::new(Reader::new(payload), digits), Node::NEW);
            for rank in ranks {
                let before = found.last().map(|(_, content)| content.clone());
                let content = match before {
                    Some(before) if same.code(&mut coder.bits, LIMIT, false) => before,
                    _ => Content::Windows(coder.get_all()?.into()),
                };
                found.push((rank, content));
            }
            coder.bits.is_sound().then_some(())?;
        }
        Kind::GapsOfRanks => {
            let all = gaps::decode(&ranks, payload, calls)?.into_iter().map(Content::Gaps);
            found.extend(ranks.into_iter().zip(all));
        }
        Kind::BuffersOfRanks => {
            let all = buffers::decode(ranks.len(), payload)?.into_iter().map(Content::Buffers);
            found.extend(ranks.into_iter().zip(all));
        }
        _ => return None,
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cells::Cell;
    use crate::places::other;
    use crate::window_summary::WindowSummary;

    fn windows_of(lengths: &[u64], digits: u32) -> Vec<u8> {
        let mut windows: Vec<WindowSummary> = Vec::new();
        for (number, &length) in (0..).zip(lengths) {
            let start_ns = windows.last().map_or(0, |before| before.end_ns);
            let cells = [Cell::one((length << 8) as f64), Cell { n: 2.0, ..Cell::one(3.5) }];
            windows.push(WindowSummary {
                window: number,
                start_ns,
                end_ns: start_ns + length as i64,
                repeat: 1,
                cells: cells.into_iter().collect(),
                ..WindowSummary::default()
            });
        }
        windows::encode(&windows, digits)
    }

    fn places_of(addresses: &[u64]) -> Vec<u8> {
        let (mut places, mut payload) = (Places::default(), Vec::new());
        (0..).zip(addresses).for_each(|(number, &address)| places.take(0, other(None, number), address));
        places.write(&mut payload);
        payload
    }

    /// Each section that was added, as its own payload would be read.
    fn check(kind: Kind, sections: &[(u32, Vec<u8>)]) {
        let mut bundler = Bundler::new(kind, &sections[0].1).expect("a kind that is bundled");
        for (rank, payload) in sections {
            assert!(bundler.add(*rank, payload, || None), "{rank}");
        }
        let last = sections[sections.len() - 1].0;
        assert!(!bundler.add(last, &sections[0].1, || None), "out of order");
        let (many, first, payload) = bundler.finish().expect("ranks");
        let found = decode(many, first, &payload, |_| None).expect("it makes sense");
        assert_eq!(found.len(), sections.len());
        for ((rank, content), (expected, payload)) in found.iter().zip(sections) {
            assert_eq!(rank, expected);
            match content {
                Content::Places(places) => assert_eq!(Some(places), Places::read(payload).as_ref()),
                Content::Gaps(gaps) => assert_eq!(Some(gaps), Gaps::read(payload).as_ref()),
                Content::Buffers(found) => {
                    let own = unsqueezed(payload).and_then(|bytes| Buffers::read(&bytes));
                    assert_eq!(Some(found), own.as_ref());
                }
                Content::Windows(found) => {
                    assert_eq!(Some(found.entries()), windows::decode(payload).as_deref());
                }
            }
        }
        for cut in (0..payload.len()).step_by(payload.len() / 4 + 1) {
            let _ = decode(many, first, &payload[..cut], |_| None);
        }
    }

    proptest! {
        #[test]
        fn sections_come_back(
            ranks in prop::collection::btree_map(0..900u32, (prop::collection::vec(0..9u64, 0..6), any::<bool>()), 1..40),
            digits in prop::sample::select(vec![0, 3, 10]),
        ) {
            let mut before = Vec::new();
            let lengths: Vec<(u32, Vec<u64>)> = ranks.into_iter().map(|(rank, (lengths, as_before))| {
                if !as_before {
                    before = lengths;
                }
                (rank, before.clone())
            }).collect();
            let of = |payload: &dyn Fn(&[u64]) -> Vec<u8>| -> Vec<(u32, Vec<u8>)> {
                let all = lengths.iter().map(|(rank, lengths)| (*rank, payload(lengths)));
                all.filter(|(_, payload)| !payload.is_empty()).collect()
            };
            check(Kind::Addresses, &of(&places_of));
            let windows = of(&|lengths| windows_of(lengths, digits));
            if !windows.is_empty() {
                check(Kind::Windows, &windows);
                check(Kind::Weights, &windows);
            }
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, ranks in 0..4u8) {
            let some = [&[1, 0, ranks][..], &bytes].concat();
            for kind in [
                Kind::AddressesOfRanks,
                Kind::WindowsOfRanks,
                Kind::WeightsOfRanks,
                Kind::GapsOfRanks,
                Kind::BuffersOfRanks,
            ] {
                let _ = decode(kind, 7, &bytes, |_| None);
                let _ = decode(kind, 7, &some, |_| None);
            }
        }
    }

    #[test]
    fn a_bundle_has_room_for_so_many_ranks_and_not_for_long_sections() {
        let payload = places_of(&[1 << 33]);
        let mut bundler = Bundler::new(Kind::Addresses, &payload).unwrap();
        assert!((0..MOST_RANKS as u32).all(|rank| bundler.add(2 * rank, &payload, || None)));
        assert!(!bundler.add(600, &payload, || None));
        let (kind, first, coded) = bundler.finish().unwrap();
        assert_eq!(decode(kind, first, &coded, |_| None).unwrap().len(), MOST_RANKS);
        let mut bundler = Bundler::new(Kind::Addresses, &payload).unwrap();
        assert!(!bundler.add(0, &places_of(&vec![u64::MAX >> 1; MOST_OF_ALL / 2]), || None), "too long");
        assert!(bundler.finish().is_none());
        // Long ones fill a bundle sooner.
        let long = places_of(&vec![u64::MAX >> 1; 4096]);
        let mut bundler = Bundler::new(Kind::Addresses, &long).unwrap();
        let taken = (0..MOST_RANKS as u32).take_while(|&rank| bundler.add(rank, &long, || None)).count();
        assert_eq!(taken, MOST_OF_ALL / long.len());
        assert!(Bundler::new(Kind::Times, &payload).is_none());
    }

    #[test]
    fn equal_windows_are_shared() {
        let payload = windows_of(&[5, 6, 7], 0);
        let mut bundler = Bundler::new(Kind::Windows, &payload).unwrap();
        assert!((0..200).all(|rank| bundler.add(rank, &payload, || None)));
        let (kind, first, coded) = bundler.finish().unwrap();
        assert!(coded.len() < payload.len() + 16, "{}", coded.len());
        let found = decode(kind, first, &coded, |_| None).unwrap();
        let entries = |index: usize| match &found[index].1 {
            Content::Windows(windows) => windows.entries().as_ptr(),
            other => panic!("{other:?}"),
        };
        assert_eq!(entries(0), entries(199));
    }
}
