//! Statuses are decoded where MPI defines them, and nowhere else.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor};
use serde_json::Value;

/// Every status in `value`, alone or in a list.
fn statuses(value: &Value, found: &mut Vec<(i64, i64)>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| statuses(value, found)),
        Value::Object(fields) if fields.contains_key("source") => {
            let number = |name: &str| fields[name].as_i64().unwrap_or(-1);
            found.push((number("source"), number("tag")));
        }
        _ => {}
    }
}

fn only_messages_tell(mpi: Mpi) {
    let run =
        monitor(&Job::of(mpi, 2, "undefined_status", &[]), "[agent]\nmax_overhead = \"99%\"\n", Form::Run)
            .success();
    for rank in 0..2 {
        let mut found = Vec::new();
        for call in run.decode(rank) {
            let fields = call["out"].as_object().into_iter().flatten();
            fields.filter(|(name, _)| name.contains("status")).for_each(|(_, value)| {
                statuses(value, &mut found);
            });
        }
        // Three messages a turn are received with a status: by Wait, Waitall and Recv.
        assert_eq!(found, [(i64::from(1 - rank), 5); 9], "{mpi:?}, rank {rank}");
    }
}

#[test]
fn statuses_of_no_message_have_no_source_open_mpi() {
    only_messages_tell(Mpi::OpenMpi);
}

#[test]
fn statuses_of_no_message_have_no_source_mpich() {
    only_messages_tell(Mpi::Mpich);
}

#[test]
fn statuses_of_no_message_have_no_source_standard_abi() {
    only_messages_tell(Mpi::Abi);
}
