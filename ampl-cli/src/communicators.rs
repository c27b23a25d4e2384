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
    use ampl_testkit::splits::trace;

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
}
