//! Bytes of a run that `ampl decode` reads.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use ampl_testkit::synthetic::Synthetic;
use ampl_trace::format::{Kind, v1};

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
    // The place of each section in the file. Of sections of many ranks, those are needed that begin at rank 5 or nearest
    // before it.
    let begin = bytes.as_ptr() as usize;
    let (sections, damage) = v1::read(&bytes).unwrap();
    assert_eq!(damage, []);
    let nearest = |kind: Kind| {
        let of_kind = sections.iter().filter(|section| section.kind == kind);
        of_kind.filter_map(|section| section.rank).filter(|&first| first <= 5).max()
    };
    let (mut needed, mut others): (usize, Vec<Range<usize>>) = (0, Vec::new());
    for section in &sections {
        let Some(rank) = section.rank else { continue };
        let at = section.payload.as_ptr() as usize - begin;
        let place = at..at + section.payload.len();
        match section.kind.is_of_many() {
            true if Some(rank) == nearest(section.kind) => needed += place.len(),
            false if rank == 5 => needed += place.len(),
            _ => others.push(place),
        }
    }
    let rest: usize = others.iter().map(Range::len).sum();
    // Most bytes are of other ranks, and none of these is read: every one of them is changed.
    assert!(needed > 0 && rest > 2 * needed, "{needed}, {rest} of {}", bytes.len());
    for place in others {
        bytes[place].iter_mut().for_each(|byte| *byte ^= 0xff);
    }
    fs::write(cut.join("trace.ampl"), &bytes).unwrap();
    let whole = decode(&run, 5);
    assert_eq!(whole.0, 0);
    assert!(String::from_utf8_lossy(&whole.1).lines().count() > 4);
    assert_eq!(decode(&cut, 5), whole);
    // A rank whose bytes are changed is not read in silence.
    assert_eq!((decode(&run, 700).0, decode(&cut, 700).0), (0, 3));
}
