//! Functions of the program around calls, by the places where the calls are made.
//!
//! Neighbours that are made in the same functions are in one item. How often a function was called is not known: two
//! calls in a row may be made in one execution of it, or in two.

use rustc_hash::FxHashMap;

use super::bound::Span;
use super::graph::Sums;
use super::names::{Name, NameId, Names};
use super::view::{Item, What, fewer};

/// A function: module, and its number, or else a return address in it.
pub type Function = (u32, u64);

/// Function around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// A number of the function, different from those of others.
    Function(u64),
    /// Code that starts programs: what is outside of it is of no interest.
    Startup,
    /// It is not known.
    Unknown,
}

/// Functions around a call from the outermost, each with a return address in it.
pub type Chain = Vec<(Function, u64)>;

/// Functions around the calls of each name.
#[derive(Clone, Debug, Default)]
pub struct Chains(FxHashMap<NameId, Chain>);

impl Chains {
    /// Functions around the calls of `names`; `around` gives the function around an address of a module.
    pub fn of(names: &Names, around: &mut dyn FnMut(&str, u64) -> Around) -> Self {
        let mut functions: FxHashMap<(u32, u64), Around> = FxHashMap::default();
        let mut chains = FxHashMap::default();
        for (id, name) in (0..).zip(names.all()) {
            let Name::Call(place) = name else { continue };
            let mut chain = Chain::new();
            for &(module, offset) in place.path.iter().rev() {
                let path = names.modules().get(module as usize).map_or("", String::as_str);
                if path.is_empty() && offset == 0 {
                    // Calls are not told apart by place.
                    continue;
                }
                let function = functions.entry((module, offset)).or_insert_with(|| around(path, offset));
                let start = match *function {
                    Around::Function(number) => number,
                    // Not the number of any function.
                    Around::Unknown => !offset,
                    Around::Startup => {
                        chain.clear();
                        continue;
                    }
                };
                // Recursion is folded.
                if chain
                    .last()
                    .is_none_or(|&((module_before, before), _)| (module_before, before) != (module, start))
                {
                    chain.push(((module, start), offset));
                }
            }
            chains.insert(id, chain);
        }
        Self(chains)
    }

    /// Functions around the calls of a name.
    pub fn of_name(&self, name: NameId) -> Chain {
        self.0.get(&name).cloned().unwrap_or_default()
    }

    /// Functions around all of `items`, from the outermost.
    pub fn common(items: &[Item]) -> Chain {
        let Some((first, others)) = items.split_first() else { return Chain::new() };
        let mut common = first.chain.clone();
        for item in others {
            let same = common.iter().zip(&item.chain).take_while(|(one, other)| one.0 == other.0).count();
            common.truncate(same);
        }
        common
    }

    /// `items` with neighbours in the same function in one item, from the functions at index `base` on.
    pub fn group(items: Vec<Item>, base: usize) -> Vec<Item> {
        let mut grouped: Vec<Item> = Vec::new();
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let Some(&(function, at)) = item.chain.get(base) else {
                grouped.push(item);
                continue;
            };
            let mut own = vec![item];
            while let Some(next) =
                items.next_if(|next| next.chain.get(base).is_some_and(|(other, _)| *other == function))
            {
                own.push(next);
            }
            let mut sums = Sums::default();
            own.iter().for_each(|item| sums.add(&item.sums));
            let chain = own[0].chain[..base].to_vec();
            let items = fewer(Self::group(own, base + 1));
            let what = What::Function(function.0, at);
            let exclusive = Some(Span::default());
            grouped.push(Item { what, number: None, repeats: None, sums, exclusive, items, chain });
        }
        grouped
    }
}
