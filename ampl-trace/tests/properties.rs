//! What is written is read back, and whatever bytes there are, reading ends in a trace, damage or an error.

use ampl_core::message::Decision;
use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED};
use ampl_trace::args::predefined_word;
use ampl_trace::compact::compact;
use ampl_trace::decode::Calls;
use ampl_trace::format::{Section, SectionKind, Writer, rank_sections, read};
use ampl_trace::journal::{
    self, BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, SITE_WORDS, flag, table_checksum, word,
};
use ampl_trace::model::{Aggregate, Cell, Process, Site, Step, WindowSummary};
use ampl_trace::record::{
    CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, Kind, WINDOW_DRAWN, WINDOW_INCLUSION, WINDOW_KEPT,
    WINDOW_PARTNER, WINDOW_RUN, header, put_text,
};
use ampl_trace::{RankTrace, RunInfo, Trace};
use proptest::prelude::*;

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
            cells,
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
        steps in prop::collection::vec((any::<(u64, u64)>(), 0..3usize, (0..1024u32).prop_map(|part| f64::from(part) / 1024.0)), 0..3),
    ) -> Process {
        let calls = calls.into_iter().collect();
        let step = |((window, at), level, share): ((u64, u64), usize, f64)| {
            Step { window, at, level: ["kept", "summaries", "off"][level].into(), share }
        };
        let steps = steps.into_iter().map(step).collect();
        Process { rank: 0, host, cpus, pid, finalized: true, agent_failures, own_ns, elapsed_ns, calls, steps }
    }
}

prop_compose! {
    fn rank()(
        process in process(),
        modules in any::<Vec<String>>(),
        sites in prop::collection::vec((any::<u32>(), any::<u64>()), 0..5),
        aggregates in prop::collection::vec(aggregate(), 0..4),
        windows in prop::collection::vec(window(), 0..4),
        (calls, times) in any::<(Vec<u8>, Vec<u8>)>(),
    ) -> RankTrace {
        let sites = sites.into_iter().map(|(module, offset)| Site { module, offset }).collect();
        RankTrace { process, modules, sites, aggregates, windows, calls, times }
    }
}

fn decision(update: u64) -> Decision {
    Decision {
        update,
        window: update * 4,
        group: "all".into(),
        stratum: 0,
        mechanism: "subset".into(),
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
        selection: None,
    }
}

/// A trace file of these ranks, numbered from 0.
fn write(run: &RunInfo, decisions: &[Decision], ranks: &mut [RankTrace]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let payload = serde_json::to_vec(run).unwrap().into();
    writer.section(&Section { kind: SectionKind::Run, rank: None, payload }).unwrap();
    let lines: Vec<String> =
        decisions.iter().map(|decision| serde_json::to_string(decision).unwrap()).collect();
    let payload = lines.join("\n").into_bytes().into();
    writer.section(&Section { kind: SectionKind::Decisions, rank: None, payload }).unwrap();
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.process.rank = number as u32;
        writer.rank(&rank_sections(rank)).unwrap();
    }
    writer.finish().unwrap()
}

/// Uses everything that reading commands use; must end without panic.
fn look_at(trace: &Trace) {
    trace.function_calls();
    trace.windows();
    trace.kept_windows();
    for rank in &trace.ranks {
        Calls::new(rank).for_each(drop);
    }
}

/// A whole file with one rank of a journal's making.
fn small_file() -> Vec<u8> {
    let part = compact(&small_journal()).unwrap();
    write(&RunInfo { ranks: 1, ..RunInfo::default() }, &[decision(1)], &mut [part.rank])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_comes_back(
        mut ranks in prop::collection::vec(rank(), 0..4),
        command: Vec<String>,
        updates in prop::collection::vec(any::<u64>().prop_map(|update| update / 8), 0..3),
    ) {
        let run = RunInfo { ranks: ranks.len() as u32, command, ..RunInfo::default() };
        let decisions: Vec<Decision> = updates.into_iter().map(decision).collect();
        let bytes = write(&run, &decisions, &mut ranks);
        let trace = read(&bytes).unwrap();
        prop_assert_eq!(&trace.damage, &[]);
        prop_assert!(trace.complete);
        prop_assert_eq!(&trace.run, &run);
        prop_assert_eq!(&trace.decisions, &decisions);
        prop_assert_eq!(&trace.ranks, &ranks);
        let sizes = trace.sizes;
        prop_assert_eq!(sizes.total, bytes.len() as u64);
        prop_assert_eq!(sizes.total, sizes.structure + sizes.timing + sizes.aggregates + sizes.other);
        look_at(&trace);
    }

    #[test]
    fn packed_sections_come_back(rank in rank(), chunk_bytes in 1..400usize) {
        let sections = rank_sections(&rank);
        let mut chunks = Vec::new();
        let sent: Result<(), ()> = Section::pack(&sections, chunk_bytes, |chunk| {
            chunks.push(chunk.to_vec());
            Ok(())
        });
        prop_assert_eq!(sent, Ok(()));
        let mut packed = chunks.concat();
        prop_assert_eq!(packed.len() as u64, Section::packed_bytes(&sections));
        // The client asks for chunks of these lengths.
        let lengths: Vec<usize> = packed.chunks(chunk_bytes).map(<[u8]>::len).collect();
        prop_assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        prop_assert_eq!(Section::pack(&sections, chunk_bytes, |_| Err("gone")), Err("gone"));
        prop_assert_eq!(Section::unpack(&packed), Some(sections));
        packed.pop();
        prop_assert_eq!(Section::unpack(&packed), None);
    }

    #[test]
    fn any_bytes_are_sections_or_not(bytes: Vec<u8>) {
        let _ = Section::unpack(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_header_are_a_trace(bytes: Vec<u8>) {
        let mut file = Writer::new(Vec::new()).unwrap().finish().unwrap();
        file.truncate(16);
        file.extend(&bytes);
        let trace = read(&file).unwrap();
        prop_assert!(!trace.complete && !trace.damage.is_empty());
    }

    #[test]
    fn any_stored_calls_end(calls: Vec<u8>, times: Vec<u8>) {
        let rank = RankTrace { calls, times, ..RankTrace::default() };
        let found: Vec<_> = Calls::new(&rank).collect();
        // An error is the last thing there is.
        prop_assert!(found.iter().rev().skip(1).all(Result::is_ok));
    }

    #[test]
    fn any_words_behind_a_header_are_a_journal(mut tail: Vec<u64>, magic: bool, length in 0..64u64) {
        let mut words = journal_header();
        if magic && tail.len() > 8 {
            (tail[0], tail[1], tail[3]) = (BLOCK_MAGIC, 1 + tail[1] % 3, length);
        }
        words.extend(tail);
        let found = compact(&bytes_of(&words)).unwrap();
        look_at(&Trace { ranks: vec![found.rank], ..Trace::default() });
    }

    #[test]
    fn any_records_are_compacted(records in prop::collection::vec(any_record(), 0..20), header_words in any::<[u64; 6]>()) {
        let mut words = journal_header();
        words[word::TICKS_FIRST..word::OWN_TICKS].copy_from_slice(&header_words[..5]);
        words[word::OWN_TICKS] = header_words[5];
        push_block(&mut words, BlockKind::Stream, 0, &records.concat());
        let found = compact(&bytes_of(&words)).unwrap();
        look_at(&Trace { ranks: vec![found.rank], ..Trace::default() });
    }

    #[test]
    fn any_counters_and_totals_are_compacted(payload in prop::collection::vec(any::<u64>(), 0..40), thread in 0..3u32) {
        let mut words = journal_header();
        for kind in [BlockKind::Counters, BlockKind::Sites, BlockKind::Counters] {
            push_block(&mut words, kind, thread, &payload);
        }
        let found = compact(&bytes_of(&words)).unwrap();
        look_at(&Trace { ranks: vec![found.rank], ..Trace::default() });
    }
}

fn any_record() -> impl Strategy<Value = Vec<u64>> {
    let function = 0..FUNCTION_COUNT as u16 + 2;
    (1..=7u8, any::<u8>(), function, prop::collection::vec(any::<u64>(), 0..20)).prop_map(
        |(kind, flags, function, body)| {
            let mut words = vec![u64::from(kind) | u64::from(flags) << 8 | u64::from(function) << 16];
            words[0] |= (body.len() as u64 + 1) << 32;
            words.extend(body);
            words
        },
    )
}

fn journal_header() -> Vec<u64> {
    let mut words = vec![0; HEADER_WORDS];
    words[word::MAGIC] = MAGIC;
    words[word::TABLE] = table_checksum().into();
    words
}

fn push_block(words: &mut Vec<u64>, kind: BlockKind, thread: u32, payload: &[u64]) {
    let length = payload.len() as u64;
    words.extend([BLOCK_MAGIC, kind.number(), u64::from(thread), length, length, 0, 0, 0]);
    words.extend(payload);
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn number(name: &str) -> u16 {
    Function::by_name(name).unwrap().0
}

fn predefined(name: &str) -> u64 {
    predefined_word(PREDEFINED.iter().position(|&(_, have)| have == name).unwrap() as u16)
}

fn push(words: &mut Vec<u64>, kind: Kind, flags: u8, function: u16, body: &[u64]) {
    words.push(header(kind, flags, function, body.len() + 1));
    words.extend_from_slice(body);
}

/// Two threads, two kept windows and a dropped one; two ticks are a nanosecond.
fn small_journal() -> Vec<u8> {
    let mut words = journal_header();
    (words[word::RANK], words[word::RANKS], words[word::FLAGS]) = (3, 4, flag::FINALIZED);
    (words[word::TICKS_FIRST], words[word::NANOS_FIRST]) = (1000, (-50i64) as u64);
    (words[word::TICKS_LAST], words[word::NANOS_LAST]) = (9000, 3950);
    words[word::OWN_TICKS] = 20;
    let mut texts = Vec::new();
    ["node", "0-1"].iter().for_each(|text| put_text(&mut texts, text));
    words[word::TEXTS..word::TEXTS + texts.len()].copy_from_slice(&texts);

    let mut counts = vec![0; FUNCTION_COUNT];
    counts[usize::from(number("MPI_Barrier"))] = 4;
    push_block(&mut words, BlockKind::Counters, 0, &counts);
    push_block(&mut words, BlockKind::Counters, 1, &counts);
    let mut sites = vec![0; 3 * SITE_WORDS];
    sites[SITE_WORDS..2 * SITE_WORDS].copy_from_slice(&[
        9,
        number("MPI_Barrier").into(),
        4,
        400,
        0,
        50,
        150,
        8,
        0,
        0,
    ]);
    push_block(&mut words, BlockKind::Sites, 0, &sites);

    let world = predefined("MPI_COMM_WORLD");
    let mut stream = Vec::new();
    let mut text = vec![0];
    put_text(&mut text, "/bin/app");
    push(&mut stream, Kind::Module, 0, 0, &text);
    push(&mut stream, Kind::Site, 0, 0, &[1, 0, 0x40]);
    push(&mut stream, Kind::Open, 0, 0, &[0, 1000, 1f64.to_bits(), 0, 1]);
    push(&mut stream, Kind::Call, 0, number("MPI_Barrier"), &[1100, 100, 1 | 1 << 32, world]);
    push(&mut stream, Kind::Call, CALL_MISS, number("MPI_Iprobe"), &[1300, 60, 1 | 4 << 32, 2, 5, world]);
    push(&mut stream, Kind::Call, CALL_ERROR, number("MPI_Barrier"), &[1500, 10, 1 | 1 << 32, 13, world]);
    let cell = [1.0, 300.0, 90_000.0, 300.0, 300.0].map(f64::to_bits);
    let window = |number: u64, kept: bool| {
        let fixed = [number, 1000 + 2000 * number, 3000 + 2000 * number, 4, 0.5f64.to_bits(), 1, 1];
        (if kept { WINDOW_KEPT | WINDOW_DRAWN } else { 0 }, [&fixed[..], &cell].concat())
    };
    let (flags, body) = window(0, true);
    push(&mut stream, Kind::Window, flags, 0, &body);
    // Not drawn, but kept for a partner's sake; behind the cells how many windows, and how likely that was.
    let (_, mut body) = window(1, false);
    body.extend([1, 0.75f64.to_bits()]);
    let flags = WINDOW_KEPT | WINDOW_PARTNER | WINDOW_RUN | WINDOW_INCLUSION;
    push(&mut stream, Kind::Window, flags, 0, &body);
    push(&mut stream, Kind::Open, 0, 0, &[2, 5000, 0.5f64.to_bits(), 1, 20]);
    push(&mut stream, Kind::Call, CALL_NO_ARGS | CALL_UNFINISHED, number("MPI_Finalize"), &[6000, 0, 0]);
    let (flags, body) = window(2, true);
    push(&mut stream, Kind::Window, flags, 0, &body);
    push_block(&mut words, BlockKind::Stream, 0, &stream);

    let mut other = Vec::new();
    push(&mut other, Kind::Open, 0, 0, &[0, 1000, 1f64.to_bits(), 0, 0]);
    push(&mut other, Kind::Call, 0, number("MPI_Barrier"), &[1200, 20, 0, world]);
    push_block(&mut words, BlockKind::Stream, 1, &other);
    bytes_of(&words)
}

#[test]
fn a_journal_becomes_what_it_says() {
    let found = compact(&small_journal()).unwrap();
    assert_eq!(found.damage, Vec::<String>::new());
    let rank = &found.rank;
    let process = &rank.process;
    assert_eq!(
        (process.rank, process.host.as_str(), process.cpus.as_str(), process.finalized),
        (3, "node", "0-1", true)
    );
    assert_eq!((process.own_ns, process.elapsed_ns), (10, 4000));
    assert_eq!(process.calls, [(number("MPI_Barrier"), 8)]);
    assert_eq!(
        (rank.modules.as_slice(), rank.sites.as_slice()),
        (&["/bin/app".to_owned()][..], &[Site { module: 0, offset: 0x40 }][..])
    );
    let [site] = &rank.aggregates[..] else { panic!("one site: {:?}", rank.aggregates) };
    assert_eq!((site.site, site.calls, site.time_ns, site.max_ns, site.sent), (Some(0), 4, 200.0, 75.0, 8));
    let windows: Vec<_> =
        rank.windows.iter().map(|w| (w.window, w.start_ns, w.end_ns, w.kept, w.drawn)).collect();
    assert_eq!(
        windows,
        [(0, -50, 950, true, true), (1, 950, 1950, true, false), (2, 1950, 2950, true, true)]
    );
    let partners: Vec<_> = rank.windows.iter().map(|w| (w.partner, w.inclusion(), w.repeat)).collect();
    assert_eq!(partners, [(false, 0.5, 1), (true, 0.75, 1), (false, 0.5, 1)]);
    assert_eq!((rank.windows[1].probability, rank.windows[1].cells[0].sum), (0.5, 300.0));
    let calls: Vec<_> = Calls::new(rank).map(Result::unwrap).collect();
    let short: Vec<_> = calls
        .iter()
        .map(|c| (c.thread, c.seq, c.function.name(), c.window, c.start_ns, c.duration_ns))
        .collect();
    assert_eq!(
        short,
        [
            (0, 1, "MPI_Barrier", 0, 0, Some(50)),
            (1, 0, "MPI_Barrier", 0, 50, Some(10)),
            (0, 2, "MPI_Iprobe", 0, 100, Some(30)),
            (0, 6, "MPI_Barrier", 0, 200, Some(5)),
            (0, 20, "MPI_Finalize", 2, 2450, None),
        ]
    );
    assert_eq!((calls[2].count, calls[3].code, calls[3].out.len()), (4, 13, 0));
    assert_eq!((calls[0].site, calls[1].site), (Some(0), None));
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
            Err(_) => assert!(length < 16, "{length}"),
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
fn every_truncation_of_a_journal_is_readable() {
    let bytes = small_journal();
    for length in (0..bytes.len()).step_by(4) {
        match journal::read(&bytes[..length]) {
            Ok(_) => {
                look_at(&Trace { ranks: vec![compact(&bytes[..length]).unwrap().rank], ..Trace::default() })
            }
            Err(_) => assert!(length < HEADER_WORDS * 8),
        }
    }
}

#[test]
fn every_flipped_bit_of_a_journal_is_survived() {
    let bytes = small_journal();
    // Most of it is zeros and counters; steps without a factor of 2 meet every bit of some word.
    let records = bytes.len() * 8 - 160 * 64;
    for bit in (0..records).step_by(203).chain((records..bytes.len() * 8).step_by(7)) {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = compact(&bad) {
            look_at(&Trace { ranks: vec![found.rank], ..Trace::default() });
        }
    }
}

#[test]
fn other_files_are_refused_by_name() {
    use ampl_trace::ReadError;
    assert_eq!(read(&[0; 15]).unwrap_err(), ReadError::TooShort { len: 15 });
    assert!(matches!(read(&[7; 64]).unwrap_err(), ReadError::BadMagic { found } if found == [7; 8]));
    let mut file = small_file();
    file[8] = 9;
    assert_eq!(read(&file).unwrap_err(), ReadError::UnknownVersion { found: 9 });
    let mut words = journal_header();
    words[word::TABLE] ^= 1;
    assert!(matches!(journal::read(&bytes_of(&words)), Err(ReadError::TableMismatch { .. })));
    assert!(matches!(journal::read(&[0; HEADER_WORDS * 8]), Err(ReadError::BadMagic { .. })));
}
