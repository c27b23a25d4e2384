//! Values of a stream as a merged structure. The bytes may be anything: every length is checked against the bytes
//! left, and the work for formulas is bounded.

use std::sync::Arc;

use super::callers::{self, PATHS};
use super::fit::{EDGE, Fit, keys};
use super::formula::{kind, read_fit, read_formula, read_values};
use super::guess::Guess;
use super::names::{self, Unreadable};
use super::relative_args::{Layout, Role, Slot};
use super::shared_part::{Body, CallSites, Head, Row, ThreadBody};
use super::stream::{Broken, Field, In, unzigzag};
use super::symbols::Rules;
use super::write::{BUDGET, LIST_COST, MOST_MAPPED, NEW_PATH, SHORT_LIST, comm_guess, comm_slot, context};
use super::{Group, JobStructure, Lists, RulesRead, Varying};
use crate::error::ReadError;
use crate::grammar::Counts;
use crate::site::Site;

impl From<Broken> for ReadError {
    fn from(broken: Broken) -> Self {
        Self::Malformed { what: broken.what, at: broken.at }
    }
}

/// The structure in `bytes`.
pub fn read(bytes: &[u8]) -> Result<JobStructure, ReadError> {
    let mut stream = In::new(bytes)?;
    let stream = &mut stream;
    let head = stream.get_most(Field::Head, 0, PATHS | u64::from(u32::MAX))?;
    let (job, paths) = (head as u32, head & PATHS != 0);
    let groups = stream.get_length(Field::Head, 1)?;
    let members = read_ranks(stream, job, groups)?;
    let functions = names::read(stream).map_err(|unreadable| match unreadable {
        Unreadable::Broken(broken) => broken.into(),
        Unreadable::Other(error) => error,
    })?;
    let tables = read_tables(stream, paths)?;
    let mut budget = BUDGET;
    let mut merged = JobStructure { ranks: job, groups: Vec::new() };
    for ranks in members {
        stream.reading("table of a group");
        let table = stream.get(Field::Head, 2)?;
        let table = usize::try_from(table).ok().and_then(|table| tables.get(table));
        let table = table.ok_or_else(|| stream.broken())?.clone();
        let length = ranks.iter().map(|&(_, length)| length).sum();
        let (functions, budget) = (&functions[..], &mut budget);
        let words = Words { stream, job, length, functions, budget, met: 0 };
        merged.groups.push(words.group(table, ranks)?);
    }
    stream.reading("end of the structure");
    if stream.is_empty() { Ok(merged) } else { Err(stream.broken().into()) }
}

type Spans = Vec<(u32, u32)>;

/// The ranks of each group.
fn read_ranks(stream: &mut In, job: u32, groups: usize) -> Result<Vec<Spans>, Broken> {
    stream.reading("ranks");
    let count = stream.get_length(Field::Head, 3)?;
    let mut spans: Spans = Vec::new();
    if count == 0 {
        spans.extend((job > 0).then_some((0, job)));
    }
    let mut at = 0u64;
    for _ in 1..count {
        let first = at + stream.get_most(Field::Length, 3, job.into())?;
        let end = first + stream.get_most(Field::Length, 4, job.into())? + 1;
        if end > u64::from(job) {
            return Err(stream.broken());
        }
        spans.push((first as u32, (end - first) as u32));
        at = end;
    }
    let ranks: u32 = spans.iter().map(|&(_, length)| length).sum();
    let mut members = vec![Spans::new(); groups];
    if groups < 2 {
        if groups == 1 {
            members[0] = spans;
        }
        return if (groups == 0) == (ranks == 0) { Ok(members) } else { Err(stream.broken()) };
    }
    let fit = read_fit(stream, ranks, job)?;
    match fit {
        Fit::Column(column) => {
            let mut spans = spans.into_iter();
            let mut span = spans.next();
            for (mut left, start, step) in column.pieces() {
                let mut group = start;
                while left > 0 {
                    let (first, length) = span.ok_or_else(|| stream.broken())?;
                    let some = if step == 0 { left.min(length) } else { 1 };
                    join(&mut members, group, first, some).ok_or_else(|| stream.broken())?;
                    span = if some < length { Some((first + some, length - some)) } else { spans.next() };
                    left -= some;
                    group = group.wrapping_add(step);
                }
            }
        }
        _ if job <= MOST_MAPPED => {
            for rank in spans.iter().flat_map(|&(first, length)| first..first + length) {
                let group = fit.value(job, 0, rank, &[]);
                join(&mut members, group, rank, 1).ok_or_else(|| stream.broken())?;
            }
        }
        _ => return Err(stream.broken()),
    }
    if members.iter().any(Vec::is_empty) { Err(stream.broken()) } else { Ok(members) }
}

fn join(members: &mut [Spans], group: u64, first: u32, length: u32) -> Option<()> {
    let spans = members.get_mut(usize::try_from(group).ok()?)?;
    match spans.last_mut() {
        Some((last, have)) if *last + *have == first => *have += length,
        _ => spans.push((first, length)),
    }
    Some(())
}

fn read_tables(stream: &mut In, paths: bool) -> Result<Vec<Arc<CallSites>>, Broken> {
    stream.reading("call sites");
    let count = stream.get_length(Field::Length, 5)?;
    let mut tables = Vec::new();
    let mut modules: Vec<String> = Vec::new();
    let mut sites: Vec<(usize, u64)> = Vec::new();
    let mut last = rustc_hash::FxHashMap::default();
    let mut known_sites = rustc_hash::FxHashSet::default();
    for _ in 0..count {
        let (mut own_modules, mut own_sites, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..stream.get_length(Field::Length, 6)? {
            let number = match stream.get(Field::Head, 7)? {
                0 => {
                    let length = stream.get_length(Field::Length, 8)?;
                    let name = stream.get_bytes(Field::Text, 8, length)?;
                    modules.push(String::from_utf8(name).map_err(|_| stream.broken())?);
                    modules.len() - 1
                }
                known => usize::try_from(known - 1).map_err(|_| stream.broken())?,
            };
            own_modules.push(modules.get(number).ok_or_else(|| stream.broken())?.clone());
            numbers.push(number);
        }
        let count = stream.get_length(Field::Length, 9)?;
        let mut expected = 0usize;
        for _ in 0..count {
            let site = match stream.get(Field::Site, 1)? {
                0 => {
                    let module = stream.get_most(Field::Site, 2, u32::MAX.into())? as u32;
                    let number =
                        numbers.get(module as usize).copied().unwrap_or(usize::MAX - module as usize);
                    let before = last.entry(number).or_insert(0u64);
                    *before = before.wrapping_add(stream.get_signed(Field::Offset, 0)? as u64);
                    let offset = *before;
                    if number < modules.len() {
                        if known_sites.insert((number, offset)) {
                            sites.push((number, offset));
                        }
                        expected = sites.len();
                    }
                    Site { module, offset, caller: 0 }
                }
                code => {
                    let known = (expected as i64).wrapping_add(unzigzag(code - 1));
                    let known = usize::try_from(known).map_err(|_| stream.broken())?;
                    let &(number, offset) = sites.get(known).ok_or_else(|| stream.broken())?;
                    let module = numbers.iter().position(|&own| own == number);
                    expected = known + 1;
                    Site { module: module.ok_or_else(|| stream.broken())? as u32, offset, caller: 0 }
                }
            };
            own_sites.push(site);
        }
        if paths {
            callers::read(stream, &mut own_sites)?;
        }
        tables.push(Arc::new(CallSites { modules: own_modules.into(), sites: own_sites.into() }));
    }
    Ok(tables)
}

/// Reads one group.
struct Words<'a> {
    stream: &'a mut In,
    job: u32,
    /// Ranks of the group.
    length: u32,
    functions: &'a [u16],
    budget: &'a mut u64,
    /// Number of functions met so far.
    met: u64,
}

impl Words<'_> {
    fn group(mut self, table: Arc<CallSites>, ranks: Spans) -> Result<Group, Broken> {
        let mut group = Group {
            body: Arc::default(),
            hash: 0,
            job: self.job,
            ranks,
            first: Row::default(),
            words: Vec::new(),
            lists: Vec::new(),
            rules_read: RulesRead::default(),
        };
        let mut values = Vec::new();
        self.stream.reading("communicators");
        let comms = self.stream.get_length(Field::Length, 20)?;
        let mut body = Body { table, comms, threads: Vec::new() };
        for fact in 0..comms.checked_mul(3).ok_or_else(|| self.stream.broken())? {
            let slot = comm_slot(fact);
            let guess = comm_guess(&group.first.words, self.job);
            self.word(slot, context(0, slot), guess, &mut group, &mut values)?;
        }
        let threads = self.stream.get_length(Field::Length, 21)?;
        let (mut number, mut position) = (0i64, 0u32);
        for _ in 0..threads {
            self.stream.reading("thread");
            number = number.wrapping_add(self.stream.get_signed(Field::Head, 22)?);
            let thread = u32::try_from(number).map_err(|_| self.stream.broken())?;
            let count = self.stream.get_length(Field::Length, 23)?;
            let (mut guess, mut before, mut next_site) = (Guess::default(), 0, 1u32);
            let mut heads = Vec::new();
            for _ in 0..count {
                self.stream.reading("signature");
                let (function, head) = self.head(before, next_site, &guess, body.table.sites.len())?;
                (before, next_site) = (function, next_site.max(head.site.saturating_add(1)));
                guess.begin(head);
                let mut layout = Layout::new(head.function, head.flags);
                for _ in 0..head.words {
                    let slot = layout.next(guess.before());
                    let context = context(function, slot);
                    let value = self.word(slot, context, guess.word(slot), &mut group, &mut values)?;
                    guess.learn(slot, value);
                }
                heads.push(head);
            }
            let rules = Rules::read(self.stream, heads.len())?;
            self.stream.reading("counts");
            for _ in 0..rules.positions() {
                self.list(position, &mut group)?;
                position = position.checked_add(1).ok_or_else(|| self.stream.broken())?;
            }
            body.threads.push(ThreadBody { thread, heads, rules });
        }
        group.hash = body.hash();
        group.body = Arc::new(body);
        Ok(group)
    }

    fn head(
        &mut self,
        before: u64,
        next_site: u32,
        guess: &Guess,
        sites: usize,
    ) -> Result<(u64, Head), Broken> {
        let stream = &mut *self.stream;
        let function = match stream.get_most(Field::Function, before as u32, 1 << 16)? {
            0 => self.met + 1,
            function => function,
        };
        let number = *self.functions.get(function as usize - 1).ok_or_else(|| stream.broken())?;
        self.met = function.max(self.met);
        let context = function as u32;
        let marks = stream.get_most(Field::Flags, context, NEW_PATH | u64::from(u8::MAX))?;
        let flags = marks as u8;
        let site = match stream.get(Field::Site, context << 8)? {
            0 => 0,
            1 => next_site.into(),
            code if code % 2 == 0 => (i64::from(next_site) - 1).wrapping_sub((code / 2 - 1) as i64),
            code => (i64::from(next_site) + 1).wrapping_add((code / 2 - 1) as i64),
        };
        let known = |site: i64| u32::try_from(site).ok().filter(|&site| site as usize <= sites);
        let site = known(site).ok_or_else(|| stream.broken())?;
        let path = match marks & NEW_PATH {
            0 => guess.path(number, site),
            _ => match stream.get(Field::Site, context << 8 | 1)? {
                0 => 0,
                code => {
                    let path = known(i64::from(site).wrapping_add(unzigzag(code - 1)));
                    path.ok_or_else(|| stream.broken())?
                }
            },
        };
        let length = i64::from(guess.length(number, flags, site));
        let length = length.wrapping_add(stream.get_signed(Field::Words, context)?);
        let words = u32::try_from(length).ok().filter(|&words| words as usize <= stream.left());
        let words = words.ok_or_else(|| stream.broken())?;
        Ok((function, Head { function: number, flags, site, path, words }))
    }

    /// The first rank's value of the next word.
    fn word(
        &mut self,
        slot: Slot,
        context: u32,
        guess: u64,
        group: &mut Group,
        values: &mut Vec<u64>,
    ) -> Result<u64, Broken> {
        let field = Field::Role as u8 + slot.role as u8;
        let code = self.stream.get_as(field, context)?;
        let value = match code {
            0 => match self.fit(group, slot)? {
                Ok(fit) => {
                    let first = group.ranks[0].0;
                    let value = fit.value(self.job, 0, first, values);
                    group.words.push((group.first.words.len() as u32, Varying::Fit(fit)));
                    values.push(value);
                    value
                }
                Err(constant) => constant,
            },
            1 if slot.role == Role::Text => {
                let bytes = self.stream.get_bytes(Field::Text, context, 8)?;
                u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
            }
            code => guess.wrapping_add(unzigzag(code - 1) as u64),
        };
        group.first.words.push(value);
        Ok(value)
    }

    fn fit(&mut self, group: &Group, slot: Slot) -> Result<Result<Fit, u64>, Broken> {
        let have = group.words.len();
        let stream = &mut *self.stream;
        let back = |stream: &mut In, context| {
            let back = stream.get(Field::FitNumber, context)?;
            usize::try_from(back)
                .ok()
                .and_then(|back| have.checked_sub(1)?.checked_sub(back))
                .ok_or(stream.broken())
        };
        Ok(Ok(match stream.get(Field::Fit, 0)? {
            kind::CONSTANT => return Ok(Err(stream.get(Field::FitNumber, 0)?)),
            kind::EQUAL => {
                let of = back(stream, 1)?;
                match &group.words[of].1 {
                    Varying::Fit(Fit::Equal(first)) => Fit::Equal(*first),
                    _ => Fit::Equal(of),
                }
            }
            kind::MAP => {
                let of = back(stream, 2)?;
                let ranks = u64::from(self.length);
                *self.budget = self.budget.checked_sub(ranks).ok_or_else(|| stream.broken())?;
                let columns = group.members().enumerate();
                let others = columns.map(|(position, rank)| group.varying_at(of, position as u32, rank));
                let keys = others.collect::<Option<Vec<u64>>>().and_then(|others| keys(others.into_iter()));
                let keys = keys.ok_or_else(|| stream.broken())?;
                let values = keys.iter().map(|_| Ok(stream.get_signed(Field::FitNumber, 3)? as u64));
                let values = values.collect::<Result<_, Broken>>()?;
                Fit::Map { of, keys, values, otherwise: 0 }
            }
            kind::AT_EDGE => {
                let of = back(stream, 2)?;
                let mut value = || Ok(stream.get_signed(Field::FitNumber, 3)? as u64);
                Fit::Map { of, keys: vec![EDGE], values: vec![value()?], otherwise: value()? }
            }
            kind::DIFFERENCE => {
                let of = back(stream, 170)?;
                Fit::Difference { of, column: read_values(stream, self.length, 1, false)? }
            }
            kind::VALUES => Fit::Column(read_values(stream, self.length, 2 + slot.role as u32, false)?),
            kind => read_formula(stream, kind, self.length, self.job)?,
        }))
    }

    fn list(&mut self, position: u32, group: &mut Group) -> Result<(), Broken> {
        let stream = &mut *self.stream;
        let runs = stream.get(Field::CountRuns, 0)?;
        if runs == 1 {
            return Ok(());
        }
        let runs = usize::try_from(runs).map_err(|_| stream.broken())?;
        if runs > 0 {
            group.first.push_list(position, get_counts(stream, runs - 2)?);
            return Ok(());
        }
        let lists = match stream.get_length(Field::CountRuns, 1)? {
            0 => {
                let spans = stream.get_length(Field::Length, 30)?;
                let mut lists = Lists::new();
                let mut end = 0u32;
                for _ in 0..spans {
                    let length = stream.get_most(Field::Length, 31, self.length.into())? + 1;
                    end = u32::try_from(u64::from(end) + length).map_err(|_| stream.broken())?;
                    let runs = stream.get_length(Field::CountRuns, 2)?;
                    lists.push((end, get_counts(stream, runs)?));
                }
                lists
            }
            runs if runs - 1 <= SHORT_LIST => self.short_lists(group, runs - 1)?,
            _ => return Err(stream.broken()),
        };
        if lists.last().map(|&(end, _)| end) != Some(self.length) {
            return Err(self.stream.broken());
        }
        group.first.push_list(position, lists[0].1.clone());
        group.lists.push((position, lists));
        Ok(())
    }

    fn short_lists(&mut self, group: &Group, runs: usize) -> Result<Lists, Broken> {
        let stream = &mut *self.stream;
        let cost = u64::from(self.length) * LIST_COST;
        *self.budget = self.budget.checked_sub(cost).ok_or_else(|| stream.broken())?;
        let mut facts = Vec::new();
        for _ in 0..runs * 2 {
            facts.push(match stream.get_as(Field::Count as u8, 2)? {
                0 => match stream.get(Field::Fit, 0)? {
                    kind::CONSTANT => {
                        let value = stream.get(Field::FitNumber, 0)?;
                        Fit::Linear { start: value, step: 0 }
                    }
                    kind::VALUES => {
                        let context = 2 + Role::Number as u32;
                        Fit::Column(read_values(stream, self.length, context, false)?)
                    }
                    kind => read_formula(stream, kind, self.length, self.job)?,
                },
                code => Fit::Linear { start: unzigzag(code - 1) as u64, step: 0 },
            });
        }
        let mut lists = Lists::new();
        let mut list = vec![(0, 0); runs];
        for (position, rank) in group.members().enumerate() {
            let position = position as u32;
            for (pair, facts) in list.iter_mut().zip(facts.as_chunks::<2>().0) {
                let value = |fact: &Fit| fact.value(self.job, position, rank, &[]);
                *pair = (value(&facts[0]), value(&facts[1]));
            }
            match lists.last_mut() {
                Some((end, same)) if same[..] == list[..] => *end += 1,
                _ => lists.push((position + 1, Counts::from(&list[..]))),
            }
        }
        Ok(lists)
    }
}

fn get_counts(stream: &mut In, runs: usize) -> Result<Counts, Broken> {
    if runs > stream.left() {
        return Err(stream.broken());
    }
    let pair = |_| Ok((stream.get(Field::Count, 0)?, stream.get_signed(Field::Count, 1)? as u64));
    (0..runs).map(pair).collect()
}
