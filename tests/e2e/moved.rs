//! Bytes of MPI-IO and of one-sided calls, in numbers of their own.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, monitor, number};

const RANKS: u32 = 2;

#[test]
fn bytes_of_files_and_windows_are_counted_apart() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("moves");
        let file = scratch.path().join("data");
        let job = Job::of(mpi, RANKS, "moves", &[file.to_str().expect("a path of ours")]);
        let config = "[[metric]]\nname = \"bytes.sent\"\nevent = \"MPI_Put\"\n";
        let run = monitor(&job, config, Form::Run).success();
        let info = run.info();
        let each = [
            ("io.bytes_written", 400 + 400 + 200 + 80 + 40),
            ("io.bytes_read", 400 + 28 + 12),
            ("rma.bytes_put", 40 + 20 + 8 + 4 + 4),
            ("rma.bytes_got", 60 + 8 + 12 + 4 + 4 + 4),
        ];
        for (name, bytes) in each {
            assert_eq!(info[name], bytes * u64::from(RANKS), "{mpi:?} {name}: {info}");
        }
        let said = &run.finished.stderr;
        assert!(said.contains("2.24 kB written by MPI-IO") && said.contains("152 B put"), "{said}");
        // Messages are what they were, and a metric of one function has its bytes.
        let total = |metric: &str, event: &str| -> f64 {
            let rows = run.estimate();
            let of = |row: &&serde_json::Value| {
                row["metric"] == metric
                    && row["event"] == event
                    && row["scope"] == "run"
                    && row["basis"] == "census"
            };
            rows.iter().find(of).map_or(f64::NAN, |row| number(&row["mean"]))
        };
        let (sent, put) = (total("bytes.sent", "*"), total("bytes.sent", "MPI_Put"));
        assert!(sent > 0.0 && sent <= 4.0, "{mpi:?}: {sent} bytes of one reduction, in an average window");
        assert!(put > 0.0 && put <= 40.0, "{mpi:?}: {put}");
        // Programs without either have no such numbers.
        let none = monitor(&Job::of(mpi, RANKS, "steady", &["3"]), "", Form::Run).success();
        assert!(none.info().get("io.bytes_read").is_none() && !none.finished.stderr.contains("MPI-IO"));
    }
}
