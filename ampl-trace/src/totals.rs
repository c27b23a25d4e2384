//! Exact totals of a run: of each place that calls MPI over all ranks, and of each rank by function.
//!
//! Totals of ranks may be [joined](Totals::join) in any order: numbers are whole nanoseconds and bytes, and of equal
//! extremes the lowest rank's counts. A rank's time in a function is kept to [`SHARE_BITS`] bits.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::{FUNCTION_COUNT, Function};

use crate::site::{Aggregate, Site, call_path};
use crate::varint::{Reader, put, put_signed};

mod details;
mod spread;
mod way;

pub use spread::{LEAST, Spread};
pub use way::{MOST_CALLERS, Way};

/// Stands for calls beyond a rank's table of sites: of several functions, at several places.
pub const SEVERAL: u16 = u16::MAX;

/// Significant bits of the time that a rank took in a function.
pub const SHARE_BITS: u32 = 18;

/// An extreme time, and its rank.
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
    /// Number of calls.
    pub calls: u64,
    /// Time in them, nanoseconds; 0 for functions that are counted and not timed.
    pub time_ns: u64,
    /// Sum of squares of their times, ns².
    pub time_sq: u128,
    /// The shortest call.
    pub shortest: Extreme,
    /// The longest.
    pub longest: Extreme,
    /// Time of the rank that took the most time here.
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

    /// Adds `other`, but for the rank that took the most.
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

/// Calls and time of a rank in a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Calls.
    pub calls: u64,
    /// Time in them, nanoseconds, to [`SHARE_BITS`] bits.
    pub time_ns: u64,
}

/// A place: the function called, then module and offset of each frame, from the call outwards.
type Place = (u16, Vec<(u32, u64)>);

/// Details of a place beside its total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Detail {
    spread: Spread,
    /// Functions on the way, where calls were sampled.
    way: Option<Way>,
}

/// A place, its total and its details.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// The function; [`SEVERAL`] for calls beyond the table of sites.
    pub function: u16,
    /// Modules and offsets of the path from the call outwards; empty where unknown.
    pub path: Vec<(&'a str, u64)>,
    /// Its total.
    pub total: &'a Total,
    /// Spread over ranks, where the trace has it.
    pub spread: Option<&'a Spread>,
    /// Its callers: modules, and one more than the offsets of functions, from the call outwards; and whether
    /// they differ beyond.
    pub callers: Option<(Vec<(&'a str, u64)>, bool)>,
}

/// Exact totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    modules: Vec<String>,
    places: BTreeMap<Place, Total>,
    details: BTreeMap<Place, Detail>,
    /// Calls and times by function and rank.
    shares: BTreeMap<(u16, u32), Share>,
}

impl Totals {
    /// Totals of `rank`, whose entries name `sites` in `modules`.
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
        for (place, total) in &mut totals.places {
            total.most.ns = total.time_ns;
            let spread = Spread::of(total.calls, Extreme { ns: total.time_ns, rank });
            // Beyond the table ranks may mean different places.
            if place.0 != SEVERAL {
                totals.details.insert(place.clone(), Detail { spread, way: None });
            }
        }
        totals.shares.values_mut().for_each(|share| share.time_ns = unpacked(packed(share.time_ns)));
        totals
    }

    /// Adds the way of calls of `function` at a site of that path; modules as in [`Totals::of`].
    pub fn add_way(&mut self, function: u16, path: Vec<(u32, u64)>, way: Way) {
        if let Some(detail) = self.details.get_mut(&(function, path)) {
            match &mut detail.way {
                Some(known) => known.join(&way),
                none => *none = Some(way),
            }
        }
    }

    /// Gives every module the name that `of` makes of its path.
    pub fn rename_modules(&mut self, of: impl FnMut(&String) -> String) {
        self.modules = self.modules.iter().map(of).collect();
    }

    /// Adds the totals of other ranks.
    pub fn join(&mut self, other: Self) {
        let mut number = |module: &String| {
            let known = self.modules.iter().position(|known| known == module);
            known.unwrap_or_else(|| {
                self.modules.push(module.clone());
                self.modules.len() - 1
            }) as u32
        };
        let numbers: Vec<u32> = other.modules.iter().map(&mut number).collect();
        let renumber = |path: &mut Vec<(u32, u64)>| {
            for (module, _) in path {
                *module = numbers.get(*module as usize).copied().unwrap_or(u32::MAX);
            }
        };
        let mut details = other.details;
        for (place, theirs) in other.places {
            let detail = details.remove(&place);
            let (function, mut path) = place;
            renumber(&mut path);
            let is_new = !self.places.contains_key(&(function, path.clone()));
            let detail = detail.map(|mut detail| {
                detail.way.iter_mut().for_each(|way| renumber(&mut way.functions));
                detail
            });
            self.join_detail((function, path.clone()), detail, is_new);
            let ours = self.places.entry((function, path)).and_modify(|total| {
                total.add(&theirs);
                total.most = total.most.longer(theirs.most);
            });
            ours.or_insert(theirs);
        }
        self.shares.extend(other.shares);
    }

    /// Adds the details of a place of other ranks.
    fn join_detail(&mut self, place: Place, theirs: Option<Detail>, is_new: bool) {
        match (self.details.get_mut(&place), theirs) {
            (Some(ours), Some(theirs)) => {
                ours.spread.join(&theirs.spread);
                match (&mut ours.way, theirs.way) {
                    (Some(ours), Some(theirs)) => ours.join(&theirs),
                    (ours, theirs) => *ours = ours.take().or(theirs),
                }
            }
            (None, Some(theirs)) if is_new => drop(self.details.insert(place, theirs)),
            // One part has no details: the whole has none.
            _ => drop(self.details.remove(&place)),
        }
    }

    /// As [`Totals::places`], with the details of each.
    pub fn known(&self) -> impl Iterator<Item = Known<'_>> {
        let name = |&(module, offset): &(u32, u64)| {
            (self.modules.get(module as usize).map_or("", String::as_str), offset)
        };
        self.places.iter().map(move |(place, total)| {
            let detail = self.details.get(place);
            let callers = detail.and_then(|detail| detail.way.as_ref());
            Known {
                function: place.0,
                path: place.1.iter().map(name).collect(),
                total,
                spread: detail.map(|detail| &detail.spread).filter(|spread| spread.ranks > 0),
                callers: callers.map(|way| (way.functions.iter().map(name).collect(), way.several)),
            }
        })
    }

    /// Each place: function ([`SEVERAL`] for those beyond the table), modules and offsets of the path from the call
    /// outwards (empty where unknown), and its total.
    pub fn places(&self) -> impl Iterator<Item = (u16, Vec<(&str, u64)>, &Total)> {
        let name = |module: u32| self.modules.get(module as usize).map_or("", String::as_str);
        self.places.iter().map(move |((function, path), total)| {
            (*function, path.iter().map(|&(module, offset)| (name(module), offset)).collect(), total)
        })
    }

    /// Calls and time of each rank in each function, by function, then by rank.
    pub fn shares(&self) -> impl Iterator<Item = (u16, u32, Share)> + '_ {
        self.shares.iter().map(|(&(function, rank), &share)| (function, rank, share))
    }

    /// Calls of `rank` of `function`.
    pub fn calls(&self, function: u16, rank: u32) -> u64 {
        self.shares.get(&(function, rank)).map_or(0, |share| share.calls)
    }

    /// Calls and time of each rank in `function`, by rank.
    pub fn shares_of(&self, function: u16) -> impl Iterator<Item = (u32, Share)> + '_ {
        let shares = self.shares.range((function, 0)..=(function, u32::MAX));
        shares.map(|(&(_, rank), &share)| (rank, share))
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
        self.put_details(&mut out);
        out
    }

    /// The totals that were encoded; `None` if they make no sense.
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
        while !reader.is_empty() {
            let number = reader.get()?;
            let length = usize::try_from(reader.get()?).ok()?;
            totals.get_details(number, reader.take(length)?)?;
        }
        Some(totals)
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
mod tests;
