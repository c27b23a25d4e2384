//! Traces of all calls, compared with the programs' own logs: completions in any order, several threads at once, and
//! the bytes of a regular program.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::reference::Reference;
use ampl_tests::run::{Form, monitor, number, parse, text_of};
use serde_json::Value;

// ---- what completes in any order -----------------------------------------------------------------

const DRAINING: u32 = 4;
/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = \"99%\"\n";

/// Every call with its arguments, every completed index with source and tag, as the program's log has them.
fn drained(mpi: Mpi) {
    let mut orders = BTreeSet::new();
    for (how, function) in [
        ("testsome", "MPI_Testsome"),
        ("waitsome", "MPI_Waitsome"),
        ("testany", "MPI_Testany"),
        ("waitany", "MPI_Waitany"),
    ] {
        let scratch = Scratch::new("drains");
        let log = scratch.path().join("log");
        let run =
            monitor(&Job::of(mpi, DRAINING, "drains", &[&log.to_string_lossy(), how]), EVERYTHING, Form::Run)
                .success();
        for rank in 0..DRAINING {
            let text = text_of(&scratch.path().join(format!("log.{rank}")));
            let reference =
                Reference::parse(&text).unwrap_or_else(|error| panic!("{how}, rank {rank}: {error}"));
            let decoded = run.decode(rank);
            if let Err(difference) = reference.compare(&decoded) {
                panic!("{mpi:?}, {how}, rank {rank}: {difference}");
            }
            let completed = completed(&decoded, function);
            assert_eq!(completed.len(), 25 * 6 * (DRAINING as usize - 1), "{mpi:?}, {how}, rank {rank}");
            orders.extend(completed.chunks(6 * (DRAINING as usize - 1)).map(<[u64]>::to_vec));
        }
    }
    // With fewer orders the test would prove nothing.
    assert!(orders.len() > 50, "{mpi:?}: only {} different orders", orders.len());
}

/// The indices that calls of `function` completed, in order.
fn completed(decoded: &[Value], function: &str) -> Vec<u64> {
    let mine = decoded.iter().filter(|call| call["fn"] == function);
    let indices = mine.flat_map(|call| {
        let several = call["out"]["array_of_indices"].as_array().cloned();
        let one = call["out"]["index"].clone();
        several.unwrap_or_else(|| vec![one])
    });
    indices.filter_map(|index| index.as_u64()).collect()
}

#[test]
fn what_completes_in_any_order_is_told_in_that_order_open_mpi() {
    drained(Mpi::OpenMpi);
}

#[test]
fn what_completes_in_any_order_is_told_in_that_order_mpich() {
    drained(Mpi::Mpich);
}

// ---- threads -------------------------------------------------------------------------------------

const THREADS: usize = 4;

/// Calls of one thread in a log and by `decode`, and the names of requests.
struct Stream {
    log: Vec<Value>,
    decoded: Vec<Value>,
}

/// The streams of a rank's threads but the first, by the number that the program gives them.
fn streams(decoded: &[Value], log: impl Fn(usize) -> String) -> Vec<Stream> {
    let mut threads: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for call in decoded.iter().filter(|call| call["thread"].is_u64()) {
        let mut call = call.clone();
        let count = call["count"].take().as_u64().unwrap_or(1);
        let stream = threads.entry(call["thread"].as_u64().unwrap_or(0)).or_default();
        stream.extend((0..count).map(|_| call.clone()));
    }
    assert_eq!(threads.len(), THREADS, "{:?}", threads.keys());
    let mut found: Vec<Option<Stream>> = (0..THREADS).map(|_| None).collect();
    for calls in threads.into_values() {
        let tag = calls[0]["args"]["tag"].as_u64().expect("a first call that tells the thread") as usize;
        let log = log(tag - 1000).lines().map(parse).collect();
        assert!(found[tag - 1000].replace(Stream { log, decoded: calls }).is_none(), "two threads {tag}");
    }
    found.into_iter().flatten().collect()
}

/// True where everything in `told` is in `found`; `null` is anything.
fn agrees(told: &Value, found: &Value) -> bool {
    match (told, found) {
        (Value::Null, _) => true,
        (Value::Object(told), found) => told.iter().all(|(name, value)| agrees(value, &found[name])),
        (Value::Array(told), Value::Array(found)) => {
            told.len() == found.len() && told.iter().zip(found).all(|(told, found)| agrees(told, found))
        }
        _ => told == found,
    }
}

/// Names of the requests that a call was given, one of them or an array.
fn given(call: &Value) -> Vec<&Value> {
    let args = &call["args"];
    args["array_of_requests"].as_array().map_or_else(|| vec![&args["request"]], |all| all.iter().collect())
}

/// The streams of every rank of a job of threads, compared with the threads' own logs; none where the library
/// does not let several threads in.
fn threads(mpi: Mpi, how: &str) -> Vec<Vec<Stream>> {
    const RANKS: u32 = 2;
    let scratch = Scratch::new("threads");
    let log = scratch.path().join("log");
    let job = Job::of(mpi, RANKS, "many_threads", &[&log.to_string_lossy(), how]);
    let run = monitor(&job, EVERYTHING, Form::Run).success();
    if run.finished.stdout.contains("no MPI_THREAD_MULTIPLE") {
        assert!(mpi != Mpi::Mpich, "it has MPI_THREAD_MULTIPLE");
        return Vec::new();
    }
    assert_eq!(run.info()["complete"], Value::Bool(true));
    let streams_of = |rank| {
        let log = |thread| text_of(&scratch.path().join(format!("log.{rank}.{thread}")));
        let streams = streams(&run.decode(rank), log);
        for (thread, stream) in streams.iter().enumerate() {
            stream.compare(&format!("{mpi:?}, {how}, rank {rank}, thread {thread}"));
        }
        // A communicator for each of those that make requests, and no two the same.
        let comms = streams.iter().map(|stream| {
            let makes = |call: &&Value| call["fn"] == "MPI_Irecv" || call["fn"] == "MPI_Isend";
            let mine = stream.decoded.iter().filter(makes);
            mine.map(|call| call["args"]["comm"].to_string()).collect::<BTreeSet<_>>()
        });
        let comms: Vec<BTreeSet<String>> = comms.filter(|names| !names.is_empty()).collect();
        assert_eq!(comms.len(), if how == "own" { THREADS } else { 2 });
        assert!(comms.iter().all(|names| names.len() == 1), "{comms:?}");
        assert_eq!(comms.iter().flatten().collect::<BTreeSet<_>>().len(), comms.len(), "{comms:?}");
        streams
    };
    (0..RANKS).map(streams_of).collect()
}

impl Stream {
    /// As many calls, in the same order, with the same arguments, statuses and indices, each with its time.
    fn compare(&self, why: &str) {
        let Self { log, decoded } = self;
        assert_eq!(log.len(), decoded.len(), "{why}: number of calls");
        let mut next = 0;
        for (told, found) in log.iter().zip(decoded) {
            let seq = found["seq"].as_u64().expect("a number");
            assert!(seq >= next, "{why}: {found}");
            next = seq;
            let same = ["fn", "args", "out"].iter().all(|part| agrees(&told[part], &found[part]));
            assert!(same, "{why}:\n  log    {told}\n  decode {found}");
            assert!(found["start_ns"].is_i64() && found["duration_ns"].is_u64(), "{why}: {found}");
        }
    }
}

/// Asserts that a rank's calls name the requests as the program did, whichever thread had made those.
fn compare_requests(streams: &[Stream]) {
    let both = || streams.iter().flat_map(|stream| stream.log.iter().zip(&stream.decoded));
    let (mut names, mut sends) = (BTreeMap::new(), BTreeSet::new());
    for (told, found) in both() {
        let Some(made) = told["made"].as_u64() else { continue };
        let name = found["out"]["request"].as_str().expect("a name");
        assert!(names.insert(made, name).is_none(), "{found}");
        sends.extend((told["fn"] == "MPI_Isend").then_some(name));
    }
    for (told, found) in both().filter(|(told, _)| told["given"].is_array()) {
        let told = told["given"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let told: Vec<&str> =
            told.map(|made| names.get(&made).copied().unwrap_or("MPI_REQUEST_NULL")).collect();
        let given: Vec<&str> = given(found).into_iter().filter_map(Value::as_str).collect();
        let same = |(told, given): (&&str, &&str)| {
            // Sends that complete at once share a handle, and cannot be told apart.
            told == given || sends.contains(told) && sends.contains(given)
        };
        let all = told.len() == given.len() && told.iter().zip(&given).all(same);
        assert!(all, "given {told:?}, decoded {found}");
    }
}

#[test]
fn threads_with_communicators_of_their_own() {
    for mpi in [Mpi::Mpich, Mpi::OpenMpi] {
        threads(mpi, "own");
    }
}

#[test]
fn threads_that_complete_what_others_have_made() {
    for mpi in [Mpi::Mpich, Mpi::OpenMpi] {
        threads(mpi, "handed");
    }
}

/// A handle that one thread's call has just freed may be another one's request already.
#[test]
fn threads_name_the_requests_they_were_given() {
    for (mpi, how) in
        [(Mpi::Mpich, "own"), (Mpi::Mpich, "handed"), (Mpi::OpenMpi, "own"), (Mpi::OpenMpi, "handed")]
    {
        threads(mpi, how).iter().for_each(|streams| compare_requests(streams));
    }
}

// ---- bytes ---------------------------------------------------------------------------------------

/// `trace_bytes.structure` of a stencil; its calls are what they should be.
fn structure(program: &str, ranks: u32, iterations: u32) -> f64 {
    let job = Job::of(Mpi::OpenMpi, ranks, program, &[&iterations.to_string()]);
    let run = monitor(&job, "[trace]\ntiming = \"off\"\n", Form::Run).success();
    let info = run.info();
    let sides = if program == "stencil2" { 4 } else { 6 };
    let each = u64::from(iterations) * u64::from(ranks);
    for (function, calls) in [("MPI_Irecv", each * sides), ("MPI_Isend", each * sides), ("MPI_Waitall", each)]
    {
        assert_eq!(info["functions"][function].as_u64(), Some(calls), "{program} on {ranks}: {info}");
    }
    // A small trace must still be complete.
    let last = run.decode(ranks - 1);
    let stored: u64 = last.iter().map(|call| call["count"].as_u64().unwrap_or(1)).sum();
    assert_eq!(stored, u64::from(iterations) * (2 * sides + 1) + 4, "{program} on {ranks}");
    number(&info["trace_bytes"]["structure"])
}

#[test]
fn a_plane_takes_few_bytes_on_any_number_of_ranks() {
    let [few, many] = [16, 64].map(|ranks| structure("stencil2", ranks, 100));
    assert!(few <= 700.0 && many <= 700.0, "{few} and {many} bytes");
    assert!((many / few - 1.0).abs() <= 0.05, "{few} and {many} bytes");
}

#[test]
fn a_cube_takes_few_bytes_on_any_number_of_ranks() {
    let [few, many] = [27, 64].map(|ranks| structure("stencil3", ranks, 100));
    assert!(few <= 900.0 && many <= 900.0, "{few} and {many} bytes");
}

#[test]
fn a_longer_loop_takes_no_more_bytes() {
    let [short, long] = [100, 1000].map(|iterations| structure("stencil2", 16, iterations));
    assert!((long - short).abs() <= 4.0, "{short} and {long} bytes");
}
