//! Reading of one rank's calls after the other.

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, Kind as ParamKind, Traffic};
use ampl_core::value::{ANY_SOURCE, PROC_NULL};
use ampl_trace::communicators::Communicators;
use ampl_trace::model::call_path;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, GAP};
use ampl_trace::structure::{RankStructure, Signature};
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{
    bytes, comm_word, is_neighbour, made_window, matters, neighbour_bytes, starts, window_comm,
};
use super::neighbours::{Graphs, Topologies};
use super::sources::{Parts, completed, maker, of_status, one, parts};
use super::{Comm, Edge, Flow, Frame, Kind, Messages, Place, Volume};
use crate::calls::{Objects, is_whole};
use crate::scope::{Scope, Scopes};

/// Most runs of all ranks' sequences that are walked, where a number names several communicators in turn.
const MOST_RUNS: u64 = 50_000_000;

/// Key of messages that a rank receives from another.
type Pair = (u32, u32);

/// Builds [`Messages`] from ranks.
#[derive(Debug)]
pub struct Reader<'a> {
    ranks: u32,
    scopes: Scopes<'a>,
    graphs: Graphs,
    built: Messages,
    paths: FxHashMap<Vec<Frame>, u32>,
    places: FxHashMap<Place, u32>,
    flows: FxHashMap<(u32, u32), usize>,
    /// Messages and bytes by receiver's place and pair.
    received: FxHashMap<(u32, Pair), Volume>,
    runs: u64,
}

/// One rank while it is read.
struct Rank<'r, 'a> {
    structure: &'r RankStructure,
    objects: Objects<'r>,
    topologies: Option<Topologies<'r>>,
    /// Starts of persistent requests, by thread and terminal of their makers.
    starts: FxHashMap<(u32, u32), u64>,
    /// Communicators by word, where a word stands for one.
    comms: FxHashMap<u64, Option<Scope<'a>>>,
    /// Sums by place and partner, in the order of the calls.
    sums: Vec<((u32, u32), Volume)>,
    index: FxHashMap<(u32, u32), usize>,
}

impl<'a> Reader<'a> {
    /// A reader of the ranks of a job.
    pub fn new(ranks: u32, comms: &'a Communicators, graphs: Graphs) -> Self {
        Self {
            ranks,
            scopes: Scopes::new(comms),
            graphs,
            built: Messages::default(),
            paths: FxHashMap::default(),
            places: FxHashMap::default(),
            flows: FxHashMap::default(),
            received: FxHashMap::default(),
            runs: 0,
        }
    }

    /// Adds the messages of a rank.
    pub fn read(&mut self, structure: &RankStructure) {
        let mut rank = Rank {
            structure,
            objects: Objects::of(structure, self.ranks),
            topologies: None,
            starts: starts(structure),
            comms: FxHashMap::default(),
            sums: Vec::new(),
            index: FxHashMap::default(),
        };
        let mut gap = false;
        for thread in &structure.threads {
            let mut counts = vec![0_u64; thread.signatures.len()];
            for (terminal, count) in thread.grammar.totals() {
                if let Some(sum) = counts.get_mut(terminal as usize) {
                    *sum = sum.saturating_add(count);
                }
            }
            let mut unclear: FxHashSet<u32> = FxHashSet::default();
            for ((terminal, signature), &count) in (0..).zip(&thread.signatures).zip(&counts) {
                gap |= signature.function == GAP && count > 0;
                if count == 0 || usize::from(signature.function) >= FUNCTION_COUNT {
                    continue;
                }
                let spec = Function(signature.function).spec();
                if matters(spec.traffic, spec.name) && signature.flags & (CALL_ERROR | CALL_MISS) == 0 {
                    if signature.flags & CALL_NO_ARGS != 0 {
                        self.built.without_arguments = self.built.without_arguments.saturating_add(count);
                    } else if self.is_unclear(&mut rank, signature) {
                        unclear.insert(terminal);
                    } else {
                        self.call(&mut rank, thread.thread, terminal, signature, count, None);
                    }
                }
                self.completion(&mut rank, signature, count);
            }
            if !unclear.is_empty() {
                self.walk(&mut rank, thread, &unclear);
            }
        }
        if gap {
            self.built.gaps.push(structure.rank);
        }
        self.put(rank.structure.rank, rank.sums);
    }

    /// True where the communicator of a call has a number that names several of them in turn.
    fn is_unclear(&self, rank: &mut Rank<'_, 'a>, signature: &Signature) -> bool {
        let Some(parts) = parts(signature) else { return false };
        let own = rank.structure.rank;
        let word = match one(&parts, "win") {
            Some(win) => match window_comm(rank.structure, win) {
                Some(word) => word,
                // Windows of that number were made on several.
                None => return true,
            },
            None => match comm_word(&parts) {
                Some(word) => word,
                None => return false,
            },
        };
        if Scopes::predefined(own, word).is_some() {
            return false;
        }
        let scopes = &self.scopes;
        let scope = rank.comms.entry(word).or_insert_with(|| {
            let comm = scopes.comms().only(own, word)?;
            scopes.named(own, comm.name)
        });
        // Also where the members are not known: then the walk finds none.
        scope.is_none() && scopes.comms().only(own, word).is_none()
    }

    /// Reads the terminals in `unclear`, with the communicator that the number names at each time.
    fn walk(
        &mut self,
        rank: &mut Rank<'_, 'a>,
        thread: &ampl_trace::structure::ThreadStructure,
        unclear: &FxHashSet<u32>,
    ) {
        let mut follower = self.scopes.comms().follow(rank.structure.rank);
        follower.thread(thread.thread);
        let own = rank.structure.rank;
        let mut windows: FxHashMap<u64, Option<Comm>> = FxHashMap::default();
        let mut counts: FxHashMap<(u32, Option<Comm>), u64> = FxHashMap::default();
        for (terminal, count) in thread.grammar.runs() {
            self.runs += 1;
            if self.runs > MOST_RUNS {
                break;
            }
            let Some(signature) = thread.signatures.get(terminal as usize) else { break };
            follower.made(signature);
            let comm = |word: u64| match Scopes::predefined(own, word) {
                Some(scope) => Some(scope.comm()),
                None => follower.name(word).map(Comm::Made),
            };
            if let Some((win, word)) = made_window(signature) {
                windows.insert(win, comm(word));
            }
            if unclear.contains(&terminal) {
                let of = |parts: Parts<'_>| match one(&parts, "win") {
                    Some(win) => windows.get(&win).copied().flatten(),
                    None => comm_word(&parts).and_then(comm),
                };
                *counts.entry((terminal, parts(signature).and_then(of))).or_default() += count;
            }
            follower.freed(signature);
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        for ((terminal, comm), count) in counts {
            let scope = match comm {
                Some(Comm::World) => Some(Scope::World),
                Some(Comm::Itself) => Some(Scope::Itself(own)),
                Some(Comm::Made(name)) => self.scopes.named(own, name),
                None => None,
            };
            let signature = &thread.signatures[terminal as usize];
            self.call(rank, thread.thread, terminal, signature, count, Some(scope));
        }
    }

    /// The communicator of that word.
    fn scope(&self, rank: &Rank<'_, 'a>, word: u64) -> Option<Scope<'a>> {
        Scopes::predefined(rank.structure.rank, word).or_else(|| rank.comms.get(&word).copied().flatten())
    }

    /// Adds what `count` calls of a signature send, and notes what they receive.
    fn call(
        &mut self,
        rank: &mut Rank<'_, 'a>,
        thread: u32,
        terminal: u32,
        signature: &Signature,
        count: u64,
        scope: Option<Option<Scope<'a>>>,
    ) {
        if !is_whole(signature) {
            return;
        }
        let Some(parts) = parts(signature) else { return };
        let function = Function(signature.function);
        let spec = function.spec();
        let started = || rank.starts.get(&(thread, terminal)).copied().unwrap_or(0);
        let count = match (spec.traffic, spec.class) {
            (Traffic::SendInit | Traffic::RecvInit, _) | (_, Class::PersistentCollective) => started(),
            _ if spec.name.starts_with("MPI_Psend_init") => started(),
            _ => count,
        };
        if count == 0 {
            return;
        }
        let kind = match spec.traffic {
            traffic if traffic.is_window() => Kind::OneSided,
            traffic if is_neighbour(traffic) => Kind::Neighbour,
            _ => Kind::Message,
        };
        let word = match kind {
            Kind::OneSided => one(&parts, "win").and_then(|win| window_comm(rank.structure, win)),
            _ => comm_word(&parts),
        };
        let scope = match (scope, word) {
            (Some(scope), _) => scope,
            (None, Some(word)) => {
                if kind == Kind::OneSided && !rank.comms.contains_key(&word) {
                    let own = rank.structure.rank;
                    let comm = self.scopes.comms().only(own, word);
                    rank.comms.insert(word, comm.and_then(|comm| self.scopes.named(own, comm.name)));
                }
                self.scope(rank, word)
            }
            (None, None) => None,
        };
        let (sent, received) = bytes(signature, &mut rank.objects);
        let mut ends: Vec<(i64, Option<u64>, bool)> = Vec::new();
        match spec.traffic {
            Traffic::Get | Traffic::Recv | Traffic::RecvInit => {}
            _ if kind == Kind::Neighbour => {
                let topologies = rank.topologies.get_or_insert_with(|| Topologies::of(rank.structure));
                let name = match scope.map(Scope::comm) {
                    Some(Comm::Made(name)) => Some(name),
                    _ => None,
                };
                let destinations = word.and_then(|word| topologies.destinations(word, name, &self.graphs));
                match destinations {
                    Some(destinations) => {
                        for (at, to) in destinations.into_iter().enumerate() {
                            ends.push((to, neighbour_bytes(&parts, at, &mut rank.objects), true));
                        }
                    }
                    None => self.built.unplaced.messages = self.built.unplaced.messages.saturating_add(count),
                }
            }
            _ => {
                let to = one(&parts, "dest").or_else(|| one(&parts, "target_rank"));
                ends.extend(to.map(|to| (i64::from(to as i32), sent, true)));
            }
        }
        if matches!(spec.traffic, Traffic::Get | Traffic::GetAccumulate | Traffic::CompareAndSwap) {
            // These bytes come from the target.
            let from = one(&parts, "target_rank");
            ends.extend(from.map(|from| (i64::from(from as i32), received, false)));
        }
        let own = rank.structure.rank;
        for (partner, bytes, outwards) in ends {
            if partner == PROC_NULL {
                continue;
            }
            let volume =
                Volume { messages: count, bytes: bytes.map_or(0, |bytes| bytes.saturating_mul(count)) };
            let Some(partner) = scope.and_then(|scope| scope.world(partner, self.ranks)) else {
                self.built.unplaced.add(volume);
                continue;
            };
            if bytes.is_none() {
                self.built.unsized_messages = self.built.unsized_messages.saturating_add(count);
            }
            let Some(comm) = scope.map(Scope::comm) else { continue };
            let place = self.place(rank.structure, signature, comm, kind);
            if outwards {
                rank.add(place, partner, volume);
            } else {
                // Kept apart by its place: the sender is the other rank.
                self.direct(place, Edge { from: partner, to: own, messages: count, bytes: volume.bytes });
            }
        }
        if matches!(
            spec.traffic,
            Traffic::Recv | Traffic::RecvInit | Traffic::Sendrecv | Traffic::SendrecvReplace
        ) {
            let asked = one(&parts, "source").map(|source| i64::from(source as i32));
            let told = parts.iter().find(|(param, words)| {
                param.kind == ParamKind::Status && words.len() == 1 && spec.class != Class::Nonblocking
            });
            let told = told.and_then(|(_, words)| of_status(words[0]));
            let source = match asked {
                Some(source) if source != ANY_SOURCE => Some(source),
                _ => told,
            };
            let from = source.and_then(|source| scope?.world(source, self.ranks));
            if let (Some(from), Some(comm)) = (from, scope.map(Scope::comm)) {
                let bytes = received.unwrap_or(0).saturating_mul(count);
                let place = self.place(rank.structure, signature, comm, Kind::Message);
                self.received.entry((place, (from, own))).or_default().add(Volume { messages: count, bytes });
            }
        }
    }

    /// Notes the sources that the completion of receives from any source tells.
    fn completion(&mut self, rank: &mut Rank<'_, 'a>, signature: &Signature, count: u64) {
        let function = Function(signature.function);
        let class = function.spec().class;
        let polls = class == Class::Poll && function.name().starts_with("MPI_Test");
        if !(class == Class::Completion || polls) || !is_whole(signature) {
            return;
        }
        let Some(parts) = parts(signature) else { return };
        for (request, status) in completed(function, &parts) {
            let Some((source, (of, terminal))) = of_status(status).zip(maker(request)) else { continue };
            let threads = &rank.structure.threads;
            let Some(maker) = threads.iter().find(|other| other.thread == of) else { continue };
            let Some(made) = maker.signatures.get(terminal as usize) else { continue };
            let Some(made_parts) = self::parts(made).filter(|_| is_whole(made)) else { continue };
            let open =
                one(&made_parts, "source").is_some_and(|source| i64::from(source as i32) == ANY_SOURCE);
            let Some(word) = comm_word(&made_parts).filter(|_| open) else { continue };
            if !rank.comms.contains_key(&word) {
                self.is_unclear(rank, made);
            }
            let Some(scope) = self.scope(rank, word) else { continue };
            let Some(from) = scope.world(source, self.ranks) else { continue };
            let (_, received) = bytes(made, &mut rank.objects);
            let place = self.place(rank.structure, made, scope.comm(), Kind::Message);
            let volume = Volume { messages: count, bytes: received.unwrap_or(0).saturating_mul(count) };
            self.received.entry((place, (from, rank.structure.rank))).or_default().add(volume);
        }
    }

    fn place(&mut self, structure: &RankStructure, signature: &Signature, comm: Comm, kind: Kind) -> u32 {
        let frames = signature.site.checked_sub(1).into_iter();
        let frames = frames.flat_map(|site| call_path(&structure.sites, site)).map(|site| Frame {
            module: structure.modules.get(site.module as usize).cloned().unwrap_or_default(),
            offset: site.offset,
        });
        let frames: Vec<Frame> =
            frames.filter(|frame| !frame.module.is_empty() || frame.offset > 0).collect();
        let built = &mut self.built;
        let path = *self.paths.entry(frames).or_insert_with_key(|frames| {
            built.paths.push(frames.clone());
            built.paths.len() as u32 - 1
        });
        let place = Place { function: Function(signature.function), path, comm, kind };
        *self.places.entry(place).or_insert_with(|| {
            built.places.push(place);
            built.places.len() as u32 - 1
        })
    }

    /// Adds the sums of a rank; the partners of each place are numbered in the order of the calls.
    fn put(&mut self, from: u32, sums: Vec<((u32, u32), Volume)>) {
        let mut ordinals: FxHashMap<u32, u32> = FxHashMap::default();
        for ((place, to), Volume { messages, bytes }) in sums {
            let ordinal = ordinals.entry(place).or_default();
            self.edge(place, *ordinal, Edge { from, to, messages, bytes });
            *ordinal += 1;
        }
    }

    fn edge(&mut self, place: u32, ordinal: u32, edge: Edge) {
        let flows = &mut self.built.flows;
        let at = *self.flows.entry((place, ordinal)).or_insert_with(|| {
            flows.push(Flow { place, ordinal, edges: Vec::new() });
            flows.len() - 1
        });
        flows[at].edges.push(edge);
    }

    fn direct(&mut self, place: u32, edge: Edge) {
        self.edge(place, 0, edge);
    }

    /// The messages of all ranks, completed by the receives from ranks that are not all known.
    pub fn finish(mut self, missing: &[u32]) -> Messages {
        let lacking: FxHashSet<u32> = missing.iter().chain(&self.built.gaps).copied().collect();
        if !lacking.is_empty() || self.built.without_arguments > 0 {
            self.complete(&lacking);
        }
        for flow in &mut self.built.flows {
            flow.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
            flow.edges.dedup_by(|again, kept| {
                let same = (again.from, again.to) == (kept.from, kept.to);
                if same {
                    kept.messages = kept.messages.saturating_add(again.messages);
                    kept.bytes = kept.bytes.saturating_add(again.bytes);
                }
                same
            });
        }
        self.built.flows.sort_unstable_by_key(|flow| (flow.place, flow.ordinal));
        self.built.gaps.sort_unstable();
        self.built
    }

    /// Adds messages that were received and of which no send is known.
    fn complete(&mut self, lacking: &FxHashSet<u32>) {
        let mut sent: FxHashMap<(Comm, Pair), u64> = FxHashMap::default();
        for flow in &self.built.flows {
            let place = self.built.places[flow.place as usize];
            if place.kind == Kind::Message {
                for edge in &flow.edges {
                    *sent.entry((place.comm, (edge.from, edge.to))).or_default() += edge.messages;
                }
            }
        }
        let every = self.built.without_arguments > 0;
        let mut received: Vec<_> = std::mem::take(&mut self.received).into_iter().collect();
        received.sort_unstable_by_key(|(key, _)| *key);
        for ((place, (from, to)), volume) in received {
            if !every && !lacking.contains(&from) {
                continue;
            }
            let comm = self.built.places[place as usize].comm;
            let known = sent.entry((comm, (from, to))).or_default();
            let covered = (*known).min(volume.messages);
            *known -= covered;
            let messages = volume.messages - covered;
            if messages > 0 {
                let share = messages as f64 / volume.messages as f64;
                let bytes = (volume.bytes as f64 * share) as u64;
                self.built.received_only = self.built.received_only.saturating_add(messages);
                self.edge(place, 0, Edge { from, to, messages, bytes });
            }
        }
    }
}

impl Rank<'_, '_> {
    fn add(&mut self, place: u32, partner: u32, volume: Volume) {
        let sums = &mut self.sums;
        let at = *self.index.entry((place, partner)).or_insert_with(|| {
            sums.push(((place, partner), Volume::default()));
            sums.len() - 1
        });
        sums[at].1.add(volume);
    }
}
