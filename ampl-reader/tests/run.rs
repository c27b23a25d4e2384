//! A run read piece by piece, held against the whole.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ampl_reader::{OpenError, Run, directory};
use ampl_trace::format::v1::{Kind, Writer};
use ampl_trace::format::{self, rank_parts, run_parts};
use ampl_trace::model::WindowSummary;
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::{RankTrace, RunInfo};

fn golden() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "ampl")).collect()
}

#[test]
fn pieces_of_a_run_equal_the_whole() {
    let files = golden();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let run = Run::open(&path).unwrap();
        let whole = directory::read(&path).unwrap();
        assert_eq!(run.info(), &whole.run);
        assert_eq!(run.ranks(), whole.ranks.iter().map(|rank| rank.process.rank).collect::<Vec<_>>());
        assert_eq!((run.decisions(), run.sizes()), (&whole.decisions[..], whole.sizes));
        for rank in &whole.ranks {
            let number = rank.process.rank;
            assert_eq!(run.process(number), Some(&rank.process));
            let piece = run.rank(number).unwrap();
            assert_eq!((&piece.trace, Some(piece.structure)), (rank, whole.structure.rank(number)));
        }
        assert!(run.rank(4_000_000).is_none());
        assert_eq!(run.damage(), whole.damage);
    }
}

/// One signature, called `calls` times.
fn structure(rank: u32, calls: u64) -> RankStructure {
    let mut builder = ampl_trace::grammar::Builder::new();
    builder.push(0, calls);
    let barrier = ampl_core::mpi::Function::by_name("MPI_Barrier").unwrap().0;
    let signatures = vec![Signature { function: barrier, words: vec![0], ..Signature::default() }];
    let thread = ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar() };
    RankStructure { rank, threads: vec![thread], ..RankStructure::default() }
}

/// The rank of a section, and the place of its payload in the file.
type Placed = (Option<u32>, Range<usize>);

/// A trace file of `ranks` equal ranks, each with a section of its own, and where each section's bytes lie.
fn equal_ranks(ranks: u32) -> (Vec<u8>, Vec<Placed>) {
    let mut file = Vec::new();
    let mut places = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    let mut sections: Vec<(Kind, Option<u32>, Vec<u8>)> = Vec::new();
    let run = RunInfo { ranks, ..RunInfo::default() };
    sections
        .extend(run_parts(Some(&run), &[]).into_iter().map(|part| (part.kind, None, part.payload.into())));
    let mut merged = JobStructure::new(ranks);
    (0..ranks).for_each(|rank| merged.join(JobStructure::of(structure(rank, 1000))));
    sections.push((Kind::Structure, None, merged.encode()));
    for rank in 0..ranks {
        let mut one = RankTrace::default();
        one.process.rank = rank;
        let end_ns = 1000 + i64::from(rank);
        one.windows = vec![WindowSummary { end_ns, kept: true, ..WindowSummary::default() }].into();
        let own = rank_parts(&one).into_iter().filter(|part| part.kind != Kind::Processes);
        sections.extend(own.map(|part| (part.kind, part.rank, part.payload.into_owned())));
    }
    for (kind, rank, payload) in &sections {
        writer.section(*kind, *rank, payload).unwrap();
    }
    writer.finish().unwrap();
    let mut at = 12;
    for (_, rank, payload) in sections {
        let found = file[at..].windows(payload.len()).position(|bytes| bytes == payload).unwrap() + at;
        places.push((rank, found..found + payload.len()));
        at = found + payload.len();
    }
    (file, places)
}

#[test]
fn one_rank_is_read_without_the_sections_of_others() {
    let (mut bytes, places) = equal_ranks(1000);
    let expected = format::read(&bytes).unwrap();
    assert!(places.iter().filter(|(rank, _)| rank.is_some()).count() >= 1000);
    for (_, place) in places.iter().filter(|(rank, _)| rank.is_some_and(|rank| rank != 5)) {
        bytes[place.clone()].fill(0xee);
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(directory::TRACE), &bytes).unwrap();
    let run = Run::open(directory.path()).unwrap();
    let rank = run.rank(5).unwrap();
    assert_eq!(Some(&rank.trace), expected.rank(5));
    assert_eq!(rank.calls().filter(|call| call.is_ok()).count(), 1000);
    assert_eq!(run.damage(), []);
    // What another rank has lost is found where it is asked for.
    run.rank(6).unwrap();
    assert_eq!(run.damage().iter().map(|damage| damage.rank).collect::<Vec<_>>(), [Some(6)]);
    assert_eq!(run.structure().groups().count(), 1);
}

#[test]
fn what_is_no_run_says_so() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Run::open(&directory.path().join("none")), Err(OpenError::Absent { .. })));
    assert!(matches!(Run::open(directory.path()), Err(OpenError::Empty { .. })));
    let file = directory.path().join(directory::TRACE);
    fs::write(&file, b"something else, and not short").unwrap();
    let error = Run::open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotATrace { .. }) && !error.is_absent(), "{error}");
    fs::write(&file, b"").unwrap();
    assert!(Run::open(&file).is_err());
}
