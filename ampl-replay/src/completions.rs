//! Requests that a call has completed, by its recorded outcome.

use ampl_core::mpi::{Class, Direction, Kind};
use ampl_core::value::{ObjectKind, Value};
use ampl_reader::Call;

/// A request that a call has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Position among the call's requests.
    pub position: usize,
    /// Name of the request; `None` for `MPI_REQUEST_NULL`.
    pub request: Option<u64>,
    /// Source in its status, where that is known.
    pub source: Option<i64>,
}

/// Input of that name.
pub fn input<'a>(call: &'a Call, name: &str) -> Option<&'a Value> {
    call.args.iter().find(|(of, _)| *of == name).map(|(_, value)| value)
}

/// Output of that name.
pub fn output<'a>(call: &'a Call, name: &str) -> Option<&'a Value> {
    call.out.iter().find(|(of, _)| *of == name).map(|(_, value)| value)
}

/// True for a call that asked and found nothing: a replay does not repeat it.
pub fn is_failed_poll(call: &Call) -> bool {
    let polls = matches!(call.function.spec().class, Class::Poll | Class::Completion);
    let none = [("flag", Value::Bool(false)), ("outcount", Value::Int(0))];
    polls && call.out.iter().any(|found| none.contains(found))
}

/// Name of the parameter with the requests that `call` may complete; `None` where it completes none.
pub fn requests_of(call: &Call) -> Option<&'static str> {
    let spec = call.function.spec();
    let completes = matches!(spec.class, Class::Completion | Class::Poll);
    let mut params = spec.params.iter();
    let param = params.find(|param| param.kind == Kind::Request && param.direction != Direction::Out);
    param.filter(|_| completes).map(|param| param.name)
}

fn name_of(value: &Value) -> Option<u64> {
    match value {
        Value::Object(ObjectKind::Request, name) => Some(*name),
        _ => None,
    }
}

/// Source and tag in a status, where these are known.
pub fn source_and_tag_of(status: &Value) -> Option<(i64, i64)> {
    match status {
        Value::Status { source, tag } => Some((*source, *tag)),
        Value::Outcome { told, .. } => *told,
        _ => None,
    }
}

/// Source in a status, where it is known.
pub fn source_of(status: &Value) -> Option<i64> {
    source_and_tag_of(status).map(|(source, _)| source)
}

/// Positions that the output of that name gives.
fn positions(value: &Value) -> Vec<usize> {
    let of = |value: &Value| match value {
        Value::Int(index) => usize::try_from(*index).ok(),
        _ => None,
    };
    match value {
        Value::List(values) => values.iter().filter_map(of).collect(),
        value => of(value).into_iter().collect(),
    }
}

/// The requests that `call` has completed; none of a failed poll.
pub fn completed(call: &Call) -> Vec<Completed> {
    let Some(requests) = requests_of(call).and_then(|name| input(call, name)) else { return Vec::new() };
    if is_failed_poll(call) {
        return Vec::new();
    }
    let one = std::slice::from_ref(requests);
    let requests = if let Value::List(all) = requests { &all[..] } else { one };
    let indices = ["index", "indx", "array_of_indices"].into_iter().find_map(|name| output(call, name));
    let positions = match indices {
        Some(indices) => positions(indices),
        None => (0..requests.len()).collect(),
    };
    let statuses = ["status", "array_of_statuses"].into_iter().find_map(|name| output(call, name));
    let of = |(nth, position): (usize, usize)| {
        let status = match statuses {
            Some(Value::List(statuses)) => statuses.get(nth),
            status => status,
        };
        let request = requests.get(position).and_then(name_of);
        Completed { position, request, source: status.and_then(source_of) }
    };
    positions.into_iter().enumerate().map(of).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    pub(crate) use ampl_testkit::runs::decoded as call;

    pub(crate) fn request(name: u64) -> Value {
        Value::Object(ObjectKind::Request, name)
    }

    fn three() -> Vec<(&'static str, Value)> {
        vec![("array_of_requests", Value::List(vec![request(4), request(5), request(6)]))]
    }

    #[test]
    fn some_are_at_their_indices_and_statuses_follow_these() {
        let status = |source| Value::Status { source, tag: 0 };
        let out = vec![
            ("outcount", Value::Int(2)),
            ("array_of_indices", Value::List(vec![Value::Int(2), Value::Int(0)])),
            ("array_of_statuses", Value::List(vec![status(7), status(8)])),
        ];
        let found = completed(&call("MPI_Waitsome", three(), out));
        let expected = [
            Completed { position: 2, request: Some(6), source: Some(7) },
            Completed { position: 0, request: Some(4), source: Some(8) },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn all_are_completed_without_indices_and_none_by_a_poll_that_failed() {
        let found = completed(&call("MPI_Waitall", three(), Vec::new()));
        assert_eq!(found.iter().map(|one| one.request).collect::<Vec<_>>(), [Some(4), Some(5), Some(6)]);
        let failed = call("MPI_Testall", three(), vec![("flag", Value::Bool(false))]);
        assert!(is_failed_poll(&failed) && completed(&failed).is_empty());
        let undefined = Value::Name("MPI_UNDEFINED".into());
        assert!(completed(&call("MPI_Waitany", three(), vec![("index", undefined)])).is_empty());
        assert!(completed(&call("MPI_Startall", three(), Vec::new())).is_empty());
        assert!(!is_failed_poll(&call("MPI_Test_cancelled", Vec::new(), vec![("flag", Value::Bool(false))])));
    }
}
