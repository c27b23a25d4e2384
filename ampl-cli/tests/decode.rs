//! Bytes of a run that `ampl decode` reads.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use ampl_testkit::synthetic::Synthetic;
use ampl_trace::format::v1;

/// Exit status and output of `ampl decode --json` of one rank.
fn decode(run: &Path, rank: u32) -> (i32, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
    command.arg("decode").arg(run).args(["--json", "--rank", &rank.to_string()]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), output.stdout)
}

#[test]
fn one_rank_of_a_thousand_takes_no_byte_of_the_others() {
    let job = Synthetic { ranks: 1000, windows: 4, size: 1000, ..Synthetic::default() };
    let mut bytes = job.trace_file();
    let directory = tempfile::tempdir().unwrap();
    let (run, cut) = (directory.path().join("run"), directory.path().join("cut"));
    fs::create_dir_all(&run).unwrap();
    fs::create_dir_all(&cut).unwrap();
    fs::write(run.join("trace.ampl"), &bytes).unwrap();
    // The place of each rank's own sections in the file.
    let begin = bytes.as_ptr() as usize;
    let (sections, damage) = v1::read(&bytes).unwrap();
    assert_eq!(damage, []);
    let places: Vec<(u32, Range<usize>)> = sections
        .iter()
        .filter_map(|section| {
            let at = section.payload.as_ptr() as usize - begin;
            Some((section.rank?, at..at + section.payload.len()))
        })
        .collect();
    let length = |own: bool| -> usize {
        places.iter().filter(|(rank, _)| (*rank == 5) == own).map(|(_, place)| place.len()).sum()
    };
    let (own, others) = (length(true), length(false));
    // Most of the file is of other ranks, and nothing of that is read: every byte of it is changed.
    assert!(own > 0 && others > 500 * own && 2 * others > bytes.len(), "{own}, {others} of {}", bytes.len());
    for (_, place) in places.into_iter().filter(|(rank, _)| *rank != 5) {
        bytes[place].iter_mut().for_each(|byte| *byte ^= 0xff);
    }
    fs::write(cut.join("trace.ampl"), &bytes).unwrap();
    let whole = decode(&run, 5);
    assert_eq!(whole.0, 0);
    assert!(String::from_utf8_lossy(&whole.1).lines().count() > 4);
    assert_eq!(decode(&cut, 5), whole);
    // A rank whose bytes are changed is not read in silence.
    assert_eq!((decode(&run, 6).0, decode(&cut, 6).0), (0, 3));
}
