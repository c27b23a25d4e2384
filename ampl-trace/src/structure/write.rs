//! A merged structure as values in a stream.
//!
//! Ranks of the job; missing ranks; the group of each rank; functions; modules and sites; then each group: its threads
//! with every signature and its words beside it, grammars, counts. A word is 0 and a formula where it varies, else one
//! more than its distance from the guess.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHasher};

use super::callers::{self, PATHS, have_callers};
use super::column::Column;
use super::fit::{EDGE, Finder, Fit, at_edge, keys, map};
use super::formula::{Coded, closest, kind, shortest};
use super::grid::Grids;
use super::guess::Guess;
use super::relative_args::{Layout, Role, Slot};
use super::shared_part::{Body, CallSites, Head};
use super::stream::{Effort, Field, Out};
use super::{Group, JobStructure, Lists, Varying, names};
use crate::varint::zigzag;

/// Ranks that formulas may be worked out for while reading, all formulas together.
pub const BUDGET: u64 = 1 << 24;
/// Largest number of columns in which a table is searched.
const TABLES: usize = 12;
/// Ranks of which a column's numbers tell how close together they lie.
const MANY: u64 = 8;
/// Budget that a list takes for each rank: it takes memory, too.
pub const LIST_COST: u64 = 16;
/// Lists of counts that are columns of their own.
pub const SHORT_LIST: usize = 4;
/// Largest job whose groups may follow from a formula.
pub const MOST_MAPPED: u32 = 1 << 22;

/// Writes all of `merged`.
pub fn write(merged: &JobStructure, effort: Effort) -> Out {
    let mut out = Out::new(effort);
    let groups = &merged.groups;
    let paths = groups.iter().any(|group| have_callers(&group.body.table.sites));
    out.put(Field::Head, 0, u64::from(merged.ranks) | if paths { PATHS } else { 0 });
    out.put(Field::Head, 1, groups.len() as u64);
    let grids = Grids::new(merged.ranks);
    let mut budget = BUDGET;
    write_ranks(&mut out, merged, &grids);
    let mut functions = Vec::new();
    let mut known = FxHashMap::default();
    for head in groups.iter().flat_map(|group| &group.body.threads).flat_map(|thread| &thread.heads) {
        known.entry(head.function).or_insert_with(|| {
            functions.push(head.function);
            functions.len() as u64
        });
    }
    names::write(&mut out, &functions);
    let mut tables: Vec<&CallSites> = Vec::new();
    let mut numbers: HashMap<&CallSites, usize> = HashMap::new();
    for group in groups {
        numbers.entry(&group.body.table).or_insert_with(|| {
            tables.push(&group.body.table);
            tables.len() - 1
        });
    }
    write_tables(&mut out, &tables, paths);
    for group in groups {
        out.put(Field::Head, 2, numbers[&*group.body.table] as u64);
        let ranks: Vec<u32> = if group.words.is_empty() && group.lists.is_empty() {
            Vec::new()
        } else {
            group.members().collect()
        };
        let finder = Finder::new(merged.ranks, &grids, &ranks);
        let (varying, alone, seen, places) = Default::default();
        let (out, budget) = (&mut out, &mut budget);
        let words = Words { out, finder, budget, varying, alone, met: 0, seen, places };
        words.group(group, &known, merged.ranks);
    }
    out
}

/// Writes the ranks there are, and the group of each.
fn write_ranks(out: &mut Out, merged: &JobStructure, grids: &Grids) {
    let mut members: Vec<(u32, u32)> = Vec::new();
    for (index, group) in merged.groups.iter().enumerate() {
        members.extend(group.members().map(|rank| (rank, index as u32)));
    }
    members.sort_unstable();
    let ranks: Vec<u32> = members.iter().map(|&(rank, _)| rank).collect();
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &rank in &ranks {
        match spans.last_mut() {
            Some((first, length)) if *first + *length == rank => *length += 1,
            _ => spans.push((rank, 1)),
        }
    }
    if spans == [(0, merged.ranks)] {
        out.put(Field::Head, 3, 0);
    } else {
        out.put(Field::Head, 3, 1 + spans.len() as u64);
        let mut at = 0;
        for &(first, length) in &spans {
            out.put(Field::Length, 3, u64::from(first - at));
            out.put(Field::Length, 4, u64::from(length - 1));
            at = first + length;
        }
    }
    if merged.groups.len() > 1 {
        let mut column = Column::default();
        members.iter().for_each(|&(_, group)| column.push(group.into()));
        let values: Vec<u64> = column.values().collect();
        let mut candidates = vec![Fit::Column(column)];
        if merged.ranks <= MOST_MAPPED {
            let mut finder = Finder::new(merged.ranks, grids, &ranks);
            candidates.extend(finder.find(&values, false));
            if values.iter().all(|&group| group < 27) {
                candidates.extend(finder.zones(&values));
            }
        }
        let best = shortest(candidates.iter().map(|fit| Coded::Fit(fit, 0)));
        best.put(out);
    }
}

fn write_tables(out: &mut Out, tables: &[&CallSites], paths: bool) {
    out.put(Field::Length, 5, tables.len() as u64);
    let mut modules: Vec<&str> = Vec::new();
    let mut sites: FxHashMap<(usize, u64), usize> = FxHashMap::default();
    let mut last: FxHashMap<usize, u64> = FxHashMap::default();
    for table in tables {
        out.put(Field::Length, 6, table.modules.len() as u64);
        let mut numbers = Vec::new();
        for module in table.modules.iter() {
            let known = modules.iter().position(|known| known == module);
            numbers.push(known.unwrap_or(modules.len()));
            match known {
                Some(known) => out.put(Field::Head, 7, 1 + known as u64),
                None => {
                    out.put(Field::Head, 7, 0);
                    out.put(Field::Length, 8, module.len() as u64);
                    out.put_bytes(Field::Text, 8, module.as_bytes());
                    modules.push(module);
                }
            }
        }
        out.put(Field::Length, 9, table.sites.len() as u64);
        let mut expected = 0;
        for site in table.sites.iter() {
            let module =
                numbers.get(site.module as usize).copied().unwrap_or(usize::MAX - site.module as usize);
            if let Some(&known) = sites.get(&(module, site.offset)).filter(|_| module < modules.len()) {
                // One that an earlier table has: mostly the next one of that.
                out.put(Field::Site, 1, 1 + zigzag(known as i64 - expected as i64));
                expected = known + 1;
                continue;
            }
            out.put(Field::Site, 1, 0);
            out.put(Field::Site, 2, site.module.into());
            let before = last.insert(module, site.offset).unwrap_or(0);
            out.put_signed(Field::Offset, 0, site.offset.wrapping_sub(before) as i64);
            let number = sites.len();
            if module < modules.len() {
                sites.entry((module, site.offset)).or_insert(number);
                expected = sites.len();
            }
        }
        if paths {
            callers::write(out, &table.sites);
        }
    }
}

/// Writes one group.
struct Words<'a> {
    out: &'a mut Out,
    finder: Finder<'a>,
    budget: &'a mut u64,
    /// Values of every varying word so far.
    varying: Vec<Rc<Vec<u64>>>,
    /// True for varying words that follow from no other, or equal one that does not.
    alone: Vec<bool>,
    /// Number of functions met so far: they are numbered in that order, in the first group at least.
    met: u64,
    /// Index of the last varying word whose values have that hash.
    seen: FxHashMap<u64, usize>,
    /// Indices of varying words in the row.
    places: Vec<u32>,
}

/// The slot of a fact about a communicator.
pub fn comm_slot(index: usize) -> Slot {
    Slot { role: Role::Plain, param: 110 + (index % 3) as u8, element: 0 }
}

/// Guess of a fact about a communicator, from the last communicator, or from the job.
pub fn comm_guess(row: &[u64], job: u32) -> u64 {
    match row.len() {
        1 => job.into(),
        0 | 2 => 0,
        behind => row[behind - 3],
    }
}

/// The context of a word.
pub fn context(function: u64, slot: Slot) -> u32 {
    (function as u32) << 8 | u32::from(slot.param)
}

/// In the flags of a signature: its path is not that of the last one with its function and site.
pub const NEW_PATH: u64 = 1 << 8;

/// Code of a site: 0 none, 1 the next one, else by distance.
pub fn site_code(site: u32, next: u32) -> u64 {
    match site {
        0 => 0,
        _ if site == next => 1,
        _ if site < next => 2 + 2 * u64::from(next - 1 - site),
        _ => 3 + 2 * u64::from(site - next - 1),
    }
}

impl Words<'_> {
    fn group(mut self, group: &Group, functions: &FxHashMap<u16, u64>, job: u32) {
        let body: &Body = &group.body;
        let settled;
        let words = if group.words.iter().any(|(_, varying)| matches!(varying, Varying::Fit(_))) {
            let mut own = group.clone();
            own.settle();
            settled = own;
            &settled.words
        } else {
            &group.words
        };
        let mut columns = words.iter().filter_map(column_of).peekable();
        let mut index = 0;
        self.out.put(Field::Length, 20, body.comms as u64);
        let mut row: Vec<u64> = Vec::new();
        for fact in 0..body.comms * 3 {
            let value = group.first.words[index];
            let column = columns.next_if(|&(at, _)| at as usize == index).map(|(_, column)| column);
            let slot = comm_slot(fact);
            self.word(index, slot, context(0, slot), value, comm_guess(&row, job), column, None);
            row.push(value);
            index += 1;
        }
        self.out.put(Field::Length, 21, body.threads.len() as u64);
        let mut lists = group.lists.iter().peekable();
        let mut own_lists = group.first.lists.iter().peekable();
        let mut list = 0u32;
        let mut number = 0u32;
        for thread in &body.threads {
            self.out.put_signed(Field::Head, 22, i64::from(thread.thread) - i64::from(number));
            number = thread.thread;
            self.out.put(Field::Length, 23, thread.heads.len() as u64);
            let (mut guess, mut before, mut next_site) = (Guess::default(), 0, 1);
            let begin = index;
            for head in &thread.heads {
                let function = functions[&head.function];
                self.head(*head, function, before, next_site, &guess);
                (before, next_site) = (function, next_site.max(head.site.saturating_add(1)));
                guess.begin(*head);
                let mut layout = Layout::new(head.function, head.flags);
                for _ in 0..head.words {
                    let slot = layout.next(guess.before());
                    let value = group.first.words[index];
                    let column = columns.next_if(|&(at, _)| at as usize == index).map(|(_, column)| column);
                    let model = guess.model().map(|model| model + begin);
                    self.word(index, slot, context(function, slot), value, guess.word(slot), column, model);
                    guess.learn(slot, value);
                    index += 1;
                }
            }
            thread.rules.write(self.out);
            let end = list + thread.rules.positions() as u32;
            while list < end {
                let own = own_lists.peek().map_or(end, |&&(at, _)| at);
                let next = lists.peek().map_or(own, |&&(at, _)| at.min(own)).min(end);
                self.out.put_times(Field::CountRuns, 0, 1, (next - list) as usize);
                if next == end {
                    break;
                }
                let own = own_lists.next_if(|&&(at, _)| at == next);
                match lists.next_if(|&&(at, _)| at == next) {
                    Some((_, spans)) => self.lists(spans),
                    None => {
                        let (_, counts) = own.expect("one of both comes next");
                        self.out.put(Field::CountRuns, 0, 2 + counts.len() as u64);
                        put_counts(self.out, counts);
                    }
                }
                list = next + 1;
            }
            list = end;
        }
    }

    fn head(&mut self, head: Head, function: u64, before: u64, next_site: u32, guess: &Guess) {
        let context = function as u32;
        // 0 is the first call of the next function.
        let is_new = function == self.met + 1;
        self.met = function.max(self.met);
        self.out.put(Field::Function, before as u32, if is_new { 0 } else { function });
        let has_new_path = head.path != guess.path(head.function, head.site);
        let new_path = if has_new_path { NEW_PATH } else { 0 };
        self.out.put(Field::Flags, context, u64::from(head.flags) | new_path);
        self.out.put(Field::Site, context << 8, site_code(head.site, next_site));
        if has_new_path {
            let path = match head.path {
                0 => 0,
                path => 1 + zigzag(i64::from(path) - i64::from(head.site)),
            };
            self.out.put(Field::Site, context << 8 | 1, path);
        }
        let length = guess.length(head.function, head.flags, head.site);
        self.out.put_signed(Field::Words, context, i64::from(head.words) - i64::from(length));
    }

    #[allow(clippy::too_many_arguments)]
    fn word(
        &mut self,
        index: usize,
        slot: Slot,
        context: u32,
        value: u64,
        guess: u64,
        column: Option<&Column>,
        model: Option<usize>,
    ) {
        let field = Field::Role as u8 + slot.role as u8;
        if let Some(column) = column {
            self.out.put_as(field, context, 0);
            let model = model.and_then(|model| self.places.binary_search(&(model as u32)).ok());
            self.column(column, slot.role, model);
            self.places.push(index as u32);
        } else if slot.role == Role::Text {
            self.out.put_as(field, context, 1);
            self.out.put_bytes(Field::Text, context, &value.to_le_bytes());
        } else {
            put_constant(self.out, field, context, value, guess);
        }
    }

    /// Writes the values of a column in the shortest way.
    fn column(&mut self, column: &Column, role: Role, model: Option<usize>) {
        let values: Rc<Vec<u64>> = Rc::new(column.values().collect());
        let have = self.varying.len();
        let mut hasher = FxHasher::default();
        values.hash(&mut hasher);
        let same = self.seen.insert(hasher.finish(), have);
        if let Some(same) = same.filter(|&same| self.varying[same] == values) {
            Coded::Fit(&Fit::Equal(same), have).put(self.out);
            self.varying.push(self.varying[same].clone());
            self.alone.push(self.alone[same]);
            return;
        }
        let mut neat = Column::default();
        values.iter().for_each(|&value| neat.push(value));
        let mut candidates = vec![Fit::Column(neat)];
        candidates.extend(self.finder.find(&values, matches!(role, Role::Rank)));
        let ranks = values.len() as u64;
        if *self.budget >= ranks {
            let mut seen: Vec<*const Vec<u64>> = Vec::new();
            for (of, known) in self.varying.iter().enumerate().rev() {
                if !self.alone[of] || seen.contains(&Rc::as_ptr(known)) {
                    continue;
                }
                seen.push(Rc::as_ptr(known));
                let table = keys(known.iter().copied());
                if let Some((keys, table)) = table.and_then(|keys| Some((map(&keys, known, &values)?, keys)))
                {
                    candidates.push(Fit::Map { of, keys: table, values: keys, otherwise: 0 });
                }
                if let Some([there, otherwise]) = at_edge(known, &values) {
                    candidates.push(Fit::Map { of, keys: vec![EDGE], values: vec![there], otherwise });
                }
                if seen.len() == TABLES {
                    break;
                }
            }
        }
        let fits = candidates.iter().map(|fit| Coded::Fit(fit, have));
        let alone = [Coded::Deltas(&values), Coded::Values(&values, role)];
        let difference = model.map(|of| Coded::Difference(of, &self.varying[of], &values, have));
        let best = if ranks < MANY {
            shortest(fits.chain(alone).chain(difference))
        } else {
            shortest(fits.chain([closest(alone.into_iter().chain(difference))]))
        };
        if let Coded::Fit(Fit::Map { .. }, _) = best {
            *self.budget -= ranks;
        }
        let alone = !matches!(best, Coded::Fit(Fit::Map { .. }, _) | Coded::Difference(..));
        best.put(self.out);
        self.alone.push(alone);
        self.varying.push(values);
    }

    /// Writes lists of counts that differ between ranks.
    fn lists(&mut self, spans: &Lists) {
        self.out.put(Field::CountRuns, 0, 0);
        let runs = spans[0].1.len();
        let ranks = u64::from(spans[spans.len() - 1].0);
        let short = runs <= SHORT_LIST && spans.iter().all(|(_, counts)| counts.len() == runs);
        let mut from = 0;
        if short && *self.budget >= ranks * LIST_COST {
            *self.budget -= ranks * LIST_COST;
            self.out.put(Field::CountRuns, 1, 1 + runs as u64);
            for index in 0..runs * 2 {
                let mut column = Column::default();
                from = 0;
                for (end, counts) in spans {
                    let (count, times) = counts[index / 2];
                    column.append(end - from, if index % 2 == 0 { count } else { times }, 0);
                    from = *end;
                }
                self.count_column(&column);
            }
            return;
        }
        self.out.put(Field::CountRuns, 1, 0);
        self.out.put(Field::Length, 30, spans.len() as u64);
        for (end, counts) in spans {
            self.out.put(Field::Length, 31, u64::from(end - from) - 1);
            from = *end;
            self.out.put(Field::CountRuns, 2, counts.len() as u64);
            put_counts(self.out, counts);
        }
    }

    fn count_column(&mut self, column: &Column) {
        let values: Vec<u64> = column.values().collect();
        if values.iter().all(|&value| value == values[0]) {
            put_constant(self.out, Field::Count as u8, 2, values[0], 0);
            return;
        }
        self.out.put(Field::Count, 2, 0);
        let mut neat = Column::default();
        values.iter().for_each(|&value| neat.push(value));
        let mut candidates = vec![Fit::Column(neat)];
        candidates.extend(self.finder.find(&values, false));
        let fits = candidates.iter().map(|fit| Coded::Fit(fit, 0));
        let others = [Coded::Deltas(&values), Coded::Values(&values, Role::Number)];
        shortest(fits.chain(others)).put(self.out);
    }
}

fn column_of((index, varying): &(u32, Varying)) -> Option<(u32, &Column)> {
    match varying {
        Varying::Column(column) => Some((*index, column)),
        Varying::Fit(_) => None,
    }
}

fn put_constant(out: &mut Out, field: u8, context: u32, value: u64, guess: u64) {
    match zigzag(value.wrapping_sub(guess) as i64).checked_add(1) {
        Some(code) => out.put_as(field, context, code),
        None => {
            out.put_as(field, context, 0);
            out.put(Field::Fit, 0, kind::CONSTANT);
            out.put(Field::FitNumber, 0, value);
        }
    }
}

fn put_counts(out: &mut Out, counts: &[(u64, u64)]) {
    for &(count, times) in counts {
        out.put(Field::Count, 0, count);
        out.put_signed(Field::Count, 1, times as i64);
    }
}
