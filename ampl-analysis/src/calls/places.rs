//! Places where MPI functions are called. One line has several addresses where it was inlined; these are one place,
//! as for markers and in JSON.

use std::collections::{BTreeMap, HashMap};

use ampl_core::mpi::FUNCTIONS;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::totals::{Known, SEVERAL};

use super::recorded::{Key, Recorded};
use super::wrappers::{self, Site};

/// Module and offset of calls without a known site.
pub const NOWHERE: (&str, u64) = ("?", 0);

/// A place in the source where a function of MPI is called.
#[derive(Debug)]
pub struct Place<'a> {
    /// Index of the function.
    pub function: u16,
    /// `file:line`, where known.
    pub line: Option<String>,
    /// Modules and offsets that calls from here return to; one at least.
    pub addresses: Vec<(&'a str, u64)>,
    /// Callers of its function, outwards; none where paths are not told apart.
    pub callers: Vec<(&'a str, u64)>,
    /// Callers outwards, and true where calls differ beyond these.
    pub common_callers: Option<(Vec<(&'a str, u64)>, bool)>,
    /// Number of `common_callers` that belong to a wrapper, 0 for the function alone; none where it is in none, by the
    /// structure of calls.
    pub wrapper: Option<usize>,
}

/// Number of a place; none for calls beyond the table of sites.
pub type Number = Option<usize>;

/// Totals of a place, one for each address and path.
pub type Parts<'a> = Vec<Known<'a>>;

/// Modules and offsets that calls return to, innermost first.
pub type Path<'a> = Vec<(&'a str, u64)>;

/// The places met so far.
#[derive(Default)]
pub struct Places<'a> {
    /// Names of addresses.
    pub symbols: Symbols,
    /// The places by number.
    pub places: Vec<Place<'a>>,
    by_address: HashMap<(u16, Path<'a>), usize>,
    by_name: HashMap<(u16, Vec<String>), usize>,
}

impl<'a> Places<'a> {
    /// The number of the place where calls of `function` return to these modules and offsets, innermost first.
    pub fn number(&mut self, function: u16, path: Path<'a>) -> usize {
        let Self { symbols, places, by_address, by_name } = self;
        if let Some(&number) = by_address.get(&(function, path.clone())) {
            return number;
        }
        let names = path.iter().map(|&(module, offset)| symbols.name(module, offset)).collect();
        let number = *by_name.entry((function, names)).or_insert(places.len());
        let (&(module, offset), callers) = path.split_first().unwrap_or((&NOWHERE, &[]));
        if number == places.len() {
            let (line, callers) = (symbols.line(module, offset), callers.to_vec());
            places.push(Place {
                function,
                line,
                addresses: Vec::new(),
                callers,
                common_callers: None,
                wrapper: None,
            });
        }
        places[number].addresses.push((module, offset));
        by_address.insert((function, path), number);
        number
    }

    /// The parts of each place of `trace`.
    pub fn parts(&mut self, trace: &'a Trace) -> BTreeMap<Number, Parts<'a>> {
        let mut parts: BTreeMap<Number, Parts<'a>> = BTreeMap::new();
        for known in trace.totals.known() {
            let number =
                (known.function != SEVERAL).then(|| self.number(known.function, named(known.path.clone())));
            if let Some(place) = number.map(|number| &mut self.places[number]) {
                let is_first = place.addresses.len() == 1;
                place.common_callers = match (place.common_callers.take(), known.callers.clone()) {
                    (None, callers) if is_first => callers,
                    (Some(before), Some(callers)) if before == callers => Some(before),
                    // The addresses have different callers.
                    _ => Some((Vec::new(), true)),
                };
            }
            parts.entry(number).or_default().push(known);
        }
        self.find_wrappers(&parts);
        parts
    }

    /// Finds the places that are in wrappers. Queries, and calls that begin and end MPI, say nothing about that.
    fn find_wrappers(&mut self, parts: &BTreeMap<Number, Parts<'a>>) {
        let Self { symbols, places, .. } = self;
        let (mut numbers, mut sites) = (Vec::new(), Vec::new());
        for (number, parts) in parts.iter().filter_map(|(number, parts)| Some(((*number)?, parts))) {
            let place = &places[number];
            let spec = FUNCTIONS.get(usize::from(place.function));
            let counts = spec.is_some_and(|spec| spec.class.is_work());
            let &(module, offset) = place.addresses.first().unwrap_or(&NOWHERE);
            if !counts || !place.callers.is_empty() || module == NOWHERE.0 {
                continue;
            }
            let (outward, several) = place.common_callers.clone().unwrap_or_default();
            // Where a module is stripped, a function without a name is told by where it calls.
            let mut named = |(module, offset): (&'a str, u64)| {
                let name = symbols.function(module, offset).map(|function| function.name);
                (module, name.unwrap_or_else(|| format!("+{offset:#x}")))
            };
            let (_, function) = named((module, offset));
            numbers.push(number);
            sites.push(Site {
                module,
                function,
                mpi: place.function,
                calls: parts.iter().map(|part| part.total.calls).fold(0, u64::saturating_add),
                outward: outward.into_iter().map(&mut named).collect(),
                several,
            });
        }
        for (number, wrapper) in numbers.into_iter().zip(wrappers::of(&sites)) {
            places[number].wrapper = wrapper;
        }
    }
}

/// `path` with module `?` for unknown modules; never empty.
pub(super) fn named(mut path: Path<'_>) -> Path<'_> {
    for (module, _) in &mut path {
        if module.is_empty() {
            *module = NOWHERE.0;
        }
    }
    if path.is_empty() { vec![NOWHERE] } else { path }
}

/// Time of all parts, nanoseconds.
pub fn time_ns(parts: &Parts<'_>) -> f64 {
    parts.iter().map(|part| part.total.time_ns as f64).sum()
}

/// Sum of the recorded calls of all parts.
pub fn recorded(parts: &[Known<'_>], all: &HashMap<Key, Recorded>) -> Recorded {
    let mut sum = Recorded::default();
    for part in parts {
        let path = part.path.iter().map(|&(module, offset)| (module.to_owned(), offset)).collect();
        if let Some(recorded) = all.get(&(part.function, path)) {
            sum.add(recorded);
        }
    }
    sum
}
