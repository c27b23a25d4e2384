//! Call sites by number, over all ranks.

use ampl_core::mpi::Function;
use ampl_reader::sites::Symbols;
use rustc_hash::FxHashMap;

use crate::matching::{At, Source};

/// Function, module and offset of a call.
pub type Place = (Function, String, u64);

/// Call sites by number.
#[derive(Debug)]
pub struct Places<'a> {
    sources: FxHashMap<u32, Source<'a>>,
    /// Number by rank, thread and terminal.
    known: FxHashMap<(u32, u32, u32), usize>,
    numbers: FxHashMap<Place, usize>,
    list: Vec<Place>,
}

impl<'a> Places<'a> {
    /// No site yet, of those ranks.
    pub fn new(sources: &[Source<'a>]) -> Self {
        Self {
            sources: sources.iter().map(|source| (source.structure.rank, *source)).collect(),
            known: FxHashMap::default(),
            numbers: FxHashMap::default(),
            list: Vec::new(),
        }
    }

    /// The number of the site of a call.
    pub fn number(&mut self, at: &At) -> usize {
        let key = (at.rank, at.thread, at.terminal);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let place = self.place(at).unwrap_or((Function(0), String::new(), 0));
        let next = self.list.len();
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.list.push(place);
        }
        self.known.insert(key, number);
        number
    }

    fn place(&self, at: &At) -> Option<Place> {
        let structure = self.sources.get(&at.rank)?.structure;
        let thread = structure.threads.iter().find(|thread| thread.thread == at.thread)?;
        let signature = thread.signatures.get(at.terminal as usize)?;
        let site = signature.site.checked_sub(1).and_then(|site| structure.sites.get(site as usize));
        let module = site.and_then(|site| structure.modules.get(site.module as usize));
        let offset = site.map_or(0, |site| site.offset);
        Some((Function(signature.function), module.cloned().unwrap_or_default(), offset))
    }

    /// Function of a site.
    pub fn function(&self, number: usize) -> Function {
        self.list[number].0
    }

    /// All of them, by number.
    pub fn finish(self) -> Vec<Place> {
        self.list
    }
}

/// Name of a site; `None` where sites are not told apart.
pub fn name((_, module, offset): &Place, symbols: &mut Symbols) -> Option<String> {
    (!module.is_empty() || *offset > 0)
        .then(|| symbols.name(if module.is_empty() { "?" } else { module }, *offset))
}
