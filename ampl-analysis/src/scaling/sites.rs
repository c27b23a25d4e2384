//! Sizes at the call sites of a run: the most of any rank.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::traffic::{Ends, NOBODY};
use ampl_core::mpi::{FUNCTION_COUNT, Function, Kind};
use ampl_core::value::{ANY_SOURCE, PROC_NULL, ROOT};
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::args::{Shape, inputs, shape};
use ampl_trace::model::call_path;
use ampl_trace::structure::{RankStructure, Signature};

use crate::calls::{Arguments, Objects, is_whole};
use crate::comparison::{Scope, depends_on_load};

/// Size that may grow with the number of ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Elements of an array argument, by its name.
    Array(String),
    /// Value of a parameter that counts things, by its name.
    Parameter(String),
    /// Bytes that a call sends.
    Sent,
    /// Bytes that a call receives.
    Received,
    /// Calls of a rank; in each step of the timestep loop where there is one.
    Calls,
    /// Ranks that a rank names as other ends of messages.
    Partners,
}

/// The sizes at each site: the most of any rank.
pub type Sizes = BTreeMap<Scope, BTreeMap<Size, f64>>;

/// Sizes at the call sites of `trace`; calls are divided by `steps`.
pub fn sizes(trace: &Trace, steps: Option<u64>) -> Sizes {
    let mut symbols = Symbols::default();
    let mut found = Sizes::new();
    for selected in trace.structure.select(|_| true) {
        let Some(rank) = selected.structure() else { continue };
        for ((function, site), (sizes, partners)) in of_rank(&rank, trace.run.ranks) {
            let own = found.entry(scope(&rank, function, site, &mut symbols)).or_default();
            for (size, value) in sizes {
                let value =
                    if size == Size::Calls { value / steps.unwrap_or(1).max(1) as f64 } else { value };
                raise(own, size, value);
            }
            if !partners.is_empty() {
                raise(own, Size::Partners, partners.len() as f64);
            }
        }
    }
    found
}

fn raise(sizes: &mut BTreeMap<Size, f64>, size: Size, value: f64) {
    let most = sizes.entry(size).or_default();
    *most = most.max(value);
}

type Own = BTreeMap<(u16, u32), (BTreeMap<Size, f64>, BTreeSet<i64>)>;

fn of_rank(rank: &RankStructure, ranks: u32) -> Own {
    let mut objects = Objects::of(rank, ranks);
    let mut own = Own::new();
    for thread in &rank.threads {
        let mut counts = vec![0u64; thread.signatures.len()];
        for (terminal, count) in thread.grammar.totals() {
            if let Some(sum) = counts.get_mut(terminal as usize) {
                *sum = sum.saturating_add(count);
            }
        }
        for (signature, calls) in thread.signatures.iter().zip(counts) {
            let function = signature.function;
            if calls == 0 || usize::from(function) >= FUNCTION_COUNT || depends_on_load(function) {
                continue;
            }
            let (sizes, partners) = own.entry((function, signature.site)).or_default();
            *sizes.entry(Size::Calls).or_default() += calls as f64;
            if is_whole(signature) {
                add(signature, sizes, partners, &mut objects);
            }
        }
    }
    own
}

fn add(
    signature: &Signature,
    sizes: &mut BTreeMap<Size, f64>,
    partners: &mut BTreeSet<i64>,
    objects: &mut Objects<'_>,
) {
    let spec = Function(signature.function).spec();
    for (param, words) in inputs(spec, &mut &signature.words[..]).into_iter().flatten() {
        match shape(param) {
            Shape::Array => raise(sizes, Size::Array(param.name.to_owned()), words.len() as f64),
            Shape::Scalar if counts(param.kind, param.name) => {
                let value = words.first().map_or(0.0, |&word| (word as i64).max(0) as f64);
                raise(sizes, Size::Parameter(param.name.to_owned()), value);
            }
            _ => {}
        }
    }
    let Some(call) = Arguments::of(signature) else { return };
    if let Some((sent, received)) = call.bytes(objects) {
        raise(sizes, Size::Sent, sent as f64);
        raise(sizes, Size::Received, received as f64);
    }
    if let Some(ends) = Ends::of(spec) {
        let named = ends.named(&call.words);
        let known = [named.dest, named.source].into_iter().filter(|&end| end != NOBODY).map(i64::from);
        partners.extend(known.filter(|end| ![ANY_SOURCE, PROC_NULL, ROOT].contains(end)));
    }
}

/// True for a parameter that is a number of things, not a rank, a colour or a number of all ranks.
fn counts(kind: Kind, name: &str) -> bool {
    matches!(kind, Kind::Int | Kind::Count | Kind::Aint) && name.contains("count")
}

/// The site by function and place, with its callers where they are told apart.
fn scope(rank: &RankStructure, function: u16, site: u32, symbols: &mut Symbols) -> Scope {
    let frames = site.checked_sub(1).into_iter().flat_map(|site| call_path(&rank.sites, site));
    let name = |frame: &ampl_trace::model::Site, symbols: &mut Symbols| {
        let module = rank.modules.get(frame.module as usize).map_or("?", String::as_str);
        symbols.name(if module.is_empty() { "?" } else { module }, frame.offset)
    };
    let place: Vec<String> = frames.map(|frame| name(&frame, symbols)).collect();
    let function = Function(function).name().to_owned();
    match place.is_empty() {
        true => Scope::Function(function),
        false => Scope::Site { function, place: place.join(" < ") },
    }
}
