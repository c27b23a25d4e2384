//! No name is left, and nothing else is lost.

use std::collections::BTreeMap;

use ampl_core::config::Config;
use ampl_core::message::Decision;
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;
use ampl_testkit::runs::{Caller, processes, structure, world};
use ampl_trace::format::read;
use ampl_trace::metadata::{FileFacts, Job, Machine, Metadata};
use ampl_trace::model::{LeftOutRegion, Place, ThreadPlace};
use ampl_trace::record::put_text;
use ampl_trace::site::{Aggregate, Site};
use ampl_trace::structure::Signature;
use ampl_trace::timestep::FollowedSteps;
use ampl_trace::totals::Totals;
use ampl_trace::{RankTrace, Trace};

use super::*;

/// Stands in every name.
const SECRET: &str = "s3cret";

fn secret(what: &str) -> String {
    format!("{what}-{SECRET}")
}

fn opens(caller: &mut Caller, name: &str) {
    let mut words = vec![world()];
    put_text(&mut words, name);
    words.extend([9, 0, 1]);
    caller.call("MPI_File_open", 0x40, &words);
}

fn named() -> Trace {
    let calls = structure(4, |caller| {
        opens(caller, &secret("/scratch/ann/in"));
        caller.send(0x50, 1, 8, world());
        opens(caller, &secret(&format!("out{}", caller.rank() % 2)));
    });
    let mut all = JobStructure::new(4);
    for rank in 0..4 {
        let mut own = calls.rank(rank).unwrap();
        own.modules = vec![secret("/scratch/ann/app")];
        let mut words = Vec::new();
        name_words(&mut words, &secret("solve"));
        let region = Signature {
            function: ampl_trace::regions::Edge::Enter.function(),
            words,
            ..Signature::default()
        };
        own.threads[0].signatures.push(region);
        all.join(JobStructure::of(own));
    }
    let mut trace = Trace { structure: all, ..Trace::default() };
    let host = |rank: u32| secret(&format!("node{}", rank / 2));
    for mut process in processes(&trace.structure, host) {
        process.program = secret("other");
        let module = secret("/scratch/ann/app");
        process.followed = Some(Box::new(FollowedSteps { module, ..FollowedSteps::default() }));
        process.regions_left_out = vec![LeftOutRegion { region: secret("solve"), visits: 3 }];
        let place = Place { module: secret("/scratch/ann/app"), offset: 0x50 };
        process.threads = vec![ThreadPlace { site: vec![place], ..ThreadPlace::default() }];
        trace.ranks.push(RankTrace { process, ..RankTrace::default() });
    }
    let text = format!(
        "[window]\nmarker = 'region:solve-{SECRET}'\n[output]\ndir = '/scratch/ann/{SECRET}'\nrecord = '{SECRET}'\n\
         [trace]\nregions = '!{SECRET}'\n[hooks]\nfilter = '{SECRET}*'\n\
         [[metric]]\nname = 'heat-{SECRET}'\n[[metric]]\nname = 'papi.{SECRET}:::X'\n\
         [[metric]]\nname = 'wall'\nevent = 'path:a{SECRET}>solve-{SECRET}'\n\
         [[metric]]\nname = 'mpi.time'\nevent = '{SECRET}.c:7=app-{SECRET}+0x40-0x50'\nrole = 'guide'\n\
         [[group]]\nname = 'grp-{SECRET}'\nmembers = '0-1'\nconfidence = 0.9\nerror = 0.1\n\
         [[site]]\nmatch = 'app-{SECRET}+0x40'\ntrace = 'on'\n"
    );
    trace.run.describe(&Plan::new(Config::parse(&text).unwrap().0, 4).unwrap());
    trace.run.command = vec![secret("./app"), secret("--token")];
    trace.run.mpi_library = format!("Open MPI v4.1.6, package: {SECRET}@host Distribution");
    trace.run.recovered = vec![secret("gone")];
    trace.run.unmeasured = vec![(secret("heat"), secret("why"))];
    trace.run.metadata = Metadata {
        executable: Some(FileFacts {
            path: secret("/bin/app"),
            sha256: Some(SECRET.into()),
            ..FileFacts::default()
        }),
        inputs: Some(vec![FileFacts { path: secret("in"), bytes: 5, ..FileFacts::default() }]),
        modules: Some(vec![SECRET.into()]),
        variables: Some(vec![("OMP_PLACES".into(), SECRET.into())]),
        job: Some(Job { id: SECRET.into(), ..Job::default() }),
        machine: Some(Machine { system: Some(format!("Linux 6.1.0-{SECRET}+")), ..Machine::default() }),
        ..Metadata::default()
    };
    trace.decisions = vec![Decision {
        group: secret("grp"),
        guide: Some(secret("heat")),
        event: Some(format!("region:solve-{SECRET}")),
        ..Decision::default()
    }];
    let send = Function::by_name("MPI_Send").unwrap().0;
    let entry = Aggregate { site: Some(0), function: send, calls: 1, ..Aggregate::default() };
    let site = Site { module: 0, offset: 0x50, ..Site::default() };
    trace.totals.join(Totals::of(0, &[secret("/scratch/ann/app")], &[site], &[entry]));
    trace
}

fn stored(trace: &Trace) -> Vec<u8> {
    crate::copy::write(trace, Vec::new()).unwrap()
}

/// Everything in a trace as text.
fn told(trace: &Trace) -> String {
    let ranks: Vec<_> =
        (0..4).map(|rank| (trace.structure.rank(rank), &trace.ranks[rank as usize])).collect();
    let words = |rank: u32| {
        let threads = trace.structure.rank(rank).unwrap().threads;
        let words = threads.into_iter().flat_map(|thread| thread.signatures).flat_map(|own| own.words);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let texts: Vec<String> = (0..4).map(words).collect();
    format!("{ranks:?} {texts:?} {:?} {:?} {:?}", trace.run, trace.decisions, trace.totals)
}

#[test]
fn no_name_is_left() {
    let mut trace = read(&stored(&named())).unwrap();
    let parts = told(&trace).matches(SECRET).count();
    assert!(parts > 40, "{parts}");
    anonymise(&mut trace, || ());
    let bytes = stored(&trace);
    let back = read(&bytes).unwrap();
    assert!(back.damage.is_empty(), "{:?}", back.damage);
    for text in [told(&back), String::from_utf8_lossy(&bytes).into_owned()] {
        for original in [SECRET, "scratch/ann", "solve-", "node0"] {
            assert!(!text.contains(original), "{original}: {text}");
        }
    }
}

/// Sums of all ranks stay exact where the ranks' own summaries are rounded.
#[test]
fn a_copy_has_what_rounded_summaries_lack() {
    let job = ampl_testkit::synthetic::Synthetic::default();
    let mut trace = job.trace();
    for rank in &mut trace.ranks {
        for window in rank.windows.entries_mut() {
            window.cells = (0..6).map(|_| ampl_trace::cells::Cell::one(123_456_789.0)).collect();
        }
        trace.census.join(ampl_trace::rounding::round_windows(&job.plan(), rank));
    }
    assert!(!trace.census.is_empty());
    assert_eq!(read(&stored(&trace)).unwrap().census, trace.census);
}

#[test]
fn calls_positions_and_equal_names_stay() {
    let before = read(&stored(&named())).unwrap();
    let mut trace = read(&stored(&named())).unwrap();
    let mut ranks = 0;
    anonymise(&mut trace, || ranks += 1);
    assert_eq!(ranks, 4);
    let hosts: Vec<&str> = trace.ranks.iter().map(|rank| rank.process.host.as_str()).collect();
    assert_eq!(hosts, ["host1", "host1", "host2", "host2"]);
    assert_eq!(trace.run.command, ["program1", "argument1"]);
    assert_eq!(trace.run.mpi_library, "Open MPI v4.1.6");
    assert_eq!(trace.run.metadata.machine.as_ref().unwrap().system.as_deref(), Some("Linux 6.1.0"));
    let mut texts = BTreeMap::new();
    for rank in 0..4 {
        let (old, new) = (before.structure.rank(rank).unwrap(), trace.structure.rank(rank).unwrap());
        assert_eq!(new.sites, old.sites);
        for (old, new) in old.threads.iter().zip(&new.threads) {
            assert_eq!((new.thread, &new.grammar), (old.thread, &old.grammar));
            for (old, new) in old.signatures.iter().zip(&new.signatures) {
                assert_eq!((new.function, new.flags, new.site), (old.function, old.flags, old.site));
                if Function(old.function) == Function::by_name("MPI_Send").unwrap() {
                    assert_eq!(new.words, old.words);
                } else {
                    // One text for another.
                    assert_eq!(texts.entry(old.words.clone()).or_insert(new.words.clone()), &new.words);
                }
            }
        }
    }
    // A file of all ranks, one of each half, a region.
    assert_eq!(texts.len(), 4);
    // Metrics stand where the plan expects them.
    let plan = |trace: &Trace| Plan::new(Config::parse(&trace.run.config).unwrap().0, 4).unwrap();
    let names = |trace: &Trace| -> Vec<(String, String)> {
        let metrics = &plan(trace).metrics;
        metrics.iter().map(|metric| (metric.name().into_owned(), metric.event.name().into_owned())).collect()
    };
    let own: Vec<_> = trace.run.metrics.iter().map(|own| (own.name.clone(), own.event.clone())).collect();
    assert_eq!(names(&trace), own);
    assert_eq!(own.len(), before.run.metrics.len());
    assert_eq!(trace.decisions[0].event.as_deref(), Some("region:region1"));
    assert!(own.iter().any(|(name, event)| name == "wall" && event.ends_with(">region1")), "{own:?}");
}
