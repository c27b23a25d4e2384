//! What the hooks must do for a function, worked out once from the table.

use ampl_core::mpi::{Class, Direction, FUNCTIONS, Function, FunctionSpec, Kind, Traffic};

use ampl_trace::args::is_overwritten;

use crate::traffic::Operands;

/// One function's needs, ready for the hot path.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// How it is recorded.
    pub class: Class,
    /// Where its traffic's arguments are.
    pub operands: Operands,
    /// Index of its request parameter, if it has one.
    pub request: Option<u8>,
    /// Index of the parameter with the number of its requests; one request without.
    pub request_count: Option<u8>,
    /// Index of its output statuses.
    pub status: Option<u8>,
    /// Whether that status tells of a received message.
    pub receives: bool,
    /// Index of the output that is 0 after a failed poll.
    pub flag: Option<u8>,
    /// Index of the output that says which request has completed.
    pub index: Option<u8>,
    /// Whether it reads its request (and does not only make it).
    pub names_request: bool,
    /// Whether it has parameters, requests apart, that MPI reads and overwrites.
    pub in_out: bool,
    /// Whether something must be noted or replaced before the call.
    pub prepares: bool,
    /// Whether it takes long enough, and may talk to others, so that the tree may make progress in it.
    pub communicates: bool,
}

/// Recipes in the order of the function table.
pub fn all() -> Vec<Recipe> {
    FUNCTIONS.iter().enumerate().map(|(index, spec)| recipe(Function(index as u16), spec)).collect()
}

fn recipe(function: Function, spec: &'static FunctionSpec) -> Recipe {
    let position = |found: &dyn Fn(&ampl_core::mpi::Param) -> bool| {
        spec.params.iter().position(found).map(|index| index as u8)
    };
    let request = position(&|param| param.kind == Kind::Request);
    let counts = |param: &ampl_core::mpi::Param| matches!(param.name, "count" | "incount");
    let array =
        request.is_some_and(|index| spec.params[usize::from(index)].length != ampl_core::mpi::Length::One);
    let waits = matches!(spec.class, Class::Nonblocking | Class::Completion | Class::Poll | Class::Start);
    let blocks = matches!(
        function.name(),
        "MPI_Barrier" | "MPI_Probe" | "MPI_Mprobe" | "MPI_Win_fence" | "MPI_Win_unlock" | "MPI_Win_complete"
    );
    let status = position(&|param| param.kind == Kind::Status && param.direction != Direction::In);
    let numbers = |p: &ampl_core::mpi::Param| p.direction == Direction::InOut && p.kind == Kind::Int;
    let in_out = spec.params.iter().any(|param| is_overwritten(param) || numbers(param));
    let names_request =
        request.is_some_and(|index| spec.params[usize::from(index)].direction != Direction::Out);
    let receives = !spec.name.starts_with("MPI_File");
    Recipe {
        class: spec.class,
        operands: Operands::of(spec),
        request,
        request_count: if array { position(&counts) } else { None },
        status,
        receives,
        flag: match spec.class {
            Class::Poll => position(&|param| matches!(param.name, "flag" | "outcount")),
            _ => None,
        },
        index: position(&|param| matches!(param.name, "index" | "array_of_indices")),
        names_request,
        in_out,
        prepares: names_request || in_out || (status.is_some() && receives),
        communicates: waits || blocks || spec.traffic != Traffic::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::ids;

    #[test]
    fn parameters_are_where_the_standard_puts_them() {
        let all = all();
        let of = |function: Function| &all[usize::from(function.0)];
        let waitall = of(ids::MPI_WAITALL);
        assert_eq!((waitall.request_count, waitall.request, waitall.status), (Some(0), Some(1), Some(2)));
        let test = of(ids::MPI_TEST);
        assert_eq!(
            (test.request, test.request_count, test.flag, test.status),
            (Some(0), None, Some(1), Some(2))
        );
        assert!(of(ids::MPI_COMM_FREE).in_out && !of(ids::MPI_WAIT).in_out);
        assert!(of(ids::MPI_REQUEST_FREE).names_request && !of(ids::MPI_ISEND).names_request);
        assert_eq!(of(ids::MPI_WAITANY).index, Some(2));
        assert!(!of(ids::MPI_COMM_RANK).communicates);
        assert!(of(ids::MPI_SEND).communicates);
        assert_eq!(of(ids::MPI_TESTSOME).request_count, Some(0));
    }
}
