//! Exact totals of a run: of each place that calls MPI over all ranks, and of each rank by function.
//!
//! Ranks' totals are [joined](Totals::join) in any order to the same: numbers are whole nanoseconds and bytes, and of
//! equal extremes the lowest rank's counts. What a rank took in a function is kept to [`SHARE_BITS`] bits.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::{FUNCTION_COUNT, Function};

use crate::model::{Aggregate, Site, call_path};
use crate::varint::{Reader, put, put_signed};

/// Stands for calls beyond a rank's table of sites: of several functions, at several places.
pub const SEVERAL: u16 = u16::MAX;

/// Significant bits of the time that a rank took in a function.
pub const SHARE_BITS: u32 = 18;

/// A number of one rank that no other exceeds, and whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extreme {
    /// Nanoseconds.
    pub ns: u64,
    /// The rank; of several the lowest.
    pub rank: u32,
}

impl Extreme {
    fn longer(self, other: Self) -> Self {
        let swap = (other.ns, self.rank) > (self.ns, other.rank);
        if swap { other } else { self }
    }

    fn shorter(self, other: Self) -> Self {
        if (other.ns, other.rank) < (self.ns, self.rank) { other } else { self }
    }
}

/// The calls of a function at one place, over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How many.
    pub calls: u64,
    /// Time in them, nanoseconds; 0 for functions that are counted and not timed.
    pub time_ns: u64,
    /// Sum of squares of their times, ns².
    pub time_sq: u128,
    /// The shortest call.
    pub shortest: Extreme,
    /// The longest.
    pub longest: Extreme,
    /// What the rank took that took the most time here.
    pub most: Extreme,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

impl Total {
    fn of(rank: u32, entry: &Aggregate) -> Self {
        let counted =
            Self { calls: entry.calls, sent: entry.sent, received: entry.received, ..Self::default() };
        let whole = |ns: f64| Extreme { ns: ns.round() as u64, rank };
        match whole(entry.time_ns) {
            Extreme { ns: 0, .. } => counted,
            most => Self {
                time_ns: most.ns,
                time_sq: entry.time_sq.round() as u128,
                shortest: whole(entry.min_ns),
                longest: whole(entry.max_ns),
                most,
                ..counted
            },
        }
    }

    /// Adds `other`, but for who took the most.
    fn add(&mut self, other: &Self) {
        *self = Self {
            calls: self.calls.saturating_add(other.calls),
            time_ns: self.time_ns.saturating_add(other.time_ns),
            time_sq: self.time_sq.saturating_add(other.time_sq),
            shortest: self.shortest.shorter(other.shortest),
            longest: self.longest.longer(other.longest),
            most: self.most,
            sent: self.sent.saturating_add(other.sent),
            received: self.received.saturating_add(other.received),
        };
    }
}

/// What a rank did in a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Calls.
    pub calls: u64,
    /// Time in them, nanoseconds, to [`SHARE_BITS`] bits.
    pub time_ns: u64,
}

/// A place: the function called, then module and offset of each frame, from the call outwards.
type Place = (u16, Vec<(u32, u64)>);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    modules: Vec<String>,
    places: BTreeMap<Place, Total>,
    /// By function and rank.
    shares: BTreeMap<(u16, u32), Share>,
}

impl Totals {
    /// Those of `rank`, whose entries name `sites` in `modules`.
    pub fn of(rank: u32, modules: &[String], sites: &[Site], entries: &[Aggregate]) -> Self {
        let mut totals = Self { modules: modules.to_vec(), ..Self::default() };
        for entry in entries {
            let path = |site| call_path(sites, site).map(|site| (site.module, site.offset)).collect();
            // A damaged journal may name a function that there is not.
            let (function, path) = match entry.site {
                Some(site) if usize::from(entry.function) < FUNCTION_COUNT => (entry.function, path(site)),
                // There was no room for the site's record.
                None if usize::from(entry.function) < FUNCTION_COUNT => (entry.function, Vec::new()),
                _ => (SEVERAL, Vec::new()),
            };
            let (own, share) = (Total::of(rank, entry), totals.shares.entry((function, rank)).or_default());
            share.calls = share.calls.saturating_add(own.calls);
            share.time_ns = share.time_ns.saturating_add(own.time_ns);
            totals.places.entry((function, path)).and_modify(|total| total.add(&own)).or_insert(own);
        }
        // Threads of a rank have entries of their own.
        totals.places.values_mut().for_each(|total| total.most.ns = total.time_ns);
        totals.shares.values_mut().for_each(|share| share.time_ns = unpacked(packed(share.time_ns)));
        totals
    }

    /// Adds those of other ranks.
    pub fn join(&mut self, other: Self) {
        let mut number = |module: &String| {
            let known = self.modules.iter().position(|known| known == module);
            known.unwrap_or_else(|| {
                self.modules.push(module.clone());
                self.modules.len() - 1
            }) as u32
        };
        let numbers: Vec<u32> = other.modules.iter().map(&mut number).collect();
        for ((function, mut path), theirs) in other.places {
            for (module, _) in &mut path {
                *module = numbers.get(*module as usize).copied().unwrap_or(u32::MAX);
            }
            let ours = self.places.entry((function, path)).and_modify(|total| {
                total.add(&theirs);
                total.most = total.most.longer(theirs.most);
            });
            ours.or_insert(theirs);
        }
        self.shares.extend(other.shares);
    }

    /// Each place: function ([`SEVERAL`] for those beyond the table), modules and offsets of the path from the call
    /// outwards (empty where unknown), and its total.
    pub fn places(&self) -> impl Iterator<Item = (u16, Vec<(&str, u64)>, &Total)> {
        let name = |module: u32| self.modules.get(module as usize).map_or("", String::as_str);
        self.places.iter().map(move |((function, path), total)| {
            (*function, path.iter().map(|&(module, offset)| (name(module), offset)).collect(), total)
        })
    }

    /// What each rank did in each function, by function, then by rank.
    pub fn shares(&self) -> impl Iterator<Item = (u16, u32, Share)> + '_ {
        self.shares.iter().map(|(&(function, rank), &share)| (function, rank, share))
    }

    /// Bytes of the section that stores them, before they are compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.modules.len() as u64);
        self.modules.iter().for_each(|module| put_text(&mut out, module));
        let functions: BTreeSet<u16> =
            self.places.keys().map(|key| key.0).chain(self.shares.keys().map(|key| key.0)).collect();
        put(&mut out, functions.len() as u64);
        for function in functions {
            put_text(&mut out, if function == SEVERAL { "" } else { Function(function).name() });
            let from = self.places.range((function, Vec::new())..);
            let places: Vec<_> = from.take_while(|((own, _), _)| *own == function).collect();
            put(&mut out, places.len() as u64);
            let mut before = 0;
            for ((_, path), total) in places {
                put(&mut out, path.len() as u64);
                for &(module, offset) in path {
                    put(&mut out, module.into());
                    put_signed(&mut out, offset.wrapping_sub(before) as i64);
                    before = offset;
                }
                put_total(&mut out, total);
            }
            let shares = self.shares.range((function, 0)..=(function, u32::MAX));
            put_shares(&mut out, &shares.map(|(&(_, rank), &share)| (rank, share)).collect::<Vec<_>>());
        }
        out
    }

    /// What was encoded; `None` if it makes no sense.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut totals = Self::default();
        for _ in 0..reader.get()? {
            totals.modules.push(get_text(&mut reader)?);
        }
        for _ in 0..reader.get()? {
            let function = match &*get_text(&mut reader)? {
                "" => SEVERAL,
                name => Function::by_name(name)?.0,
            };
            let mut before = 0u64;
            for _ in 0..reader.get()? {
                let mut path = Vec::new();
                for _ in 0..reader.get()? {
                    let module = u32::try_from(reader.get()?).ok()?;
                    before = before.wrapping_add(reader.get_signed()? as u64);
                    path.push((module, before));
                }
                totals.places.insert((function, path), get_total(&mut reader)?);
            }
            for (rank, share) in get_shares(&mut reader)? {
                totals.shares.insert((function, rank), share);
            }
        }
        reader.is_empty().then_some(totals)
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn get_text(reader: &mut Reader<'_>) -> Option<String> {
    let length = usize::try_from(reader.get()?).ok()?;
    String::from_utf8(reader.take(length)?.to_vec()).ok()
}

fn put_total(out: &mut Vec<u8>, total: &Total) {
    put(out, total.calls);
    put(out, total.sent);
    put(out, total.received);
    put(out, total.time_ns);
    if total.time_ns > 0 {
        put(out, total.time_sq as u64);
        put(out, (total.time_sq >> 64) as u64);
        for extreme in [total.shortest, total.longest, total.most] {
            put(out, extreme.ns);
            put(out, extreme.rank.into());
        }
    }
}

fn get_total(reader: &mut Reader<'_>) -> Option<Total> {
    let mut total = Total {
        calls: reader.get()?,
        sent: reader.get()?,
        received: reader.get()?,
        time_ns: reader.get()?,
        ..Total::default()
    };
    if total.time_ns > 0 {
        total.time_sq = u128::from(reader.get()?) | u128::from(reader.get()?) << 64;
        for extreme in [&mut total.shortest, &mut total.longest, &mut total.most] {
            *extreme = Extreme { ns: reader.get()?, rank: u32::try_from(reader.get()?).ok()? };
        }
    }
    Some(total)
}

/// Spans of ranks that follow each other, then their calls, then their times: what is alike is together.
fn put_shares(out: &mut Vec<u8>, shares: &[(u32, Share)]) {
    let spans: Vec<&[(u32, Share)]> = shares.chunk_by(|one, next| one.0 + 1 == next.0).collect();
    put(out, spans.len() as u64);
    let mut end = 0;
    for span in &spans {
        put(out, u64::from(span[0].0 - end));
        put(out, span.len() as u64);
        end = span[span.len() - 1].0;
    }
    let mut before = 0;
    for (_, share) in shares {
        put_signed(out, share.calls.wrapping_sub(before) as i64);
        before = share.calls;
    }
    for (_, share) in shares {
        out.extend(&packed(share.time_ns).to_le_bytes()[..3]);
    }
}

fn get_shares(reader: &mut Reader<'_>) -> Option<Vec<(u32, Share)>> {
    let mut spans = Vec::new();
    let mut end = 0u32;
    for _ in 0..reader.get()? {
        let first = end.checked_add(u32::try_from(reader.get()?).ok()?)?;
        let length = u32::try_from(reader.get()?).ok()?;
        end = first.checked_add(length.checked_sub(1)?)?;
        spans.push(first..=end);
    }
    let mut calls = 0u64;
    let mut shares = Vec::new();
    // Each takes a byte at least: what is claimed beyond the bytes ends the loop.
    for rank in spans.into_iter().flatten() {
        calls = calls.wrapping_add(reader.get_signed()? as u64);
        shares.push((rank, Share { calls, time_ns: 0 }));
    }
    for (_, share) in &mut shares {
        let &[low, middle, high] = reader.take(3)?.first_chunk()?;
        share.time_ns = unpacked(u32::from_le_bytes([low, middle, high, 0]));
    }
    Some(shares)
}

/// `ns`, rounded to [`SHARE_BITS`] bits, in 24: by how many bits it is shifted, and the bits.
fn packed(ns: u64) -> u32 {
    let shift = |ns: u64| (u64::BITS - ns.leading_zeros()).saturating_sub(SHARE_BITS);
    let half = 1u64 << shift(ns) >> 1;
    // Rounding may carry into a bit more.
    let rounded = ns.saturating_add(half);
    let shift = shift(rounded);
    shift << SHARE_BITS | (rounded >> shift) as u32
}

fn unpacked(packed: u32) -> u64 {
    u64::from(packed & ((1 << SHARE_BITS) - 1)) << (packed >> SHARE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Vec<Aggregate>> {
        let entry = (0u32..4, 0u16..3, 1u64..1000, 1u64..1 << 40, 0u64..1 << 50).prop_map(
            |(site, function, calls, time, bytes)| {
                let (mean, timed) = (time / calls, function > 0);
                Aggregate {
                    site: site.checked_sub(1),
                    function,
                    calls,
                    time_ns: if timed { time as f64 } else { 0.0 },
                    time_sq: (mean as f64).powi(2) * calls as f64,
                    min_ns: (mean / 2) as f64,
                    max_ns: (mean * 2) as f64,
                    sent: bytes,
                    received: bytes / 3,
                }
            },
        );
        prop::collection::vec(entry, 0..8)
    }

    fn made(ranks: &[(Vec<Aggregate>, bool)]) -> Vec<Totals> {
        let (app, library) = ("/bin/app".to_owned(), "/lib/libx.so".to_owned());
        let site = |module, offset, caller| Site { module, offset, caller };
        let of = |(rank, (entries, turned)): (usize, &(Vec<Aggregate>, bool))| {
            // Modules and sites are numbered as each rank met them.
            let (modules, sites) = match turned {
                false => ([app.clone(), library.clone()], [site(0, 64, 0), site(1, 16, 1), site(0, 80, 0)]),
                true => ([library.clone(), app.clone()], [site(1, 80, 0), site(1, 64, 0), site(0, 16, 2)]),
            };
            Totals::of(rank as u32 * 3 / 2, &modules, &sites, entries)
        };
        ranks.iter().enumerate().map(of).collect()
    }

    fn joined(parts: impl IntoIterator<Item = Totals>) -> Totals {
        parts.into_iter().fold(Totals::default(), |mut all, part| {
            all.join(part);
            all
        })
    }

    /// By name, as modules are numbered by who came first.
    fn named(totals: &Totals) -> Vec<String> {
        let mut lines: Vec<String> = totals.places().map(|place| format!("{place:?}")).collect();
        lines.sort();
        lines.extend(totals.shares().map(|share| format!("{share:?}")));
        lines
    }

    proptest! {
        #[test]
        fn they_come_back_and_any_order_of_ranks_gives_the_same(
            ranks in prop::collection::vec((entries(), any::<bool>()), 0..6),
            split in any::<prop::sample::Index>(),
        ) {
            let parts = made(&ranks);
            let all = joined(parts.clone());
            let bytes = all.encode();
            prop_assert_eq!(Totals::decode(&bytes), Some(all.clone()));
            prop_assert_eq!(named(&joined(parts.iter().rev().cloned())), named(&all));
            // As the tree has it: some first, and what they come to travels.
            let (left, right) = parts.split_at(split.index(parts.len() + 1));
            let halves = [left, right].map(|half| Totals::decode(&joined(half.to_vec()).encode()).unwrap());
            prop_assert_eq!(named(&joined(halves)), named(&all));
            // A naive sum.
            let calls: u64 = ranks.iter().flat_map(|(entries, _)| entries).map(|entry| entry.calls).sum();
            prop_assert_eq!(all.places().map(|(.., total)| total.calls).sum::<u64>(), calls);
            prop_assert_eq!(all.shares().map(|(.., share)| share.calls).sum::<u64>(), calls);
            for cut in 0..bytes.len() {
                prop_assert_eq!(Totals::decode(&bytes[..cut]), None);
            }
        }

        #[test]
        fn any_bytes_are_totals_or_not(bytes: Vec<u8>) {
            let _ = Totals::decode(&bytes);
        }

        #[test]
        fn times_of_ranks_keep_eighteen_bits(ns: u64, bits in 0u32..64) {
            let ns = ns >> bits;
            let back = unpacked(packed(ns));
            prop_assert!(packed(ns) < 1 << 24);
            prop_assert!(back.abs_diff(ns) <= ns >> SHARE_BITS, "{ns} {back}");
            prop_assert_eq!(packed(back), packed(ns));
        }
    }

    #[test]
    fn extremes_name_their_ranks_and_the_lowest_of_equal_ones() {
        let entry = |time_ns: f64, min_ns: f64, max_ns: f64| Aggregate {
            site: Some(0),
            calls: 2,
            time_ns,
            min_ns,
            max_ns,
            ..Aggregate::default()
        };
        let modules = ["/bin/app".to_owned()];
        let of = |rank, entries: &[Aggregate]| Totals::of(rank, &modules, &[Site::default()], entries);
        // Two threads of rank 1 take the most together.
        let parts = [
            of(2, &[entry(9.0, 4.0, 5.0)]),
            of(1, &[entry(6.0, 3.0, 3.0), entry(5.0, 1.0, 4.0)]),
            of(3, &[entry(9.0, 1.0, 5.0)]),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let all = joined(order.map(|part| parts[part].clone()));
            let (_, _, total) = all.places().next().unwrap();
            let extremes = [total.shortest, total.longest, total.most].map(|one| (one.ns, one.rank));
            assert_eq!((total.calls, total.time_ns, extremes), (8, 29, [(1, 1), (5, 2), (11, 1)]));
        }
    }

    #[test]
    fn a_rank_and_function_takes_few_bytes() {
        let modules = ["/opt/app/bin/solver".to_owned()];
        let sites: Vec<Site> = (0..5).map(|n| Site { offset: 4000 + 60 * n, ..Site::default() }).collect();
        let of = |rank: u32| {
            let entry = |function: u16| Aggregate {
                site: Some(function.into()),
                function,
                calls: 10_000,
                time_ns: f64::from(rank * 7919 % 1009 + 1) * 123_456.7,
                time_sq: 1e13 / f64::from(rank + 1),
                min_ns: 100.0 + f64::from(rank),
                max_ns: 1e6 * f64::from(rank % 7),
                sent: 1 << 30,
                received: 1 << 30,
            };
            Totals::of(rank, &modules, &sites, &(0..5).map(entry).collect::<Vec<_>>())
        };
        let bytes = joined((0..1000).map(of)).encode().len();
        assert!(bytes < 5 * 1000 * 4 + 600, "{bytes}");
    }
}
