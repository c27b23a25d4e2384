//! Facts about what ran and where, in which runs may differ.

use std::collections::{BTreeMap, BTreeSet};

use ampl_trace::Trace;
use ampl_trace::metadata::FileFacts;

use super::profile::Profile;

/// Most letters of a value.
const LONGEST: usize = 120;

/// Kind of a fact, the likeliest causes of other times first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactKind {
    /// Contents of the program's file.
    Program,
    /// Contents of a file that arguments name.
    Input,
    /// Version of the MPI library.
    MpiLibrary,
    /// Environment module.
    Module,
    /// Mapped library.
    Library,
    /// Hosts and their ranks.
    Nodes,
    /// Processors that ranks may run on.
    Binding,
    /// Machine of rank 0.
    Machine,
    /// Limits of the control group.
    Limits,
    /// Variable of the environment.
    Variable,
    /// Value that the program registered with Adiak.
    Adiak,
    /// Setting of ampl.
    Setting,
    /// Version of ampl.
    Ampl,
}

impl FactKind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Input => "input",
            Self::MpiLibrary => "mpi_library",
            Self::Module => "module",
            Self::Library => "library",
            Self::Nodes => "nodes",
            Self::Binding => "binding",
            Self::Machine => "machine",
            Self::Limits => "limits",
            Self::Variable => "variable",
            Self::Adiak => "adiak",
            Self::Setting => "setting",
            Self::Ampl => "ampl",
        }
    }
}

/// Facts of a run: kind and name, and value.
pub type Facts = BTreeMap<(FactKind, String), String>;

/// A fact in which the sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its kind.
    pub kind: FactKind,
    /// Its name; empty where the kind says all.
    pub name: String,
    /// Values of the base's runs, each once; none where the runs lack the fact.
    pub base: Vec<String>,
    /// The same of the new runs.
    pub new: Vec<String>,
}

/// Facts of `trace`.
pub fn facts(trace: &Trace) -> Facts {
    let mut found = Facts::new();
    let mut add = |kind: FactKind, name: &str, value: String| {
        if !value.is_empty() {
            found.insert((kind, name.to_owned()), cut(&value));
        }
    };
    let data = &trace.run.metadata;
    if let Some(program) = &data.executable {
        add(FactKind::Program, "", contents(program));
    }
    for input in data.inputs.iter().flatten() {
        add(FactKind::Input, file_name(&input.path), contents(input));
    }
    add(FactKind::MpiLibrary, "", trace.run.mpi_library.lines().next().unwrap_or_default().trim().to_owned());
    for module in data.modules.iter().flatten() {
        let (name, version) = module.rsplit_once('/').unwrap_or((module, "loaded"));
        add(FactKind::Module, name, version.to_owned());
    }
    for library in data.libraries.iter().flatten() {
        let value = library.build_id.as_ref().map(|id| format!("build {id}"));
        add(FactKind::Library, file_name(&library.path), value.unwrap_or_else(|| library.path.clone()));
    }
    for (name, value) in data.variables.iter().flatten() {
        add(FactKind::Variable, name, value.clone());
    }
    if let Some(machine) = &data.machine {
        add(FactKind::Machine, "model", machine.model.clone().unwrap_or_default());
        add(FactKind::Machine, "processors", machine.processors.clone().unwrap_or_default());
        add(FactKind::Machine, "system", machine.system.clone().unwrap_or_default());
        add(FactKind::Machine, "memory", machine.memory.map(|bytes| bytes.to_string()).unwrap_or_default());
    }
    if let Some(limits) = &data.limits {
        add(FactKind::Limits, "processors", limits.processors.map(|all| all.to_string()).unwrap_or_default());
        add(FactKind::Limits, "memory", limits.memory.map(|bytes| bytes.to_string()).unwrap_or_default());
    }
    for pair in data.adiak.iter().flatten() {
        add(FactKind::Adiak, &pair.name, pair.value.to_string());
    }
    let hosts: BTreeSet<&str> = trace.ranks.iter().map(|rank| rank.process.host.as_str()).collect();
    add(FactKind::Nodes, "hosts", hosts.iter().copied().collect::<Vec<_>>().join(","));
    let runs = |of: fn(&ampl_trace::model::Process) -> &str| {
        let spans = trace.ranks.chunk_by(|one, next| of(&one.process) == of(&next.process));
        let span = |span: &[ampl_trace::RankTrace]| (of(&span[0].process).to_owned(), span.len());
        spans.map(span).collect::<Vec<_>>()
    };
    let lengths =
        runs(|process| &process.host).iter().map(|(_, ranks)| ranks.to_string()).collect::<Vec<_>>();
    add(FactKind::Nodes, "ranks per host", lengths.join("+"));
    let processors = runs(|process| &process.cpus);
    let text = |(cpus, ranks): &(String, usize)| format!("{cpus} ({ranks})");
    if processors.iter().any(|(cpus, _)| !cpus.is_empty()) {
        add(FactKind::Binding, "", processors.iter().map(text).collect::<Vec<_>>().join(" "));
    }
    add(FactKind::Ampl, "", trace.run.ampl_version.clone());
    settings(&trace.run.config, &mut add);
    found
}

/// Settings of the configuration `text`, as `section.key`; sections of a list are numbered.
fn settings(text: &str, add: &mut impl FnMut(FactKind, &str, String)) {
    let (mut section, mut seen) = (String::new(), BTreeMap::<String, usize>::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("[[").and_then(|line| line.strip_suffix("]]")) {
            let number = seen.entry(name.to_owned()).or_default();
            *number += 1;
            section = format!("{name}[{number}]");
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let name = format!("{section}.{}", key.trim());
            if name != "output.dir" {
                add(FactKind::Setting, &name, value.trim().to_owned());
            }
        }
    }
}

/// Differences between the facts of two sides, by kind.
pub fn differences(base: &[Profile], new: &[Profile]) -> Vec<Difference> {
    let keys: BTreeSet<&(FactKind, String)> =
        base.iter().chain(new).flat_map(|run| run.facts.keys()).collect();
    let values = |runs: &[Profile], key: &(FactKind, String)| -> BTreeSet<Option<String>> {
        runs.iter().map(|run| run.facts.get(key).cloned()).collect()
    };
    let mut found = Vec::new();
    for key in keys {
        let (one, other) = (values(base, key), values(new, key));
        if one != other {
            let known = |values: BTreeSet<Option<String>>| values.into_iter().flatten().collect();
            let (kind, name) = key.clone();
            found.push(Difference { kind, name, base: known(one), new: known(other) });
        }
    }
    found
}

fn contents(file: &FileFacts) -> String {
    match (&file.sha256, &file.build_id) {
        (Some(hash), _) => format!("sha256 {hash}"),
        (_, Some(id)) => format!("build {id}"),
        _ => format!("{} bytes", file.bytes),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::metadata::{Library, Metadata};

    fn run(version: &str, library: &str, host: &str) -> Profile {
        let mut trace = Trace::default();
        trace.run.ampl_version = version.into();
        trace.run.config =
            "[sampling]\nseed = 42\n\n[[metric]]\nname = \"wall\"\n\n[[metric]]\nname = \"x\"\n".into();
        let libraries =
            Some(vec![Library { path: "/usr/lib/libm.so.6".into(), build_id: Some(library.into()) }]);
        trace.run.metadata =
            Metadata { libraries, modules: Some(vec!["gcc/12".into()]), ..Metadata::default() };
        let mut rank = ampl_trace::RankTrace::default();
        rank.process.host = host.into();
        trace.ranks = vec![rank];
        Profile { facts: facts(&trace), ..Profile::default() }
    }

    #[test]
    fn only_differences_between_sides_are_listed() {
        let (one, other) = (run("1", "aa", "n1"), run("1", "bb", "n2"));
        assert_eq!(differences(std::slice::from_ref(&one), std::slice::from_ref(&one)), []);
        let found = differences(std::slice::from_ref(&one), std::slice::from_ref(&other));
        let kinds: Vec<_> = found.iter().map(|found| (found.kind, found.name.as_str())).collect();
        assert_eq!(kinds, [(FactKind::Library, "libm.so.6"), (FactKind::Nodes, "hosts")]);
        assert_eq!(
            (&found[0].base[..], &found[0].new[..]),
            (&["build aa".to_owned()][..], &["build bb".to_owned()][..])
        );
        // Equal runs that differ among themselves: what both sides have in turn is no difference.
        assert_eq!(differences(&[one.clone(), other.clone()], &[other, one]), []);
    }

    #[test]
    fn settings_have_names() {
        let names: Vec<String> = run("1", "aa", "n1").facts.into_keys().map(|(_, name)| name).collect();
        for name in ["sampling.seed", "metric[1].name", "metric[2].name", "gcc"] {
            assert!(names.iter().any(|have| have == name), "{name} in {names:?}");
        }
    }
}
