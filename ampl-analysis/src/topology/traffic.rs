//! Topologies of a run's messages: each pattern by the places that make it, with its share of the traffic.
//!
//! Places with equal edges are one part, whatever their directions. Parts are joined where their union is a shape
//! that no part is by itself. Where places alone do not explain the traffic, partners are told apart by their ordinals, or
//! edges by their volumes; the division that explains most is reported.

use rustc_hash::FxHashMap;

use super::directions::choose_reading;
use super::graph::{Graph, TooLarge};
use super::identify::{Options, Topology, identify};
use super::shape::Shape;
use super::volumes::layers;
use crate::messages::{Comm, Flow, Kind, Messages};

/// Most ends of edges that all attempts to join parts look at.
const MOST_ENDS: u64 = 60_000_000;

/// Most parts that are joined in pairs, and with one left out.
const MOST_PAIRED: usize = 10;
const MOST_LEFT_OUT: usize = 16;

/// Share of the score that a finer division must gain.
const GAIN: f64 = 0.001;

/// Worth of a shape that is composed of others: little traffic beside a plain shape may make one by chance.
const COMPOSED: f64 = 0.98;

/// Traffic of an edge in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Messages.
    pub messages: f64,
    /// Bytes.
    pub bytes: f64,
}

impl Weight {
    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// An undirected edge, the lesser rank first.
pub type WeightedEdge = (u32, u32, Weight);

/// Edges of one or several patterns, and their topology.
#[derive(Clone, Debug)]
pub struct Found {
    /// Edges, ascending.
    pub edges: Vec<WeightedEdge>,
    /// Volume below which edges were left to others; `None` where volumes did not decide.
    pub least: Option<f64>,
    /// Topology of the edges.
    pub topology: Topology,
    /// Places that make them: indices into [`Messages::places`], ascending.
    pub places: Vec<u32>,
}

/// Messages of some places.
#[derive(Clone, Debug)]
struct Part {
    edges: Vec<WeightedEdge>,
    places: Vec<u32>,
}

impl Part {
    fn weight(&self) -> Weight {
        let mut sum = Weight::default();
        self.edges.iter().for_each(|edge| sum.add(edge.2));
        sum
    }

    fn same_edges(&self, other: &Self) -> bool {
        let pairs = self.edges.iter().zip(&other.edges);
        self.edges.len() == other.edges.len() && pairs.into_iter().all(|(a, b)| (a.0, a.1) == (b.0, b.1))
    }
}

/// All edges of `messages`, undirected; a rank's messages to itself are left out.
pub fn all_edges(messages: &Messages) -> Vec<WeightedEdge> {
    let flows: Vec<&Flow> = messages.flows.iter().collect();
    part(&flows).edges
}

/// Patterns of `messages`, those of most bytes first. Kinds of transfers are never joined.
///
/// # Errors
/// [`TooLarge`] from 2^31 edges on.
pub fn patterns(messages: &Messages, options: &Options<'_>) -> Result<Vec<Found>, TooLarge> {
    let mut all = Vec::new();
    for kind in [Kind::Message, Kind::Neighbour, Kind::OneSided] {
        let of_kind = |flow: &&Flow| messages.places[flow.place as usize].kind == kind;
        let flows: Vec<&Flow> = messages.flows.iter().filter(of_kind).collect();
        if !part(&flows).edges.is_empty() {
            all.extend(of_flows(messages, &flows, options)?);
        }
    }
    let bytes =
        |found: &Found| found.edges.iter().map(|edge| edge.2.bytes + 1e-9 * edge.2.messages).sum::<f64>();
    all.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    Ok(all)
}

/// Patterns of some flows, which have edges.
fn of_flows(messages: &Messages, flows: &[&Flow], options: &Options<'_>) -> Result<Vec<Found>, TooLarge> {
    let mut search = Search { ranks: messages.ranks, options, ends: 0 };
    // Each division is finer than the one before it.
    let kind = |flow: &Flow| match messages.places[flow.place as usize].comm {
        Comm::World => 0_u8,
        Comm::Itself => 1,
        Comm::Made(_) => 2,
    };
    let place = |flow: &Flow| line(messages, flow);
    let divisions = [
        parts(flows, |flow| (place(flow), 0, 0)),
        parts(flows, |flow| (place(flow), kind(flow), 0)),
        parts(flows, |flow| (place(flow), kind(flow), flow.ordinal)),
    ];
    let whole = union(&divisions[0].iter().collect::<Vec<_>>());
    let total = whole.weight();
    let edges = |part: &Part| part.edges.iter().map(|&(u, v, _)| (u, v)).collect();
    let directions: Vec<Vec<(u32, u32)>> = divisions[2].iter().map(edges).collect();
    let (mut best, mut score, mut size) = (Vec::new(), f64::MIN, 0);
    if let Some(found) = search.by_members(messages, flows, &whole)? {
        (best, score) = (found, 1.0);
    }
    for division in divisions {
        if division.len() > size && score < 1.0 - GAIN {
            size = division.len();
            let found = search.explained(division)?;
            let other = search.score(&found, total);
            let is_first = score == f64::MIN;
            if is_first || (other > score + GAIN && search.has_main(&found, &whole)) {
                (best, score) = (found, other);
            }
        }
    }
    // Volumes decide where no division by places does.
    if size > 1 && score < 1.0 - GAIN {
        let found = search.layered(&whole)?;
        if search.score(&found, total) > score + GAIN && search.has_main(&found, &whole) {
            best = found;
        }
    }
    let patterns = best.iter_mut().flat_map(|found| &mut found.topology.patterns);
    patterns.for_each(|pattern| choose_reading(pattern, &directions));
    Ok(best)
}

/// Function and call path of a flow, whatever its communicator.
fn line(messages: &Messages, flow: &Flow) -> (u16, u32) {
    let place = messages.places[flow.place as usize];
    (place.function.0, place.path)
}

/// Number of ranks that `edges` connect.
fn touched(edges: &[WeightedEdge]) -> usize {
    let mut ranks: Vec<u32> = edges.iter().flat_map(|&(u, v, _)| [u, v]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.len()
}

/// The flows by `key`; those with equal edges together.
fn parts<K: Ord>(flows: &[&Flow], key: impl Fn(&Flow) -> K) -> Vec<Part> {
    let mut keyed: std::collections::BTreeMap<K, Vec<&Flow>> = std::collections::BTreeMap::new();
    for &flow in flows {
        keyed.entry(key(flow)).or_default().push(flow);
    }
    let mut parts: Vec<Part> = Vec::new();
    for flows in keyed.values() {
        let fresh = part(flows);
        if fresh.edges.is_empty() {
            continue;
        }
        match parts.iter().position(|known| known.same_edges(&fresh)) {
            Some(at) => parts[at] = union(&[&parts[at], &fresh]),
            None => parts.push(fresh),
        }
    }
    parts
}

fn part(flows: &[&Flow]) -> Part {
    let mut edges: Vec<WeightedEdge> = Vec::new();
    for edge in flows.iter().flat_map(|flow| &flow.edges).filter(|edge| edge.from != edge.to) {
        let weight = Weight { messages: edge.messages as f64, bytes: edge.bytes as f64 };
        edges.push((edge.from.min(edge.to), edge.from.max(edge.to), weight));
    }
    let mut places: Vec<u32> = flows.iter().map(|flow| flow.place).collect();
    places.sort_unstable();
    places.dedup();
    Part { edges: summed(edges), places }
}

fn summed(mut edges: Vec<WeightedEdge>) -> Vec<WeightedEdge> {
    edges.sort_unstable_by_key(|&(u, v, _)| (u, v));
    edges.dedup_by(|again, kept| {
        let same = (again.0, again.1) == (kept.0, kept.1);
        if same {
            kept.2.add(again.2);
        }
        same
    });
    edges
}

fn union(parts: &[&Part]) -> Part {
    let edges = parts.iter().flat_map(|part| part.edges.iter().copied()).collect();
    let mut places: Vec<u32> = parts.iter().flat_map(|part| part.places.iter().copied()).collect();
    places.sort_unstable();
    places.dedup();
    Part { edges: summed(edges), places }
}

/// Attempts to name parts.
struct Search<'a> {
    ranks: u32,
    options: &'a Options<'a>,
    /// Ends of edges that attempts have looked at.
    ends: u64,
}

impl Search<'_> {
    fn graph(&self, part: &Part) -> Result<Graph, TooLarge> {
        let edges: Vec<(u32, u32)> = part.edges.iter().map(|&(u, v, _)| (u, v)).collect();
        Graph::from_edges(self.ranks, &edges)
    }

    /// Topology of a part, if each of its components has a name.
    fn named(&mut self, part: &Part) -> Result<Option<Topology>, TooLarge> {
        self.ends += 2 * part.edges.len() as u64;
        let topology = identify(&self.graph(part)?, self.options);
        Ok(Some(topology).filter(|topology| topology.unknown.is_empty() && !topology.patterns.is_empty()))
    }

    /// True where the edges of `part` connect the ranks of each component of `whole` that it touches.
    fn spans(&self, part: &Part, whole: &Part) -> Result<bool, TooLarge> {
        let count = |part: &Part| -> Result<(usize, usize), TooLarge> {
            let components = self.graph(part)?.components();
            let many: Vec<usize> =
                components.iter().map(|component| component.ranks.len()).filter(|&ranks| ranks > 1).collect();
            Ok((many.len(), many.iter().sum()))
        };
        Ok(count(part)? == count(whole)?)
    }

    /// Patterns of communicators of some of the ranks, and of those of all of them, each by itself; `None` where there
    /// are not both, where one of them has no name, or where it takes the former to connect all ranks.
    fn by_members(
        &mut self,
        messages: &Messages,
        flows: &[&Flow],
        whole: &Part,
    ) -> Result<Option<Vec<Found>>, TooLarge> {
        let comm = |flow: &Flow| messages.places[flow.place as usize].comm;
        let mut made: FxHashMap<Comm, Vec<&Flow>> = FxHashMap::default();
        for &flow in flows.iter().filter(|flow| matches!(comm(flow), Comm::Made(_))) {
            made.entry(comm(flow)).or_default().push(flow);
        }
        let all = touched(&whole.edges);
        made.retain(|_, flows| touched(&part(flows).edges) < all);
        let (some, every): (Vec<&Flow>, Vec<&Flow>) =
            flows.iter().copied().partition(|&flow| made.contains_key(&comm(flow)));
        if some.is_empty() || !self.spans(&part(&every), whole)? {
            return Ok(None);
        }
        let mut both = Vec::new();
        for flows in [every, some] {
            both.extend(self.explained(parts(&flows, |flow| line(messages, flow)))?);
        }
        let is_named = |found: &Found| {
            let plain = found.topology.patterns.iter().all(|pattern| is_plain(&pattern.shape));
            found.least.is_none() && found.topology.unknown.is_empty() && plain
        };
        Ok(both.iter().all(is_named).then_some(both))
    }

    /// The parts in groups that have names, and the rest by volume.
    fn explained(&mut self, mut parts: Vec<Part>) -> Result<Vec<Found>, TooLarge> {
        let mut found = Vec::new();
        parts.sort_by(|a, b| heavier(&b.weight(), &a.weight()));
        while let Some((taken, topology)) = self.subset(&parts)? {
            let members: Vec<&Part> = taken.iter().map(|&at| &parts[at]).collect();
            let joined = union(&members);
            found.push(Found { edges: joined.edges, least: None, topology, places: joined.places });
            let mut at = 0;
            parts.retain(|_| {
                at += 1;
                !taken.contains(&(at - 1))
            });
        }
        if !parts.is_empty() {
            let rest = union(&parts.iter().collect::<Vec<_>>());
            found.extend(self.layered(&rest)?);
        }
        Ok(found)
    }

    /// The parts, by index, that have a name together, and their topology.
    fn subset(&mut self, parts: &[Part]) -> Result<Option<(Vec<usize>, Topology)>, TooLarge> {
        let all: Vec<usize> = (0..parts.len()).collect();
        let mut candidates = vec![all.clone()];
        if parts.len() > 2 {
            // The lightest is left out first.
            if parts.len() <= MOST_LEFT_OUT {
                let without = |out: usize| all.iter().copied().filter(|&at| at != out).collect::<Vec<_>>();
                candidates.extend(all.iter().rev().map(|&out| without(out)));
            }
            let whole = union(&parts.iter().collect::<Vec<_>>());
            let mut pieces = Vec::new();
            for &at in &all {
                if !self.spans(&parts[at], &whole)? {
                    pieces.push(at);
                }
            }
            candidates.push(pieces);
            if parts.len() <= MOST_PAIRED {
                let pairs =
                    all.iter().flat_map(|&one| all[one + 1..].iter().map(move |&other| vec![one, other]));
                candidates.extend(pairs);
            }
        }
        candidates.extend(all.iter().map(|&at| vec![at]));
        let mut composed: Option<(Vec<usize>, Topology)> = None;
        for taken in candidates.into_iter().filter(|taken| !taken.is_empty()) {
            if self.ends > MOST_ENDS {
                break;
            }
            let members: Vec<&Part> = taken.iter().map(|&at| &parts[at]).collect();
            let joined = union(&members);
            let Some(topology) = self.named(&joined)? else { continue };
            // Where one of them is all of it, a part that is a pattern of its own on the same ranks stays apart.
            let all_of_it = members.iter().position(|part| part.same_edges(&joined));
            let mut kept = Vec::new();
            for (&at, member) in taken.iter().zip(&members) {
                let apart = match all_of_it {
                    Some(largest) if taken[largest] != at => self.spans(member, &joined)?,
                    _ => false,
                };
                if !apart {
                    kept.push(at);
                }
            }
            let plain = topology.patterns.iter().all(|pattern| is_plain(&pattern.shape));
            match &composed {
                None if plain => return Ok(Some((kept, topology))),
                // A plain shape of part of it says more, if it is as large.
                Some((_, other)) if plain && least_copy(&topology) >= least_copy(other) => {
                    return Ok(Some((kept, topology)));
                }
                None => composed = Some((kept, topology)),
                Some(_) => {}
            }
        }
        Ok(composed)
    }

    /// A part by volumes.
    fn layered(&mut self, part: &Part) -> Result<Vec<Found>, TooLarge> {
        let by_bytes = part.weight().bytes > 0.0;
        let volume = |weight: &Weight| if by_bytes { weight.bytes } else { weight.messages };
        let edges = part.edges.iter().map(|(u, v, weight)| (*u, *v, volume(weight))).collect();
        let weights: FxHashMap<(u32, u32), Weight> =
            part.edges.iter().map(|&(u, v, weight)| ((u, v), weight)).collect();
        let layers = layers(self.ranks, edges, self.options)?;
        Ok(layers
            .into_iter()
            .map(|layer| Found {
                edges: layer.edges.iter().map(|&(u, v, _)| (u, v, weights[&(u, v)])).collect(),
                least: layer.least,
                topology: layer.topology,
                places: part.places.clone(),
            })
            .collect())
    }

    /// True where one shape, in one or several copies, takes in all ranks and half of the traffic. Without one, parts
    /// of something irregular would have names by chance.
    fn has_main(&self, found: &[Found], whole: &Part) -> bool {
        let (all, total) = (touched(&whole.edges), whole.weight());
        found.iter().any(|found| {
            let mut weight = Weight::default();
            found.edges.iter().for_each(|edge| weight.add(edge.2));
            let half = if total.bytes > 0.0 {
                2.0 * weight.bytes >= total.bytes
            } else {
                2.0 * weight.messages >= total.messages
            };
            let one = found.topology.patterns.len() == 1 && found.topology.unknown.is_empty();
            half && one && touched(&found.edges) == all
        })
    }

    /// Share of the traffic that has a name, that of small copies less: from 0 to 1.
    fn score(&self, found: &[Found], total: Weight) -> f64 {
        let by_bytes = total.bytes > 0.0;
        let of = |weight: Weight| if by_bytes { weight.bytes } else { weight.messages };
        let mut component = vec![0_u32; self.ranks as usize];
        let edges: Vec<(u32, u32)> =
            found.iter().flat_map(|found| found.edges.iter().map(|&(u, v, _)| (u, v))).collect();
        if let Ok(graph) = Graph::from_edges(self.ranks, &edges) {
            for part in graph.components() {
                part.ranks.iter().for_each(|&rank| component[rank as usize] = part.ranks.len() as u32);
            }
        }
        let mut score = 0.0;
        for found in found {
            let mut size = vec![0.0_f64; self.ranks as usize];
            for pattern in &found.topology.patterns {
                let plainness = if is_plain(&pattern.shape) { 1.0 } else { COMPOSED };
                for copy in &pattern.copies {
                    let own = plainness * copy.ranks.len() as f64;
                    copy.ranks.iter().for_each(|&rank| size[rank as usize] = own);
                }
            }
            for &(u, _, weight) in &found.edges {
                let (own, all) = (size[u as usize], component[u as usize].max(1));
                score += of(weight) * own / f64::from(all);
            }
        }
        if of(total) > 0.0 { score / of(total) } else { 0.0 }
    }
}

/// Ranks of the smallest copy of a shape.
fn least_copy(topology: &Topology) -> usize {
    let copies = topology.patterns.iter().flat_map(|pattern| &pattern.copies);
    copies.map(|copy| copy.ranks.len()).min().unwrap_or(0)
}

fn is_plain(shape: &Shape) -> bool {
    !matches!(shape, Shape::Product(_) | Shape::Hamming(_) | Shape::CompleteBipartite(..))
}

fn heavier(a: &Weight, b: &Weight) -> std::cmp::Ordering {
    a.bytes.total_cmp(&b.bytes).then(a.messages.total_cmp(&b.messages))
}
