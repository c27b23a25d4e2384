//! Round trips of traces; and whatever bytes there are, reading ends in a trace, damage or an error.

use ampl_core::config::Mechanism;
use ampl_core::message::Decision;
use ampl_core::mpi::FUNCTION_COUNT;
use ampl_trace::cells::Cell;
use ampl_trace::format::v1::Kind as Holds;
use ampl_trace::format::{Part, TraceFile, Writer, rank_parts, read, run_parts};
use ampl_trace::grammar::Builder;
use ampl_trace::journal::{self, HEADER_WORDS, word};
use ampl_trace::metadata::Metadata;
use ampl_trace::model::{Aggregate, ClockFit, Level, Process, Site, Step, WindowSummary};
use ampl_trace::places::Places;
use ampl_trace::structure::{Comm, JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::timing::{Encoder, Settings, Time};
use ampl_trace::totals::Totals;
use ampl_trace::{RankTrace, ReadError, RunInfo};
use proptest::prelude::*;

use crate::common::{bytes_of, compacted, journal_header, look_at, look_at_calls, small_journal};

fn float() -> impl Strategy<Value = f64> {
    // Not NaN, which is unequal to itself; infinities come back.
    prop_oneof![
        any::<f64>().prop_filter("a number", |value| !value.is_nan()),
        Just(0.0),
        (0..1000u32).prop_map(f64::from)
    ]
}

prop_compose! {
    fn cell()(n in float(), sum in float(), sum_sq in float(), min in float(), max in float()) -> Cell {
        Cell { n, sum, sum_sq, min, max }
    }
}

prop_compose! {
    fn window()(
        (window, update, own_ns) in any::<(u64, u64, u64)>(),
        (start_ns, end_ns) in any::<(i64, i64)>(),
        (kept, drawn, partner, partial) in any::<(bool, bool, bool, bool)>(),
        probability in float(),
        inclusion in prop::option::of(float()),
        stratum in prop::option::of(any::<u16>()),
        cells in prop::collection::vec(cell(), 0..8),
        repeat in 1..=u64::MAX,
    ) -> WindowSummary {
        WindowSummary {
            window,
            start_ns,
            end_ns,
            own_ns,
            kept,
            drawn,
            partner,
            partial,
            probability,
            inclusion,
            stratum,
            update,
            cells: cells.into_iter().collect(),
            repeat,
        }
    }
}

prop_compose! {
    fn aggregate()(
        site in prop::option::of(0..u32::MAX),
        function in any::<u16>(),
        (calls, sent, received) in any::<(u64, u64, u64)>(),
        (time_ns, time_sq, min_ns, max_ns) in (float(), float(), float(), float()),
    ) -> Aggregate {
        Aggregate { site, function, calls, time_ns, time_sq, min_ns, max_ns, sent, received }
    }
}

prop_compose! {
    fn process()(
        (host, cpus) in any::<(String, String)>(),
        pid in any::<u32>(),
        (agent_failures, own_ns, elapsed_ns) in any::<(u64, u64, u64)>(),
        calls in prop::collection::btree_map(0..FUNCTION_COUNT as u16, any::<u64>(), 0..5),
        clock in prop::option::of(any::<(i64, u64, Option<i32>)>()),
        mpi_threads in 0u32..9,
        main_share in prop::option::of((1u32..1_000_000).prop_map(|part| f64::from(part) / 1e6)),
        steps in prop::collection::vec((any::<(u64, u64)>(), 0..3usize, (0..1024u32).prop_map(|part| f64::from(part) / 1024.0)), 0..3),
    ) -> Process {
        let calls = calls.into_iter().collect();
        let step = |((window, at), level, share): ((u64, u64), usize, f64)| {
            Step { window, at, level: [Level::Kept, Level::Summaries, Level::Off][level], share, limit: None }
        };
        let steps = steps.into_iter().map(step).collect();
        let clock = clock.map(|(offset_ns, error_ns, drift)| ClockFit {
            offset_ns,
            error_ns,
            drift_ppm: drift.map(|drift| f64::from(drift) / 64.0),
        });
        let [begin_ns, end_ns, end_wait_ns, processor_ns] = [17, 0, 3, u64::MAX].map(|part| own_ns & part);
        let (processors, quota, switches) = (elapsed_ns % 9, elapsed_ns % 7, (pid > 9).then_some(own_ns));
        let base = Process { host, cpus, pid, finalized: true, agent_failures, own_ns, elapsed_ns, ..Process::default() };
        let base = Process { begin_ns, end_ns, end_wait_ns, processor_ns, processors, quota, switches, ..base };
        Process { mpi_threads, main_share, calls, steps, clock, ..base }
    }
}

prop_compose! {
    fn rank()(
        process in process(),
        windows in prop::collection::vec(window(), 0..4),
        times in times(),
        places in prop::collection::vec(any::<(u32, u64, u64)>(), 0..6),
    ) -> RankTrace {
        let mut found = Places::default();
        places.into_iter().for_each(|(thread, word, address)| found.take(thread, word, address));
        // Sites and modules are the structure's.
        RankTrace { process, windows: windows.into(), times, places: found, ..RankTrace::default() }
    }
}

prop_compose! {
    /// Windows with calls in them, as one rank stores them.
    fn times()(
        exact in any::<bool>(),
        windows in prop::collection::vec((any::<i64>(), prop::collection::vec((0..5u32, 0..1u64 << 40), 1..9)), 0..4),
    ) -> Vec<u8> {
        let mut encoder = Encoder::new(Settings { error: if exact { 0.0 } else { 0.1 }, floor_ns: 0 });
        let mut first_seq = 0;
        for (number, (start_ns, calls)) in windows.into_iter().enumerate() {
            let window = ampl_trace::timing::Window { thread: 0, window: number as u64, first_seq, start_ns };
            encoder.window(window);
            for (terminal, duration_ns) in calls {
                encoder.call(terminal.into(), Time { start_ns, duration_ns, count: 1 });
                first_seq += 1;
            }
        }
        encoder.finish()
    }
}

prop_compose! {
    fn thread_structure(sites: u32)(
        signatures in prop::collection::vec((0..FUNCTION_COUNT as u16, any::<u8>(), (0..=sites, 0..=sites), any::<Vec<u64>>()), 1..6),
        runs in prop::collection::vec((any::<prop::sample::Index>(), 1..5u64), 0..40),
    ) -> (Vec<Signature>, ampl_trace::grammar::Grammar) {
        let mut builder = Builder::new();
        runs.into_iter().for_each(|(terminal, count)| builder.push(terminal.index(signatures.len()) as u32, count));
        let signature = |(function, flags, (site, path), words)| Signature { function, flags, site, path, words };
        (signatures.into_iter().map(signature).collect(), builder.grammar())
    }
}

fn structure() -> impl Strategy<Value = RankStructure> {
    let parts = (any::<Vec<String>>(), prop::collection::vec(any::<(u64, u32)>(), 0..5), any::<[u64; 3]>());
    let paths = any::<bool>();
    (parts, paths).prop_flat_map(|((mut modules, offsets, [word, size, rank]), paths)| {
        modules.push("/bin/app".into());
        let many = modules.len() as u32;
        let all = offsets.len() as u32;
        let caller = |caller: u32| if paths { caller % (all + 1) } else { 0 };
        let site = |(offset, from)| Site { module: offset as u32 % many, offset, caller: caller(from) };
        let sites: Vec<Site> = offsets.into_iter().map(site).collect();
        prop::collection::vec(thread_structure(sites.len() as u32), 0..3).prop_map(move |threads| {
            let thread = |(thread, (signatures, grammar))| ThreadStructure { thread, signatures, grammar };
            RankStructure {
                rank: 0,
                threads: (0..).zip(threads).map(thread).collect(),
                modules: modules.clone(),
                sites: sites.clone(),
                comms: vec![Comm { word, size, rank }],
            }
        })
    })
}

fn decision(update: u64) -> Decision {
    Decision {
        update,
        window: update * 4,
        group: "all".into(),
        stratum: 0,
        mechanism: Mechanism::Subset,
        population: 64,
        reported: 64,
        late: false,
        size: 16,
        probability: 0.25,
        guide: Some("mpi.time".into()),
        policy: 1,
        event: None,
        mean: Some(1.5),
        variance: None,
        error_required: Some(0.08),
        error_attained: None,
        limit: None,
        merged_windows: 0,
        selection: None,
    }
}

/// A trace file of these ranks, which get numbers from 0 and the sites of their structures.
fn write(
    run: &RunInfo,
    decisions: &[Decision],
    ranks: &mut [(RankTrace, RankStructure)],
    totals: &Totals,
) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.run(run, decisions).unwrap();
    let mut all = JobStructure::new(ranks.len() as u32);
    for (number, (rank, structure)) in ranks.iter_mut().enumerate() {
        (rank.process.rank, structure.rank) = (number as u32, number as u32);
        (rank.modules, rank.sites) = (structure.modules.clone().into(), structure.sites.clone().into());
        all.join(JobStructure::of(structure.clone()));
        writer.rank(&rank_parts(rank)).unwrap();
    }
    writer.structure(&all).unwrap();
    writer.totals(totals).unwrap();
    writer.finish().unwrap()
}

/// A whole file with one rank of a journal's making.
fn small_file() -> Vec<u8> {
    let part = compacted(&small_journal()).unwrap();
    let (run, totals) = (RunInfo { ranks: 1, ..RunInfo::default() }, part.totals());
    write(&run, &[decision(1)], &mut [(part.rank, part.structure)], &totals)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_comes_back(
        mut ranks in prop::collection::vec((rank(), structure()), 0..4),
        entries in prop::collection::vec(aggregate(), 0..4),
        command: Vec<String>,
        updates in prop::collection::vec(any::<u64>().prop_map(|update| update / 8), 0..3),
    ) {
        let modules = (!command.is_empty()).then(|| command.clone());
        let metadata = Metadata { modules, ..Metadata::default() };
        let run = RunInfo { ranks: ranks.len() as u32, command, metadata, ..RunInfo::default() };
        let decisions: Vec<Decision> = updates.into_iter().map(decision).collect();
        let totals = ranks.first().map(|(_, structure)| {
            Totals::of(0, &structure.modules, &structure.sites, &entries)
        });
        let totals = totals.unwrap_or_default();
        let bytes = write(&run, &decisions, &mut ranks, &totals);
        let trace = read(&bytes).unwrap();
        prop_assert_eq!(&trace.damage, &[]);
        prop_assert_eq!(&trace.totals, &totals);
        // A trace without ranks is not complete.
        prop_assert_eq!(trace.complete, !ranks.is_empty());
        prop_assert_eq!(&trace.run, &run);
        let file = TraceFile::new(&bytes[..]).unwrap();
        prop_assert_eq!(file.run(), &run);
        prop_assert_eq!(trace.sizes.metadata > 0, run.metadata.modules.is_some());
        prop_assert_eq!(&trace.decisions, &decisions);
        for (found, (rank, structure)) in trace.ranks.iter().zip(&ranks) {
            prop_assert_eq!(found, rank);
            let stored = trace.structure.rank(rank.process.rank);
            prop_assert_eq!(stored.as_ref(), Some(structure));
        }
        prop_assert_eq!(trace.ranks.len(), ranks.len());
        let sizes = trace.sizes;
        prop_assert_eq!(sizes.total, bytes.len() as u64);
        prop_assert_eq!(sizes.total, sizes.parts().iter().sum::<u64>());
        look_at(&trace);
    }

    #[test]
    fn packed_parts_come_back(rank in rank(), updates in any::<Vec<u32>>(), chunk_bytes in 1..400usize) {
        let mut sections = rank_parts(&rank);
        let decisions: Vec<Decision> = updates.into_iter().map(|update| decision(update.into())).collect();
        let run = RunInfo::default();
        let run_parts = run_parts((chunk_bytes.is_multiple_of(2)).then_some(&run), &decisions);
        prop_assert_eq!(run_parts.len(), usize::from(chunk_bytes.is_multiple_of(2)) + usize::from(!decisions.is_empty()));
        sections.extend(run_parts);
        let mut chunks = Vec::new();
        let sent: Result<(), ()> = Part::pack(&sections, chunk_bytes, |chunk| {
            chunks.push(chunk.to_vec());
            Ok(())
        });
        prop_assert_eq!(sent, Ok(()));
        let mut packed = chunks.concat();
        prop_assert_eq!(packed.len() as u64, Part::packed_bytes(&sections));
        // The client asks for chunks of these lengths.
        let lengths: Vec<usize> = packed.chunks(chunk_bytes).map(<[u8]>::len).collect();
        prop_assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        prop_assert_eq!(Part::pack(&sections, chunk_bytes, |_| Err("gone")), Err("gone"));
        prop_assert_eq!(Part::unpack(&packed), Some(sections));
        packed.pop();
        prop_assert_eq!(Part::unpack(&packed), None);
    }

    #[test]
    fn any_bytes_are_parts_or_not(bytes: Vec<u8>) {
        let _ = Part::unpack(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_header_are_a_trace(bytes: Vec<u8>) {
        let mut file = Writer::new(Vec::new()).unwrap().finish().unwrap();
        file.truncate(12);
        file.extend(&bytes);
        let trace = read(&file).unwrap();
        prop_assert!(!trace.complete && !trace.damage.is_empty());
    }

    #[test]
    fn any_stored_calls_end(structure in structure(), found: Vec<u8>, times in times(), sound: bool) {
        let times = if sound { times } else { found };
        look_at_calls(&structure, &RankTrace { times, ..RankTrace::default() });
    }

    /// Damage of one rank's part is reported, and takes nothing else with it.
    #[test]
    fn a_part_that_makes_no_sense_is_damage(
        rank in rank(),
        structure in structure(),
        which in 0..4usize,
        mut junk: Vec<u8>,
    ) {
        let mut ranks = [(rank.clone(), structure.clone()), (rank, structure)];
        let bytes = write(&RunInfo { ranks: 2, ..RunInfo::default() }, &[], &mut ranks, &Totals::default());
        let (whole, [_, (second, _)]) = (read(&bytes).unwrap(), ranks);
        let kind = [Holds::Times, Holds::Windows, Holds::Addresses, Holds::Processes][which];
        // No part begins so: an error of a millionth is too little to be one.
        junk.insert(0, if kind == Holds::Times { 1 } else { 0xff });
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.run(&whole.run, &[]).unwrap();
        for rank in &whole.ranks {
            let mut parts = rank_parts(rank);
            if rank.process.rank == 0 {
                // A rank without such data has no such part.
                parts.retain(|part| part.kind != kind);
                parts.push(Part { kind, rank: Some(0), payload: junk.clone().into() });
            }
            writer.rank(&parts).unwrap();
        }
        writer.structure(&whole.structure).unwrap();
        let trace = read(&writer.finish().unwrap()).unwrap();
        prop_assert!(!trace.complete && trace.damage.len() == 1, "{:?}", trace.damage);
        if kind != Holds::Processes {
            prop_assert_eq!(trace.damage[0].rank, Some(0));
            prop_assert_eq!(trace.rank(1), Some(&second));
        }
        look_at(&trace);
    }
}

#[test]
fn totals_that_make_no_sense_are_damage_and_nothing_else() {
    let part = compacted(&small_journal()).unwrap();
    for payload in [&[7][..], &[0xff; 20], &zstd::bulk::compress(&[1, 200], 1).unwrap()] {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.rank(&rank_parts(&part.rank)).unwrap();
        writer.structure(&JobStructure::of(part.structure.clone())).unwrap();
        writer.rank(&[Part { kind: Holds::Aggregates, rank: None, payload: payload.into() }]).unwrap();
        let trace = read(&writer.finish().unwrap()).unwrap();
        assert!(!trace.complete && trace.damage.len() == 1, "{:?}", trace.damage);
        assert_eq!((trace.totals, trace.ranks.len()), (Totals::default(), 1));
    }
}

#[test]
fn every_truncation_of_a_trace_is_damage() {
    let file = small_file();
    assert!(read(&file).unwrap().damage.is_empty());
    for length in 0..file.len() {
        match read(&file[..length]) {
            Ok(trace) => {
                assert!(!trace.complete && !trace.damage.is_empty(), "{length} of {} bytes", file.len());
                look_at(&trace);
            }
            Err(_) => assert!(length < 12, "{length}"),
        }
    }
}

#[test]
fn every_flipped_bit_of_a_trace_is_noticed() {
    let file = small_file();
    for bit in 0..file.len() * 8 {
        let mut bad = file.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let Ok(trace) = read(&bad) else { continue };
        look_at(&trace);
        assert!(!trace.damage.is_empty() && !trace.complete, "bit {bit} of {} bytes", file.len());
    }
}

#[test]
fn other_files_are_refused_by_name() {
    assert_eq!(read(&[0; 11]).unwrap_err(), ReadError::TooShort { len: 11 });
    assert!(matches!(read(&[7; 64]).unwrap_err(), ReadError::BadMagic { found } if found == [7; 8]));
    let mut file = small_file();
    file[8] = 9;
    assert!(!read(&file).unwrap().damage.is_empty(), "the other end says what it is");
    *file.last_mut().unwrap() = b'9';
    assert_eq!(read(&file).unwrap_err(), ReadError::UnknownVersion { found: 9 });
    let mut words = journal_header();
    words[word::TABLE] ^= 1;
    assert!(matches!(journal::read(&bytes_of(&words)), Err(ReadError::TableMismatch { .. })));
    assert!(matches!(journal::read(&[0; HEADER_WORDS * 8]), Err(ReadError::BadMagic { .. })));
    words[word::TABLE] ^= 1;
    words[word::RANK] = u64::from(u32::MAX);
    assert!(matches!(journal::read(&bytes_of(&words)), Err(ReadError::Malformed { what: "rank", .. })));
}
