//! Calls of a logical program by names: functions, arguments, guards.

use std::collections::{BTreeMap, BTreeSet};

use ampl_analysis::logical::{
    Argument, Call, Count, Meaning, Node, Oddity, Partner, Plain, Program, Thread, Values, oddity, predefined,
};
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::value::{Value, rank_value, tag_value};

use crate::human::{count, cut};
use crate::topology::rank_set;

/// Arguments by name; several of one name are a list.
pub type Arguments = BTreeMap<&'static str, Value>;

/// Name of a function.
pub fn name(function: u16) -> &'static str {
    if usize::from(function) < FUNCTION_COUNT { Function(function).name() } else { "(not recorded)" }
}

fn param(function: u16, argument: &Argument) -> &'static str {
    if usize::from(function) >= FUNCTION_COUNT {
        return "";
    }
    Function(function).spec().params.get(usize::from(argument.param)).map_or("", |param| param.name)
}

/// Words for a call that did not go as calls do.
pub fn flag(flags: u8) -> Option<&'static str> {
    Some(match oddity(flags)? {
        Oddity::FoundNothing => "found nothing",
        Oddity::Unfinished => "has not returned",
        Oddity::Failed => "failed",
        Oddity::WithoutArguments => "arguments not recorded",
    })
}

/// Value of an argument as `ampl decode` has it.
fn value(function: u16, argument: &Argument) -> Value {
    let predefined = || predefined(argument.value as u64);
    match (argument.meaning, param(function, argument)) {
        (Meaning::Partner, _) | (_, "root") => rank_value(argument.value),
        (_, name) if name.contains("tag") => tag_value(argument.value),
        (Meaning::Comm, _) => Value::Name(match predefined() {
            Some("MPI_COMM_WORLD") => "world".into(),
            Some("MPI_COMM_SELF") => "self".into(),
            Some(name) => name.into(),
            None => format!("comm.w{}", argument.value),
        }),
        (_, name) if name.contains("type") => Value::Name(match predefined() {
            Some(name) => name.into(),
            None => format!("datatype.w{}", argument.value),
        }),
        _ => Value::Int(argument.value),
    }
}

/// Adds a value; several of one name are a list.
fn put(arguments: &mut Arguments, name: &'static str, value: Value) {
    match arguments.get_mut(name) {
        None => _ = arguments.insert(name, value),
        Some(Value::List(list)) => list.push(value),
        Some(first) => *first = Value::List(vec![first.clone(), value]),
    }
}

/// Arguments of a call of a rank.
pub fn arguments_of(call: &Plain) -> Arguments {
    let mut arguments = Arguments::new();
    for argument in &call.arguments {
        put(&mut arguments, param(call.function, argument), value(call.function, argument));
    }
    arguments
}

/// Arguments of a call of the program.
pub fn arguments(program: &Program, call: &Call) -> Arguments {
    let mut arguments = Arguments::new();
    for (argument, values) in call.arguments.iter().zip(&call.values) {
        let text = match values {
            Values::Same(own) => value(call.function, &Argument { value: *own, ..*argument }),
            Values::Rule(rule) => Value::Name(program.space.name(rule)),
            Values::Each(_) => Value::Name("by rank".into()),
        };
        put(&mut arguments, param(call.function, argument), text);
    }
    arguments
}

/// Guards of a thread's parts.
#[derive(Debug)]
pub struct Guards<'a> {
    /// The program.
    pub program: &'a Program,
    thread: &'a Thread,
    /// Ranks of the thread.
    pub all: BTreeSet<u32>,
    /// Ranks that have a neighbour in each direction.
    neighbours: Vec<(String, BTreeSet<u32>)>,
}

impl<'a> Guards<'a> {
    /// Guards of the parts of `thread`.
    pub fn new(program: &'a Program, thread: &'a Thread) -> Self {
        let all: BTreeSet<u32> =
            thread.classes.iter().flat_map(|class| class.ranks.iter().copied()).collect();
        let space = &program.space;
        let steps = space.steps().into_iter().map(|step| {
            let has = all.iter().copied().filter(|&rank| space.at(rank, &step).is_some()).collect();
            (space.name(&Partner::Shift(step)), has)
        });
        let neighbours = steps.collect();
        Self { program, thread, all, neighbours }
    }

    /// Ranks that run a part.
    pub fn ranks(&self, node: &Node) -> BTreeSet<u32> {
        let classes = node.uses().iter().filter_map(|used| self.thread.classes.get(used.class as usize));
        classes.flat_map(|class| class.ranks.iter().copied()).collect()
    }

    /// Words for the ranks that run a part; `None` where those around it do.
    pub fn of(&self, node: &Node, around: &BTreeSet<u32>) -> Option<String> {
        let ranks = self.ranks(node);
        if ranks == *around {
            return None;
        }
        let neighbour = self.neighbours.iter().find(|(_, has)| {
            ranks == *has || (ranks.is_subset(has) && has.intersection(around).count() == ranks.len())
        });
        if let Some((name, _)) = neighbour {
            return Some(format!("if neighbour {name} exists"));
        }
        if ranks == self.all {
            return Some("all ranks".into());
        }
        let others: BTreeSet<u32> = around.difference(&ranks).copied().collect();
        if others.len() * 4 < ranks.len() {
            return Some(format!("not ranks {}", cut(&set(&others), 60)));
        }
        Some(format!("ranks {}", cut(&set(&ranks), 60)))
    }
}

/// `0-3,8`: `ranks`.
pub fn set(ranks: &BTreeSet<u32>) -> String {
    rank_set(ranks.iter().copied())
}

/// Repetitions of a part, where they are more than one.
pub fn times(node: &Node) -> Option<String> {
    let mut counts: Vec<Option<u64>> = node
        .uses()
        .iter()
        .map(|used| match used.count {
            Count::Always(times) => Some(times),
            Count::Listed(_) => None,
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    match &counts[..] {
        [Some(1)] => None,
        [Some(times)] => Some(count(*times)),
        [None, ..] => Some("varying".into()),
        [Some(least), .., Some(most)] => Some(format!("{} to {}", count(*least), count(*most))),
        _ => None,
    }
}
