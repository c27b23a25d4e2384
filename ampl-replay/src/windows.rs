//! Accesses to windows whose memory is named by its address.

use std::collections::HashSet;

use ampl_core::value::Value;
use ampl_reader::Call;

use crate::completions::{input, output};

/// The first function that reaches into another rank's part of a window of `MPI_Win_create_dynamic`: its displacement is
/// an address of the recorded process, which the other process of a replay does not have.
pub fn by_address(calls: impl Iterator<Item = Call>) -> Option<&'static str> {
    let mut dynamic = HashSet::new();
    for call in calls {
        if let Some(Value::Object(_, made)) = output(&call, "win") {
            match call.function.name() {
                "MPI_Win_create_dynamic" => _ = dynamic.insert(*made),
                _ => _ = dynamic.remove(made),
            }
        }
        let reaches = input(&call, "target_disp").is_some()
            && !matches!(input(&call, "target_rank"), Some(Value::Name(none)) if none == "MPI_PROC_NULL");
        if let Some(Value::Object(_, win)) = input(&call, "win")
            && reaches
            && dynamic.contains(win)
        {
            return Some(call.function.name());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completions::tests::call;
    use ampl_core::value::ObjectKind;

    fn win(number: u64) -> (&'static str, Value) {
        ("win", Value::Object(ObjectKind::Win, number))
    }

    fn put(to: Value, number: u64) -> Call {
        call("MPI_Put", vec![("target_rank", to), ("target_disp", Value::Int(1 << 46)), win(number)], vec![])
    }

    #[test]
    fn only_accesses_to_dynamic_windows_are_by_address() {
        let made = |function, number| call(function, vec![], vec![win(number)]);
        let windows = [made("MPI_Win_create", 1), made("MPI_Win_create_dynamic", 2)];
        let found = |calls: &[Call]| by_address(windows.iter().chain(calls).cloned());
        let none = Value::Name("MPI_PROC_NULL".into());
        let attach = call("MPI_Win_attach", vec![win(2), ("base", Value::Address(64))], vec![]);
        assert_eq!(found(&[attach, put(Value::Int(1), 1), put(none, 2)]), None);
        assert_eq!(found(&[put(Value::Int(1), 2)]), Some("MPI_Put"));
        // The name of a window that is gone is used again.
        assert_eq!(found(&[made("MPI_Win_allocate", 2), put(Value::Int(1), 2)]), None);
    }
}
