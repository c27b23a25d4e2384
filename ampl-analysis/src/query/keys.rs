//! Functions at call sites, the same number on every rank.

use std::sync::Arc;

use ampl_reader::Rank;
use ampl_reader::sites::Symbols;
use ampl_trace::model::Site;
use ampl_trace::record::GAP;
use rustc_hash::FxHashMap;

/// A function at a call site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index of the function.
    pub function: u16,
    /// Call site; `None` where sites are not told apart.
    pub site: Option<String>,
}

/// Numbers of functions at call sites.
#[derive(Default)]
pub struct Keys {
    symbols: Symbols,
    keys: Vec<Key>,
    numbers: FxHashMap<Key, u32>,
    tables: Vec<Table>,
}

/// Sites that ranks share, and their names.
struct Table {
    sites: Arc<[Site]>,
    modules: Arc<[String]>,
    names: Arc<[Option<String>]>,
}

impl Keys {
    /// The keys by number.
    pub fn all(&self) -> &[Key] {
        &self.keys
    }

    /// The number of `function` at a place with these frames, the call's own first.
    pub fn of_path(&mut self, function: u16, path: &[(&str, u64)]) -> u32 {
        let named = path.first().filter(|(module, offset)| !module.is_empty() || *offset > 0);
        let site = named
            .map(|&(module, offset)| self.symbols.name(if module.is_empty() { "?" } else { module }, offset));
        self.number(Key { function, site })
    }

    fn number(&mut self, key: Key) -> u32 {
        let keys = &mut self.keys;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            keys.push(key.clone());
            keys.len() as u32 - 1
        })
    }

    /// Keys of the terminals of `rank`, by thread; `None` for gaps and regions.
    pub fn of_rank(&mut self, rank: &Rank<'_>) -> Vec<Vec<Option<u32>>> {
        let names = self.names(rank);
        let mut known: FxHashMap<(u16, u32), u32> = FxHashMap::default();
        let mut of = |signature: &ampl_trace::structure::Signature| {
            (signature.function != GAP && !signature.is_region()).then(|| {
                *known.entry((signature.function, signature.site)).or_insert_with(|| {
                    let at = signature.site.checked_sub(1);
                    let site = at.and_then(|at| names.get(at as usize).cloned().flatten());
                    self.number(Key { function: signature.function, site })
                })
            })
        };
        let threads = rank.structure.threads.iter();
        threads.map(|thread| thread.signatures.iter().map(&mut of).collect()).collect()
    }

    fn names(&mut self, rank: &Rank<'_>) -> Arc<[Option<String>]> {
        let (sites, modules) = (&rank.trace.sites, &rank.trace.modules);
        let same = |table: &&Table| {
            (Arc::ptr_eq(&table.sites, sites) || table.sites == *sites)
                && (Arc::ptr_eq(&table.modules, modules) || table.modules == *modules)
        };
        if let Some(table) = self.tables.iter().find(same) {
            return table.names.clone();
        }
        self.symbols.next_rank();
        let symbols = &mut self.symbols;
        let names: Arc<[Option<String>]> =
            (0..sites.len()).map(|site| symbols.site(&rank.trace, site as u32)).collect();
        self.tables.push(Table { sites: sites.clone(), modules: modules.clone(), names: names.clone() });
        names
    }
}
