//! Keys of `[output]`.

use super::Shape;
use super::forms::COPY;
use super::settings::settings;
use crate::config::form::{Flag, Maybe, Real, Text, words};
use crate::config::write::quoted;
use crate::config::{Arguments, Journal, RankSummaries, marker, rules};

settings! {
    [output] "Where files go." => pub struct Output {
        dir: String = "ampl-{app}-{jobid}-{time}".to_owned(),
            Text { read: rules::template, write: |dir| Some(quoted(dir)) },
            "Run directory; a name already taken gets `-2`, and -o goes before it.",
            default("\"ampl-{app}-{jobid}-{time}\""),
            range("a path in which {app}, {jobid} and {time} are replaced"),
            examples("\"runs/{jobid}\"", "\"run-{job}\"");
        record: Option<String> = None,
            Maybe(Text { read: rules::record, write: |record: &String| Some(quoted(record)) }),
            "File for the record of the job, at most 8 KiB of JSON for `ampl history`. `ampl run` writes it, whole or not \
             at all, when the job is over. A name that is taken gets `-2` before its ending.",
            range("a path in which {user}, {jobid}, {app} and {time} are replaced"),
            examples("\"/archive/{user}/{jobid}.json\"", "\"{job}.json\"");
        mode: u32 = 0o700,
            Text { read: rules::mode, write: |mode: &u32| Some(quoted(&format!("{mode:o}"))) },
            "Permissions of the run directory, as chmod takes them; its files may be read by the same users. Its owner always has all of them.",
            default("\"700\""), range("three octal digits, the first of them 7"),
            examples("\"750\"", "\"u=rwx\"");
        arguments: Arguments = Arguments::All,
            words! {
                "all" => Arguments::All, "all, and the hashes of files that they name";
                "program" => Arguments::Program, "the program's name";
                "off" => Arguments::Off, "no word";
            },
            "Words of the program's command line that are stored.",
            default("\"all\""), examples("\"program\"", "\"none\"");
        journal: Journal = Journal::Node,
            Text { read: rules::journal, write: |journal| Some(quoted(journal.name())) },
            "Where every rank's journal lives until all are merged in MPI_Finalize. Directories that ampl makes for them go \
             with the last run that uses them.",
            default("\"node\""),
            forms(&[
                ("node", "memory of the node, or its temporary directory"),
                ("run", "the run directory"),
                ("PATH", "that directory; with a `/`, so that no slip becomes a directory"),
                ("off", "memory of the process: a job that dies leaves nothing to recover"),
            ]),
            examples("\"run\"", "\"nodes\"");
        copy_ns ("copy"): Option<u64> = None, COPY,
            "How often a process of each node, at the lowest priority, copies journals in the node's memory to the run \
             directory: `off`, or an interval. They are as old at most when a job is killed and that memory is cleared, as \
             far as 32 MiB/s suffice.",
            default("\"off\""), range("`off`, or from 1 s to 1000000 s"), examples("\"60s\"", "\"1ms\"");
        rank_summaries: RankSummaries = RankSummaries::All,
            words! {
                "all" => RankSummaries::All, "every rank's";
                "sample" => RankSummaries::Sample, "the sampled ranks'";
                "off" => RankSummaries::Off, "nobody's";
            },
            "Whose per-rank vectors of window summaries are stored, for `strata`, `plan` and `simulate`.",
            default("\"all\""), examples("\"sample\"", "\"none\"");
        summary_error: f64 = 0.001,
            Real {
                shape: Shape::Fraction,
                fits: |value| (0.0..1.0).contains(&value),
                range: "in [0, 1)",
                wanted: "a relative error in [0, 1), such as 0.001 or \"0.1%\"",
            },
            "Relative error of each measured time and counter in these vectors, whose sums over ranks stay exact, and of \
             processor times and context switches of processes. Bytes and calls are exact; with `verify` all is. With \
             `rank_summaries = \"off\"` times that ranks ran are stored to 12 bits, and first and last moments of gaps of a \
             job without calls to a thousandth of these. 0 stores exact values.",
            default("0.001"), examples("0.01", "1.5");
        max_bytes: Option<u64> = None,
            Maybe(Text { read: marker::size, write: |bytes: &u64| Some(format!("\"{bytes}B\"")) }),
            "Bytes of a job's trace. What exceeds them is left out in MPI_Finalize: times of the last windows, then which buffers calls had, then the last calls, \
             which are gaps. Window summaries and facts about the run are always stored.",
            range("bytes with their unit: B, kB, MB, GB, KiB, MiB or GiB"),
            examples("\"1GB\"", "\"0B\"");
        verify: bool = false, Flag,
            "Record everything and mark what would have been kept, to check bounds against the truth.",
            default("false"), examples("true", "1");
    }
}
