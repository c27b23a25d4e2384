//! Calls that several classes of ranks make alike.

use ampl_trace::model::call_path;
use ampl_trace::regions::Edge;
use ampl_trace::structure::RankStructure;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{Argument, Detail, Meaning, NO_REQUEST, OUTPUT, Plain, Plainly, UNSEEN_REQUEST};
use super::space::{Partner, Space};
use crate::messages::{Frame, Scopes};

/// Values of an argument over ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// The same for all.
    Same(i64),
    /// A partner by a rule.
    Rule(Partner),
    /// A value for each rank, ascending.
    Each(Vec<(u32, i64)>),
}

impl Values {
    fn of(&self, rank: u32, space: &Space, ranks: u32) -> Option<i64> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Rule(rule) => space.partner(rule, rank, ranks),
            Self::Each(values) => {
                values.binary_search_by_key(&rank, |&(rank, _)| rank).ok().map(|at| values[at].1)
            }
        }
    }
}

/// A call of the program.
#[derive(Clone, Debug)]
pub struct Call {
    /// Index in the function table; [`GAP`](ampl_trace::record::GAP) for calls that were only counted.
    pub function: u16,
    /// Flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Call path, from the call outwards; empty where it is not known.
    pub path: Vec<Frame>,
    /// Arguments; the value of each is that in `values`.
    pub arguments: Vec<Argument>,
    /// Values of the arguments.
    pub values: Vec<Values>,
    /// One more than the index of the site of each rank; only to compare.
    sites: Vec<(u32, u32)>,
}

impl Call {
    /// The call as `rank` makes it.
    pub fn of(&self, rank: u32, space: &Space, ranks: u32) -> Option<Plain> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for (argument, values) in self.arguments.iter().zip(&self.values) {
            arguments.push(Argument { value: values.of(rank, space, ranks)?, ..*argument });
        }
        let at = self.sites.binary_search_by_key(&rank, |&(rank, _)| rank).ok()?;
        Some(Plain { function: self.function, flags: self.flags, site: self.sites[at].1, arguments })
    }

    /// Ranks that make it, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        self.sites.iter().map(|&(rank, _)| rank)
    }

    /// Values of the argument at that place by rank, ascending.
    pub fn column(&self, place: usize, space: &Space, ranks: u32) -> Vec<(u32, i64)> {
        let values = &self.values[place];
        self.ranks().filter_map(|rank| Some((rank, values.of(rank, space, ranks)?))).collect()
    }

    /// Rules of its partners.
    pub fn partners(&self) -> impl Iterator<Item = &Values> {
        let of = |(argument, values)| {
            let argument: &Argument = argument;
            (argument.meaning == Meaning::Partner).then_some(values)
        };
        self.arguments.iter().zip(&self.values).filter_map(of)
    }
}

/// A call that classes share while they are joined.
#[derive(Debug)]
struct Label {
    call: Call,
    /// Rules that hold for all partners so far, by argument.
    rules: Rules,
    /// Values of all ranks, by argument.
    columns: Columns,
    /// Class that was joined last.
    class: u32,
}

/// Rules that give the partners of all ranks, by argument.
type Rules = Vec<Vec<Partner>>;

/// Values of ranks, by argument.
type Columns = Vec<Vec<(u32, i64)>>;

/// Function, flags, path and places of the arguments.
type Base = (u16, u8, u32, Vec<(Meaning, u8, u32)>);

/// The labels of a job.
#[derive(Debug)]
pub struct Labels {
    ranks: u32,
    detail: Detail,
    labels: Vec<Label>,
    by_base: FxHashMap<Base, Vec<u32>>,
    paths: FxHashMap<Vec<Frame>, u32>,
    classes: u32,
}

impl Labels {
    /// No labels, in a job of so many ranks.
    pub fn new(ranks: u32, detail: Detail) -> Self {
        Self {
            ranks,
            detail,
            labels: Vec::new(),
            by_base: FxHashMap::default(),
            paths: FxHashMap::default(),
            classes: 0,
        }
    }

    /// Labels of the terminals of thread `index` of a class of ranks, by terminal; no label for regions.
    pub fn class(
        &mut self,
        scopes: &Scopes<'_>,
        space: &Space,
        members: &[RankStructure],
        index: usize,
    ) -> Vec<u32> {
        self.classes += 1;
        let Some(first) = members.first() else { return Vec::new() };
        let calls: Vec<Vec<Plain>> = members
            .iter()
            .map(|rank| Plainly::new(scopes, rank.rank, self.ranks, self.detail).thread(&rank.threads[index]))
            .collect();
        let terminals = calls[0].len();
        // Terminals that all ranks make alike but for addresses and requests are one.
        let mut alike: FxHashMap<Vec<&Plain>, usize> = FxHashMap::default();
        let mut same = Vec::with_capacity(terminals);
        for terminal in 0..terminals {
            let row: Vec<&Plain> = calls.iter().map(|calls| &calls[terminal]).collect();
            same.push(*alike.entry(row).or_insert(terminal));
        }
        let mut known: FxHashMap<usize, u32> = FxHashMap::default();
        let mut open = Vec::new();
        for (terminal, &first_alike) in same.iter().enumerate() {
            // Regions are no part of the program.
            if first_alike == terminal && Edge::of(calls[0][terminal].function).is_none() {
                open.push(self.prepared(space, first, &calls, members, terminal));
            }
        }
        let mut used: FxHashSet<u32> = FxHashSet::default();
        // Equal values first: what differs in counts only is joined with what is left.
        for exact in [true, false] {
            for (terminal, base, rules, columns) in &open {
                if known.contains_key(terminal) {
                    continue;
                }
                let candidates = self.by_base.get(base).map_or(&[][..], Vec::as_slice);
                let fits = |label: &&u32| {
                    let label_of = &self.labels[**label as usize];
                    !used.contains(*label)
                        && label_of.class != self.classes
                        && label_of.fits(rules, columns, exact)
                };
                if let Some(&label) = candidates.iter().find(fits) {
                    used.insert(label);
                    known.insert(*terminal, label);
                }
            }
        }
        for (terminal, base, rules, columns) in open {
            let label = match known.get(&terminal) {
                Some(&label) => {
                    self.labels[label as usize].join(
                        &rules,
                        columns,
                        members,
                        &calls,
                        terminal,
                        self.classes,
                    );
                    label
                }
                None => self.fresh(first, &calls, members, terminal, base, (rules, columns)),
            };
            known.insert(terminal, label);
        }
        self.name_requests(&calls, &same, &known);
        same.iter().map(|terminal| known.get(terminal).copied().unwrap_or(u32::MAX)).collect()
    }

    /// Makes requests of the class whose `calls` were joined last the labels of the calls that make them: numbers in
    /// the trace are those of terminals, which belong to a class.
    fn name_requests(&mut self, calls: &[Vec<Plain>], same: &[usize], known: &FxHashMap<usize, u32>) {
        let Some(first) = calls.first().filter(|_| self.detail == Detail::Whole) else { return };
        let requests = |call: &Plain| {
            let all: Vec<(usize, Argument)> = call.arguments.iter().copied().enumerate().collect();
            all.into_iter().filter(|(_, argument)| argument.meaning == Meaning::Request)
        };
        let mut makers: FxHashMap<i64, u32> = FxHashMap::default();
        for (terminal, call) in first.iter().enumerate() {
            for (_, made) in requests(call).filter(|(_, argument)| argument.param & OUTPUT != 0) {
                if let Some(&label) = known.get(&same[terminal]).filter(|_| made.value >= 0) {
                    makers.insert(made.value, label);
                }
            }
        }
        for (terminal, call) in first.iter().enumerate().filter(|(terminal, _)| same[*terminal] == *terminal)
        {
            let Some(&label) = known.get(&terminal) else { continue };
            for (place, argument) in requests(call) {
                let value = match argument.value {
                    NO_REQUEST => NO_REQUEST,
                    number => makers.get(&number).map_or(UNSEEN_REQUEST, |&label| i64::from(label)),
                };
                let column = &mut self.labels[label as usize].columns[place];
                let own = column.len().saturating_sub(calls.len());
                column[own..].iter_mut().for_each(|(_, old)| *old = value);
            }
        }
    }

    fn prepared(
        &mut self,
        space: &Space,
        first: &RankStructure,
        calls: &[Vec<Plain>],
        members: &[RankStructure],
        terminal: usize,
    ) -> (usize, Base, Rules, Columns) {
        let call = &calls[0][terminal];
        let path = self.path(first, call.site);
        let arguments = &call.arguments;
        let mut columns = Vec::with_capacity(arguments.len());
        let mut rules = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            let value = |(rank, calls): (&RankStructure, &Vec<Plain>)| {
                (rank.rank, calls[terminal].arguments.get(at).map_or(0, |argument| argument.value))
            };
            let column: Vec<(u32, i64)> = members.iter().zip(calls).map(value).collect();
            rules.push(match argument.meaning {
                Meaning::Partner => space.rules(&column, self.ranks),
                _ => Vec::new(),
            });
            columns.push(column);
        }
        let places = arguments.iter().map(|one| (one.meaning, one.param, one.element)).collect();
        (terminal, (call.function, call.flags, path, places), rules, columns)
    }

    fn fresh(
        &mut self,
        first: &RankStructure,
        calls: &[Vec<Plain>],
        members: &[RankStructure],
        terminal: usize,
        base: Base,
        (rules, columns): (Rules, Columns),
    ) -> u32 {
        let call = &calls[0][terminal];
        let sites =
            members.iter().zip(calls).map(|(rank, calls)| (rank.rank, calls[terminal].site)).collect();
        self.labels.push(Label {
            call: Call {
                function: call.function,
                flags: call.flags,
                path: frames(first, call.site),
                arguments: call.arguments.clone(),
                values: Vec::new(),
                sites,
            },
            rules,
            columns,
            class: self.classes,
        });
        let label = self.labels.len() as u32 - 1;
        self.by_base.entry(base).or_default().push(label);
        label
    }

    fn path(&mut self, rank: &RankStructure, site: u32) -> u32 {
        let next = self.paths.len() as u32;
        *self.paths.entry(frames(rank, site)).or_insert(next)
    }

    /// The calls, by label.
    pub fn finish(self, space: &Space) -> Vec<Call> {
        let ranks = self.ranks;
        self.labels.into_iter().map(|label| label.finish(space, ranks)).collect()
    }
}

impl Label {
    fn fits(&self, rules: &[Vec<Partner>], columns: &[Vec<(u32, i64)>], exact: bool) -> bool {
        self.call.arguments.iter().enumerate().all(|(at, argument)| match argument.meaning {
            // Tables alone join only what has no rule on either side.
            Meaning::Partner => {
                let both = |rule: &&Partner| **rule != Partner::Table && rules[at].contains(rule);
                self.rules[at].iter().any(|rule| both(&rule))
                    || (self.rules[at].len() == 1 && rules[at].len() == 1)
            }
            // Its value is no label yet.
            Meaning::Request => true,
            _ if exact || argument.meaning == Meaning::Other => {
                let value = columns[at].first().map(|&(_, value)| value);
                self.columns[at].iter().chain(&columns[at]).all(|&(_, other)| Some(other) == value)
            }
            _ => true,
        })
    }

    fn join(
        &mut self,
        rules: &[Vec<Partner>],
        columns: Columns,
        members: &[RankStructure],
        calls: &[Vec<Plain>],
        terminal: usize,
        class: u32,
    ) {
        for (own, others) in self.rules.iter_mut().zip(rules) {
            own.retain(|rule| others.contains(rule));
        }
        for (own, others) in self.columns.iter_mut().zip(columns) {
            own.extend(others);
        }
        self.call
            .sites
            .extend(members.iter().zip(calls).map(|(rank, calls)| (rank.rank, calls[terminal].site)));
        self.class = class;
    }

    fn finish(mut self, space: &Space, ranks: u32) -> Call {
        self.call.sites.sort_unstable();
        for (rules, mut column) in self.rules.into_iter().zip(self.columns) {
            column.sort_unstable();
            let holds = |rule: &Partner| {
                column.iter().all(|&(rank, value)| space.partner(rule, rank, ranks) == Some(value))
            };
            let first = column.first().map_or(0, |&(_, value)| value);
            self.call.values.push(match rules.into_iter().find(holds) {
                Some(rule) => Values::Rule(rule),
                None if column.iter().all(|&(_, value)| value == first) => Values::Same(first),
                None => Values::Each(column),
            });
        }
        self.call
    }
}

/// Call path of a site: one more than its index, 0 for none.
fn frames(rank: &RankStructure, site: u32) -> Vec<Frame> {
    let sites = site.checked_sub(1).into_iter().flat_map(|site| call_path(&rank.sites, site));
    let frame = |site: ampl_trace::model::Site| Frame {
        module: rank.modules.get(site.module as usize).cloned().unwrap_or_default(),
        offset: site.offset,
    };
    sites.map(frame).filter(|frame| !frame.module.is_empty() || frame.offset > 0).collect()
}
