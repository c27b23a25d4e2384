//! Trees with names: what is printed of a graph.

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::bound::{Bound, Span};
use super::fragment::Fault;
use super::frames::Around;
use super::graph::{CallGraph, Sums};
use super::names::{Name, Names, RegionName};
use super::view::{Item, Repeats, View, What};

/// Deepest nesting of rows: readers of JSON have limits of about twice as much.
const DEEPEST: usize = 56;

/// The trees of a run, and the size of the graph that has them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Nodes of the graph.
    pub nodes: u64,
    /// Nodes of the trees that it stands for.
    pub nodes_uncompressed: u64,
    /// Ratio of these numbers, uncompressed to compressed.
    pub r_n: f64,
    /// The same ratio of bytes.
    pub r_m: f64,
    /// Bytes of the graph.
    pub bytes: u64,
    /// Bytes of the trees.
    pub bytes_uncompressed: u64,
    /// Bound of merged durations, as a share of each; 0 where only equal ones are merged.
    pub bound: f64,
    /// Bound in nanoseconds.
    pub bound_ns: u64,
    /// Ranks that have no tree, with the reason.
    pub without: Vec<Without>,
    /// Ranks of which stored times could not be read.
    pub damaged_times: Vec<u32>,
    /// All ranks; each of its children is the tree of some.
    #[serde(flatten)]
    pub run: Row,
}

/// A rank without a tree.
#[derive(Clone, Debug, Serialize)]
pub struct Without {
    /// The rank.
    pub rank: u32,
    /// Reason.
    pub reason: Fault,
}

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// All ranks.
    Run,
    /// Ranks whose calls are alike.
    Ranks,
    /// A thread.
    Thread,
    /// A region.
    Region,
    /// A function of the program.
    Function,
    /// A function of MPI at a place.
    Call,
    /// Rows that are repeated together.
    Loop,
    /// Rows that follow each other, summed by name.
    Several,
    /// Calls that were counted and not recorded.
    Gap,
}

/// Times in a row that something comes in what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Times {
    /// The same number each time.
    Same(u64),
    /// Mean of numbers that differ.
    Mean(f64),
}

/// A part of the trees of some ranks, with sums over these ranks. Order of fields is part of the format.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the function, region or thread.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Calls of MPI in it.
    pub calls: u64,
    /// Known time in it, nanoseconds; `None` where none is known.
    pub inclusive_ns: Option<u64>,
    /// Known time in it and in none of its children.
    pub exclusive_ns: Option<u64>,
    /// Largest deviation of the true inclusive time, as a share of it; 0 where nothing was merged.
    pub deviation: f64,
    /// Times in a row that it comes in each of its parent.
    pub times: Option<Times>,
    /// Least number of these.
    pub times_least: Option<u64>,
    /// Greatest.
    pub times_most: Option<u64>,
    /// Visits of a region, iterations of a loop; `None` of functions of the program, of which they are not known.
    pub visits: Option<u64>,
    /// Place of the call.
    pub site: Option<String>,
    /// The ranks, `0-3,8`.
    pub ranks: Option<String>,
    /// Calls of MPI in it whose durations are known.
    pub known_calls: u64,
    /// Time of all, estimated from what is known by the weights of windows, those of a rank calibrated to its own time; `None`
    /// where nothing is known.
    pub estimate_ns: Option<f64>,
    /// Bytes sent; `None` where those of some calls are not known.
    pub bytes_sent: Option<u64>,
    /// Bytes received; `None` likewise.
    pub bytes_received: Option<u64>,
    /// Calls in it that were counted and not recorded.
    pub missing_calls: u64,
    /// True where children are left out because they nest too deeply.
    pub is_cut: bool,
    /// Parts in the order of time; those of [`Kind::Several`] with the most time first.
    pub children: Vec<Row>,
}

impl Row {
    /// Share of the calls in it whose durations are known; 1 where there are none.
    pub fn coverage(&self) -> f64 {
        if self.calls == 0 { 1.0 } else { self.known_calls as f64 / self.calls as f64 }
    }
}

impl Report {
    /// Trees of `graph`.
    pub fn of(graph: &CallGraph, symbols: &mut Symbols) -> Self {
        let mut functions: FxHashMap<String, u64> = FxHashMap::default();
        // Functions that are compiled into one are different ones.
        let view = View::of(graph, &mut |module, offset| {
            let next = functions.len() as u64;
            match symbols.function(module, offset).map(|function| function.name) {
                Some(name) if name == "_start" || name.starts_with("__libc_start") => Around::Startup,
                Some(name) => Around::Function(*functions.entry(name).or_insert(next)),
                // Without symbols it is recognized by the C library's file name.
                None if module.rsplit('/').next().is_some_and(|file| file.starts_with("libc.so")) => {
                    Around::Startup
                }
                None => Around::Unknown,
            }
        });
        let mut namer = Namer { names: graph.dag().names(), symbols };
        let mut sums = Sums::default();
        let mut children = Vec::new();
        for tree in &view.trees {
            sums.add(&tree.root.sums);
            let mut row = namer.row(&tree.root, 1);
            let ranks = RankSet::from_iter(tree.ranks.iter().copied()).to_string();
            row.name = if tree.ranks.len() == 1 { format!("rank {ranks}") } else { format!("ranks {ranks}") };
            row.ranks = Some(ranks);
            // The only thread is the rank.
            if let [Row { kind: Kind::Thread, .. }] = row.children[..] {
                let thread = row.children.remove(0);
                (row.children, row.exclusive_ns, row.is_cut) =
                    (thread.children, thread.exclusive_ns, thread.is_cut);
            }
            children.push(row);
        }
        let mut run = row("run".into(), Kind::Run, &sums, Some(Span::default()));
        let ranks: Vec<u32> = graph.ranks().iter().map(|rank| rank.rank).collect();
        run.ranks = Some(RankSet::from_iter(ranks).to_string());
        run.children = children;
        let metrics = graph.metrics();
        let Bound { relative, absolute_ns } = graph.bound();
        let without = |&(rank, fault): &(u32, Fault)| Without { rank, reason: fault };
        Self {
            nodes: metrics.nodes,
            nodes_uncompressed: metrics.nodes_uncompressed,
            r_n: metrics.r_n(),
            r_m: metrics.r_m(),
            bytes: metrics.bytes,
            bytes_uncompressed: metrics.bytes_uncompressed,
            bound: relative,
            bound_ns: absolute_ns,
            without: graph.faults().iter().map(without).collect(),
            damaged_times: graph.damaged().to_vec(),
            run,
        }
    }
}

fn row(name: String, kind: Kind, sums: &Sums, exclusive: Option<Span>) -> Row {
    let time = sums.time();
    let is_known = sums.timed_calls > 0 || time != Span::default();
    let value_ns = time.value_ns();
    let are_sized = sums.unsized_calls == 0;
    Row {
        name,
        kind,
        calls: sums.calls,
        inclusive_ns: is_known.then_some(value_ns),
        exclusive_ns: exclusive.filter(|_| is_known).map(Span::value_ns),
        deviation: if value_ns == 0 { 0.0 } else { time.deviation_ns() as f64 / value_ns as f64 },
        times: None,
        times_least: None,
        times_most: None,
        visits: None,
        site: None,
        ranks: None,
        known_calls: sums.timed_calls,
        estimate_ns: is_known.then(|| sums.estimate_ns()),
        bytes_sent: are_sized.then_some(sums.sent),
        bytes_received: are_sized.then_some(sums.received),
        missing_calls: sums.missing,
        is_cut: exclusive.is_none(),
        children: Vec::new(),
    }
}

struct Namer<'a> {
    names: &'a Names,
    symbols: &'a mut Symbols,
}

impl Namer<'_> {
    fn row(&mut self, item: &Item, depth: usize) -> Row {
        let (name, kind, site) = self.name(item);
        let mut row = row(name, kind, &item.sums, item.exclusive);
        row.site = site;
        row.visits = item.number.filter(|_| matches!(kind, Kind::Region | Kind::Loop));
        if let Some(Repeats { least, most, around }) = item.repeats {
            let number = match kind {
                Kind::Call | Kind::Gap | Kind::Region | Kind::Loop => item.number.unwrap_or(around),
                _ => around,
            };
            row.times = Some(match least == most {
                true => Times::Same(least),
                false => Times::Mean(number as f64 / around.max(1) as f64),
            });
            (row.times_least, row.times_most) = (Some(least), Some(most));
        }
        match depth < DEEPEST {
            true => row.children = item.items.iter().map(|inner| self.row(inner, depth + 1)).collect(),
            false => row.is_cut |= !item.items.is_empty(),
        }
        row
    }

    /// Name, kind, and place of a call.
    fn name(&mut self, item: &Item) -> (String, Kind, Option<String>) {
        let path =
            |names: &Names, module: u32| names.modules().get(module as usize).cloned().unwrap_or_default();
        let name = match item.what {
            What::Named(name) => self.names.get(name),
            What::Function(module, offset) => {
                let path = path(self.names, module);
                let function = self.symbols.function(&path, offset).map(|function| function.name);
                let name = function.unwrap_or_else(|| self.symbols.name(&path, offset));
                return (name, Kind::Function, None);
            }
            What::Loop => return ("loop".into(), Kind::Loop, None),
            What::Several => return ("several".into(), Kind::Several, None),
        };
        match name {
            Name::Call(place) => {
                let function = Function::name_of(place.function);
                let site = place.path.first().map(|&(module, offset)| (path(self.names, module), offset));
                // Where sites are not distinguished there is one of each function, without a place.
                let site = site.filter(|(path, offset)| !path.is_empty() || *offset > 0);
                let site = site.map(|(path, offset)| self.symbols.name(&path, offset));
                (function.into(), Kind::Call, site)
            }
            Name::Region(region) => {
                let part = match (region.begins, region.ends) {
                    (true, true) => "",
                    (true, false) => " (its end is not recorded)",
                    (false, _) => " (its begin is not recorded)",
                };
                let name = match &region.name {
                    RegionName::Given(name) => name.clone(),
                    &RegionName::Function(module, offset) => {
                        self.symbols.entry(&path(self.names, module), offset).to_string()
                    }
                };
                (format!("{name}{part}"), Kind::Region, None)
            }
            Name::Thread(number) => (format!("thread {number}"), Kind::Thread, None),
            Name::Gap => ("not recorded".into(), Kind::Gap, None),
            Name::Rank | Name::Outside | Name::Split | Name::Body => ("rank".into(), Kind::Ranks, None),
        }
    }
}
