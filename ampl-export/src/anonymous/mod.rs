//! A run without names, for others to look at: programs, arguments, hosts, paths, symbols and texts become numbers;
//! calls, messages and times stay.

mod names;
mod settings;
#[cfg(test)]
mod tests;

use std::mem;

use ampl_core::mpi::FUNCTIONS;
use ampl_trace::Trace;
use ampl_trace::args::with_texts;
use ampl_trace::metadata::{FileFacts, Library, Machine, Metadata};
use ampl_trace::model::Process;
use ampl_trace::record::CALL_ERROR;
use ampl_trace::regions::{Region, name_words};
use ampl_trace::structure::{JobStructure, RankStructure, Signature};

use self::names::{Kind, Names};

/// Takes the names out of `trace`; equal ones get equal numbers. `progress` is called once for each rank.
///
/// Symbols are not in a trace: modules that nobody has show none. Facts that tell where or for whom it ran are left out.
/// Ranks whose calls cannot be read lose them.
pub fn anonymise(trace: &mut Trace, mut progress: impl FnMut()) {
    let names = &mut Names::default();
    // The first program is that of rank 0.
    trace.run.command.first().map(|program| names.of(Kind::Program, program));
    let old = mem::take(&mut trace.structure);
    let mut ranks: Vec<u32> = old.ranks().collect();
    ranks.sort_unstable();
    let mut structure = JobStructure::new(old.rank_count());
    for rank in ranks.into_iter().filter_map(|rank| old.rank(rank)) {
        structure.join(JobStructure::of(calls(names, rank)));
        progress();
    }
    trace.structure = structure;
    trace.totals.rename_modules(|path| names.module(path));
    for rank in &mut trace.ranks {
        process(names, &mut rank.process);
        rank.modules = rank.modules.iter().map(|path| names.module(path)).collect();
    }
    for decision in &mut trace.decisions {
        decision.group = settings::group(names, &decision.group);
        decision.guide = decision.guide.take().map(|guide| settings::metric(names, &guide));
        decision.event = decision.event.take().map(|event| settings::event(names, &event));
    }
    run(names, trace);
}

/// Takes the names out of a process's facts. Every field is named here: a new one is a number, or is replaced.
fn process(names: &mut Names, process: &mut Process) {
    let Process {
        host,
        program,
        followed,
        threads,
        regions_left_out,
        rank: _,
        cpus: _,
        pid: _,
        finalized: _,
        agent_failures: _,
        gave_up: _,
        own_ns: _,
        polling_ns: _,
        begin_ns: _,
        end_ns: _,
        end_wait_ns: _,
        processor_ns: _,
        processors: _,
        quota: _,
        switches: _,
        elapsed_ns: _,
        mpi_threads: _,
        main_share: _,
        windows: _,
        calls: _,
        clock: _,
        steps: _,
        unannounced: _,
        liveness: _,
    } = process;
    *host = names.of(Kind::Host, host);
    *program = names.of(Kind::Program, program);
    if let Some(steps) = followed {
        steps.module = names.module(&steps.module);
    }
    for region in regions_left_out {
        region.region = names.of(Kind::Region, &region.region);
    }
    // Calls that ranks of a dead job were in.
    for place in threads.iter_mut().flat_map(|thread| &mut thread.site) {
        place.module = names.module(&place.module);
    }
}

fn run(names: &mut Names, trace: &mut Trace) {
    let run = &mut trace.run;
    let command = mem::take(&mut run.command);
    run.command = (0..)
        .zip(&command)
        .map(|(at, word)| names.of(if at == 0 { Kind::Program } else { Kind::Argument }, word))
        .collect();
    run.config = settings::anonymous(names, &run.config);
    for metric in &mut run.metrics {
        metric.name = settings::metric(names, &metric.name);
        metric.event = settings::event(names, &metric.event);
    }
    for group in &mut run.groups {
        group.name = settings::group(names, &group.name);
    }
    // The library's description ends with who built it, and where.
    run.abi = run.abi_family();
    let ends = run.mpi_library.find([',', '\n', '@']).unwrap_or(run.mpi_library.len());
    run.mpi_library.truncate(ends);
    for (metric, why) in &mut run.unmeasured {
        *metric = settings::metric(names, metric);
        *why = "it could not be measured".to_owned();
    }
    if !run.recovered.is_empty() {
        run.recovered = vec!["it was put together from what its processes left".to_owned()];
    }
    run.hidden.retain(|name| FUNCTIONS.iter().any(|function| function.name == name));
    run.extensions.retain(|name| name.starts_with("MPIX_"));
    run.metadata = metadata(names, mem::take(&mut run.metadata));
}

/// Facts about machines and limits stay, files by number and size.
fn metadata(names: &mut Names, all: Metadata) -> Metadata {
    let file =
        |facts: FileFacts, path: String| FileFacts { path, bytes: facts.bytes, ..FileFacts::default() };
    let library = |library: Library| Library { path: names.module(&library.path), build_id: None };
    let libraries = all.libraries.map(|libraries| libraries.into_iter().map(library).collect());
    let executable = all.executable.map(|facts| {
        let path = names.module(&facts.path);
        file(facts, path)
    });
    let input = |facts: FileFacts| {
        let path = names.of(Kind::File, &facts.path);
        file(facts, path)
    };
    Metadata {
        executable,
        libraries,
        inputs: all.inputs.map(|inputs| inputs.into_iter().map(input).collect()),
        machine: all.machine.map(machine),
        limits: all.limits,
        left_out: all.left_out,
        ..Metadata::default()
    }
}

/// The machine, whose system's release ends before what its builder named it: `Linux 6.1.0` of `Linux 6.1.0-site+`.
fn machine(mut machine: Machine) -> Machine {
    if let Some(system) = &mut machine.system {
        system.truncate(system.find(['-', '+', '_', '~']).unwrap_or(system.len()));
    }
    machine
}

fn calls(names: &mut Names, mut rank: RankStructure) -> RankStructure {
    rank.modules = rank.modules.iter().map(|path| names.module(path)).collect();
    for thread in &mut rank.threads {
        thread.signatures.iter_mut().for_each(|signature| texts(names, signature));
    }
    rank
}

/// Replaces the texts of a call, and the name of a region.
fn texts(names: &mut Names, signature: &mut Signature) {
    if let Some((_, region)) = signature.region() {
        if let Region::Named(name) = region {
            signature.words.clear();
            name_words(&mut signature.words, &names.of(Kind::Region, &name));
        }
        return;
    }
    let Some(spec) = FUNCTIONS.get(usize::from(signature.function)) else { return };
    let code = usize::from(signature.flags & CALL_ERROR != 0).min(signature.words.len());
    let (code, words) = signature.words.split_at(code);
    let changed = with_texts(spec, signature.flags, words, |text| names.of(Kind::Text, text));
    // Words that do not fit the table may be text.
    signature.words = changed.map_or_else(Vec::new, |changed| [code, &changed].concat());
}
