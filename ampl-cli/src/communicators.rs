//! The communicators of a run, as `ampl info --json` prints them.

use ampl_core::mpi::Function;
use ampl_trace::communicators::{Communicator, Communicators};
use serde::{Serialize, Serializer};

/// All of them, as `--json` has them.
#[derive(Debug)]
pub struct Rows<'a>(pub &'a Communicators);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Row::of))
    }
}

/// A communicator; the order of fields is part of the format.
#[derive(Debug, Serialize)]
struct Row {
    /// Name, as in `ampl decode`.
    name: String,
    made_by: &'static str,
    parent: Option<String>,
    size: Option<u32>,
    /// Ranks of the world in its order; none where that is not known.
    ranks: Option<String>,
    /// Ranks of the second group of an intercommunicator.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_ranks: Option<String>,
    /// True where the name means this communicator on every rank.
    agreed: bool,
}

impl Row {
    fn of(comm: &Communicator) -> Self {
        Self {
            name: comm.name.to_string(),
            made_by: Function::name_of(comm.function),
            parent: comm.parent.map(|parent| parent.to_string()),
            size: comm.size,
            ranks: comm.ranks.as_ref().map(ToString::to_string),
            remote_ranks: comm.remote.as_ref().map(ToString::to_string),
            agreed: comm.is_agreed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::predefined_index;
    use ampl_core::value::ObjectKind;
    use ampl_report::communicators::{self as report, text};
    use ampl_report::layout::WIDTH;
    use ampl_trace::RankTrace;
    use ampl_trace::args::predefined_word;
    use ampl_trace::grammar::Builder;
    use ampl_trace::model::{Process, Trace};
    use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};

    /// Ranks that split the world by evenness, backwards, `times` times; rank 0 is split off with an error code.
    fn trace(ranks: u32, times: u64) -> Trace {
        let world = predefined_word(predefined_index(ObjectKind::Comm, "MPI_COMM_WORLD").unwrap());
        let split = Function::by_name("MPI_Comm_split").unwrap().0;
        let mut trace = Trace::default();
        trace.run.ranks = ranks;
        trace.structure = JobStructure::new(ranks);
        for rank in 0..ranks {
            let mut builder = Builder::new();
            let signatures = (1..=times).map(|word| Signature {
                function: split,
                flags: 0,
                site: 0,
                words: vec![world, u64::from(rank % 2), u64::from(ranks - rank), word],
            });
            (0..times).for_each(|terminal| builder.push(terminal as u32, 1));
            let thread =
                ThreadStructure { thread: 0, signatures: signatures.collect(), grammar: builder.grammar() };
            let threads = vec![thread];
            trace.structure.join(JobStructure::of(RankStructure {
                rank,
                threads,
                ..RankStructure::default()
            }));
            let calls = vec![(split, times)];
            let process = Process { rank, finalized: true, calls, ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
        }
        trace
    }

    #[test]
    fn json_has_the_contract_s_fields_in_order() {
        let trace = trace(5, 1);
        let rows = serde_json::to_string(&Rows(&Communicators::of(&trace))).unwrap();
        assert_eq!(
            rows,
            "[{\"name\":\"comm:1\",\"made_by\":\"MPI_Comm_split\",\"parent\":\"world\",\"size\":3,\
             \"ranks\":\"4,2,0\",\"agreed\":true},{\"name\":\"comm:2\",\"made_by\":\"MPI_Comm_split\",\
             \"parent\":\"world\",\"size\":2,\"ranks\":\"3,1\",\"agreed\":true}]"
        );
    }

    #[test]
    fn text_tells_the_first_of_them() {
        assert_eq!(text(&Communicators::of(&trace(4, 0)), WIDTH), "");
        let text = text(&Communicators::of(&trace(4, 3)), WIDTH);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "6 communicators that the program made");
        assert_eq!(lines[2], "  comm:1              MPI_Comm_split of world, 2 ranks: 2,0");
        assert_eq!(lines[6], "  2 more: ampl info --json lists them all");
        // Whose other callers did not come.
        let mut cut = trace(4, 1);
        cut.structure = JobStructure::of(cut.structure.rank(0).unwrap());
        let lines = report::text(&Communicators::of(&cut), WIDTH);
        assert!(lines.contains("1 communicator that the program made; of 1 it is not known"), "{lines}");
        assert!(lines.contains("  comm:0.1            MPI_Comm_split of world"), "{lines}");
    }
}
