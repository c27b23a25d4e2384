//! Loops and guards of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ampl_analysis::computation::Computed;
use ampl_analysis::logical::{Count, Guard, Node, Program, Thread};
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_reader::Symbols;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP};

use super::arguments::{Calls, Variables};
use super::expression::Expressions;
use super::lists::Lists;
use super::refusal::Refusal;

/// Names of the variables of nested loops.
const INDICES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];

/// Writes the body of a thread.
pub struct Body<'a> {
    /// Writer of calls.
    pub calls: Calls<'a>,
    /// The thread.
    pub thread: &'a Thread,
    /// Ranks of each of its classes.
    pub classes: Vec<BTreeSet<u32>>,
    /// Computation before calls by label; empty where none is written.
    pub computed: &'a [Computed],
    /// True behind `MPI_Init`.
    begun: bool,
    /// Names of call sites.
    pub symbols: &'a mut Symbols,
    /// Expressions.
    pub out: Expressions,
    /// Variables.
    pub variables: Variables,
    /// Lists of counts that vary.
    pub lists: Lists,
    /// The program so far.
    pub text: String,
}

impl<'a> Body<'a> {
    /// A writer that has written nothing.
    pub fn new(
        calls: Calls<'a>,
        thread: &'a Thread,
        computed: &'a [Computed],
        symbols: &'a mut Symbols,
    ) -> Self {
        let classes: Vec<BTreeSet<u32>> =
            thread.classes.iter().map(|class| class.ranks.iter().copied().collect()).collect();
        let mut variables = Variables::default();
        number_requests(calls.program, &thread.body, &mut variables.requests);
        Self {
            calls,
            thread,
            classes,
            computed,
            begun: false,
            symbols,
            out: Expressions::default(),
            variables,
            lists: Lists::default(),
            text: String::new(),
        }
    }

    /// Ranks that run a part.
    fn ranks(&self, node: &Node) -> BTreeSet<u32> {
        node.uses().iter().flat_map(|used| &self.classes[used.class as usize]).copied().collect()
    }

    /// Writes parts that the ranks `around` come to, within so many loops and at that indent.
    ///
    /// # Errors
    /// The first [`Refusal`].
    pub fn nodes(
        &mut self,
        nodes: &[Node],
        around: &BTreeSet<u32>,
        loops: usize,
        indent: usize,
    ) -> Result<(), Refusal> {
        let mut open = Guard::Always;
        let program = self.calls.program;
        for node in nodes.iter().filter(|node| !is_failed_poll(program, node)) {
            let ranks = self.ranks(node);
            let guard = self.calls.formulas.guard(&ranks, around);
            if guard != open {
                if open != Guard::Always {
                    self.line(indent, "}");
                }
                if let Some(condition) = self.out.guard(&guard) {
                    self.line(indent, &format!("if ({condition}) {{"));
                }
                open = guard.clone();
            }
            let indent = indent + usize::from(guard != Guard::Always);
            let count = self.count(node, &ranks)?;
            match node {
                Node::Call { label, .. } => self.call(*label, count.as_deref(), loops, indent)?,
                Node::Loop { body, .. } => {
                    self.line(indent, &for_loop(count.as_deref().unwrap_or("1"), loops));
                    self.nodes(body, &ranks, loops + 1, indent + 1)?;
                    self.line(indent, "}");
                }
            }
        }
        if open != Guard::Always {
            self.line(indent, "}");
        }
        Ok(())
    }

    /// Repetitions of a part; `None` where it is run once.
    fn count(&mut self, node: &Node, ranks: &BTreeSet<u32>) -> Result<Option<String>, Refusal> {
        let listed = node.uses().iter().any(|used| matches!(used.count, Count::Listed(_)));
        if listed {
            return Ok(Some(self.lists.next(node.uses(), self.thread, &mut self.out)));
        }
        let mut column = Vec::with_capacity(ranks.len());
        for used in node.uses() {
            let Count::Always(times) = used.count else { continue };
            let times = i64::try_from(times).unwrap_or(i64::MAX);
            column.extend(self.classes[used.class as usize].iter().map(|&rank| (rank, times)));
        }
        column.sort_unstable();
        let formula = self.calls.formulas.number(&column);
        let text = self.out.value(&formula, "times", "long", &|value| value.to_string());
        Ok(Some(text).filter(|text| text != "1"))
    }

    fn call(&mut self, label: u32, count: Option<&str>, loops: usize, indent: usize) -> Result<(), Refusal> {
        let call = &self.calls.program.calls[label as usize];
        if call.function == GAP || usize::from(call.function) >= FUNCTION_COUNT {
            return Err(Refusal::Gap);
        }
        let name = Function(call.function).name();
        match call.flags {
            // It ends the recording.
            _ if name == "MPI_Finalize" => {}
            flags if flags & CALL_UNFINISHED != 0 => return Err(Refusal::Unfinished(name)),
            flags if flags & CALL_ERROR != 0 => return Err(Refusal::Failed(name)),
            flags if flags & CALL_NO_ARGS != 0 => return Err(Refusal::NoArguments(name)),
            _ => {}
        }
        let mut statements = self.calls.statements(call, &mut self.out, &mut self.variables)?;
        let site = call.path.first().map(|frame| self.symbols.name(&frame.module, frame.offset));
        if let (Some(site), Some(statement)) =
            (site, statements.iter_mut().find(|statement| statement.contains("MPI_")))
        {
            let _ = write!(statement, "  /* {} */", site.replace("*/", "* /"));
        }
        if let Some(computes) = self.computation(label) {
            statements.insert(0, computes);
        }
        self.begun |= name.starts_with("MPI_Init") && name != "MPI_Initialized";
        match (count, &statements[..]) {
            (None, _) => statements.iter().for_each(|statement| self.line(indent, statement)),
            (Some(count), [one]) => {
                let head = for_loop(count, loops);
                self.line(indent, head.trim_end_matches(" {"));
                self.line(indent + 1, one);
            }
            (Some(count), _) => {
                self.line(indent, &for_loop(count, loops));
                statements.iter().for_each(|statement| self.line(indent + 1, statement));
                self.line(indent, "}");
            }
        }
        Ok(())
    }

    /// The statement that lets as much time pass as the mean before the call of that label.
    fn computation(&mut self, label: u32) -> Option<String> {
        let computed = self.computed.get(label as usize).filter(|_| self.begun)?;
        let mean_ns = computed.mean_ns().round();
        if mean_ns < 1.0 {
            return None;
        }
        self.out.helpers.computes = true;
        Some(format!(
            "compute({mean_ns});  /* ns; measured {} of {} times */",
            computed.measured, computed.calls
        ))
    }

    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:width$}{text}", "", width = 4 * indent);
    }
}

fn for_loop(count: &str, loops: usize) -> String {
    let index = INDICES.get(loops).map_or_else(|| format!("i{loops}"), |name| (*name).to_owned());
    // What is not a constant is asked for once.
    match count.parse::<u64>() {
        Ok(_) => format!("for (long {index} = 0; {index} < {count}; {index}++) {{"),
        Err(_) => format!("for (long {index} = {count}; {index} > 0; {index}--) {{"),
    }
}

/// Numbers the requests in the order in which the program makes them.
fn number_requests(program: &Program, nodes: &[Node], numbers: &mut BTreeMap<i64, usize>) {
    use ampl_analysis::logical::{Meaning, OUTPUT};
    for node in nodes {
        match node {
            Node::Call { label, .. } => {
                let call = &program.calls[*label as usize];
                let makes = call
                    .arguments
                    .iter()
                    .any(|argument| argument.meaning == Meaning::Request && argument.param & OUTPUT != 0);
                if makes {
                    let next = numbers.len();
                    numbers.entry(i64::from(*label)).or_insert(next);
                }
            }
            Node::Loop { body, .. } => number_requests(program, body, numbers),
        }
    }
}

/// True for a poll that found nothing, and for a loop of these: how often one polls is chance.
fn is_failed_poll(program: &Program, node: &Node) -> bool {
    match node {
        Node::Call { label, .. } => program.calls[*label as usize].flags & CALL_MISS != 0,
        Node::Loop { body, .. } => body.iter().all(|node| is_failed_poll(program, node)),
    }
}
