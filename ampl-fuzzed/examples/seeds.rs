//! Writes inputs to begin with to `DIRECTORY/TARGET/`: parts of synthetic runs, and files of this repository.
//!
//! ```console
//! cargo run -p ampl-fuzzed --example seeds -- DIRECTORY
//! ```

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use ampl_core::message::{CensusWindow, MessageLayout, UpMessage};
use ampl_core::units::WindowId;
use ampl_fuzzed::journal;
use ampl_testkit::synthetic::Synthetic;
use ampl_trace::format::v1;
use ampl_trace::time_index::{encode, put_header, put_rank};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RULES: &str = "confidence = 0.9\ninconclusive = \"pass\"\n[[rule]]\nfail_if = \"elapsed>5% and 10ms\"\n\
                     floor = \"50ms\"\n[[rule]]\nfail_if = \"messages@MPI_Send!=0\"\n";
const PATTERNS: &str = "[[pattern]]\nname = \"knights\"\ndims = [\"any\", 4]\nperiodic = [true, false]\n\
                        neighbours = [\"x + 1, y + 2\", \"if(x > 0, shl(x, 1), nx - 1), y\"]\n\
                        [[pattern]]\nname = \"ring\"\ndims = [12]\nperiodic = true\nneighbours = [\"x + 1\"]\n\
                        [[pattern]]\nname = \"kite\"\nedges = [[0, 1], [1, 2], [2, 0], [2, 11]]\n";

fn main() -> Result<(), Box<dyn Error>> {
    let place = PathBuf::from(std::env::args_os().nth(1).ok_or("name a directory")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(place.join(target))?;
        fs::write(place.join(target).join(name), bytes)
    };
    for name in ["always", "groups", "figure4", "bandwidth"] {
        put("config", name, &fs::read(root.join("configs").join(format!("{name}.toml")))?)?;
    }
    put("edges", "volumes", b"# from to bytes\n3 1 5\n\n1 3 7  # back\n2 2 9\n0,1,0.5\n")?;
    put("edges", "plain", b"\xef\xbb\xbf0 1\n1 2\n19999999 0\n")?;
    put("rules", "file", RULES.as_bytes())?;
    put("rules", "rule", b"mpi.time@MPI_Send>=+5% and 1ms")?;
    put("pattern", "file", PATTERNS.as_bytes())?;

    let job = Synthetic { ranks: 2, windows: 2, size: 2, ..Synthetic::default() };
    for rank in 0..2 {
        put("journal", &format!("rank-{rank}"), &journal::input(&job.journal(rank)))?;
    }
    let (bytes, trace) = (job.trace_file(), job.trace());
    put("trace", "file", &bytes)?;
    put("trace", "sections", &sections(&bytes)?)?;
    let golden = fs::read(root.join("ampl-trace/tests/golden/v1/three-ranks-unrecorded.ampl"))?;
    put("trace", "unrecorded", &sections(&golden)?)?;
    let run = Path::new("/nowhere/run");
    ampl_export::archive::write(&trace, run, &format!("{}/record/job", place.display()), "ann", "7")
        .map_err(|(_, why)| why)?;

    let golden =
        ampl_trace::format::read(&fs::read(root.join("ampl-trace/tests/golden/v1/four-ranks.ampl"))?)?;
    let (rank, structure) = (&golden.ranks[0], golden.structure.rank(0).ok_or("rank 0")?);
    let times = encode(&structure, &rank.times, None, usize::MAX).map_err(|_| "times")?.ok_or("an index")?;
    let mut index = Vec::new();
    put_header(&mut index, 7)?;
    put_rank(&mut index, 0, &times)?;
    put("time_index", "rank", &times)?;
    put("time_index", "file", &index)?;
    put("timing", "times", &rank.times)?;

    let layout = MessageLayout::of(&job.plan());
    for (name, window) in
        [("window", Some(CensusWindow::new(&layout, WindowId(1), WindowId(2)))), ("end", None)]
    {
        let mut message = Vec::new();
        UpMessage { pass: 0, finished: 1, window }.encode(&layout, &mut message);
        put("message", name, &message)?;
    }
    let mut random = [0; 512];
    ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut random);
    put("node", "random", &random)?;
    Ok(())
}

/// Sections of a trace file as the target takes them, those that are short enough.
fn sections(file: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (sections, _) = v1::read(file)?;
    let mut bytes = Vec::new();
    for section in sections {
        let Ok(length) = u16::try_from(section.payload.len()) else { continue };
        let rank = section.rank.map_or(0, |rank| rank as u8 + 1);
        bytes.extend([section.kind as u8, rank]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(section.payload);
    }
    Ok(bytes)
}
