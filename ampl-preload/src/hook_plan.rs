//! Work of the hooks for a function, derived once from the table.

mod repeats;
mod step;

use std::sync::OnceLock;

use ampl_agent::prefetch::fetch;
use ampl_agent::shared::Shared;
use ampl_core::mpi::traffic::{Ends, Operands};
use ampl_core::mpi::{
    Class, Direction, FUNCTION_COUNT, FUNCTIONS, Function, FunctionSpec, Kind, Length, Param, Traffic, ids,
};
use ampl_core::value::ObjectKind;
use ampl_trace::args::{gives_address, is_input, is_output, is_overwritten};
use ampl_trace::current::{Operands as Named, Role};

pub use repeats::{Outputs, ShortWay};
use repeats::{is_integer, leaves_room};
pub use step::Step;
use step::{input_step, output_step, telling, tells_request, together};

/// One function's needs, ready for the hot path.
#[derive(Clone, Debug)]
pub struct HookPlan {
    /// How it is recorded.
    pub class: Class,
    /// True where its calls are not timed, and only counted where they are not stored.
    pub local: bool,
    /// Where its traffic's arguments are.
    pub operands: Operands,
    /// Ranks at the other ends of its messages, where partners matter.
    pub ends: Option<Ends>,
    /// True where its calls may name message partners, and those matter.
    pub tells_partners: bool,
    /// Index of its request parameter, if it has one.
    pub request: Option<u8>,
    /// Index of the parameter with the number of its requests; one request without.
    pub request_count: Option<u8>,
    /// Index of its output statuses.
    pub status: Option<u8>,
    /// True where that status describes a received message.
    pub receives: bool,
    /// Index of the output that is 0 after a failed poll.
    pub flag: Option<u8>,
    /// True where it reads its request (and does not only make it).
    pub names_request: bool,
    /// True where it may end the requests it reads, or complete them.
    pub completes: bool,
    /// True where the request it makes is persistent.
    pub makes_persistent: bool,
    /// True where the request it makes ends with a message received.
    pub makes_receive: bool,
    /// True where it has parameters, requests apart, that MPI reads and overwrites.
    pub in_out: bool,
    /// True where it gives out objects, requests apart.
    pub gives: bool,
    /// Work for its calls when the agent costs too much.
    pub fast_path: FastPath,
    /// True where something must be noted or replaced before the call.
    pub prepares: bool,
    /// True where it takes long enough, and may communicate, so that the tree may make progress in it.
    pub communicates: bool,
    /// Data that not every call needs.
    pub rest: &'static Rest,
    /// Number of its first words that determine the record of its inputs, and its bytes; `None` where they do not.
    pub telling: Option<u8>,
    /// How its outputs get into the record.
    pub outputs: Outputs,
    /// How far its calls in C may take the [short way](crate::intercept).
    pub short_way: ShortWay,
    /// Indices of the source and tag arguments, where a status is all that is recorded of its outputs: if the call
    /// names one source and one tag, its message has these.
    pub answer: Option<(u8, u8)>,
    /// Indices of the arguments for readers of calls under way: a rank, a tag or another rank, a communicator.
    pub about: [u8; 3],
}

/// Data for calls that are new, that fail, or that end one of several requests.
#[derive(Debug)]
pub struct Rest {
    /// How the arguments of the entry part get into the record, in order, each with the index of the first.
    pub inputs: Box<[(u8, Step)]>,
    /// Steps of the exit part's arguments, likewise.
    pub outputs: Box<[(u8, Step)]>,
    /// The class of error after which its outputs are written all the same.
    pub outcome: Option<Outcome>,
    /// Index of the output with the index or indices of completed requests.
    pub index: Option<u8>,
    /// Index of the output with their number.
    pub outcount: Option<u8>,
    /// True where its request is passed by value in C.
    pub request_by_value: bool,
    /// True where the record of its inputs is no more than the requests that it names.
    pub asks: bool,
    /// True where its address names memory that other calls give, take or free: it is recorded even where other places
    /// are not.
    pub names_memory: bool,
}

/// Work for calls of a function while the agent is to cost next to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FastPath {
    /// As much as always: they make or end objects that later calls need, or it matters where or how they are made.
    Never,
    /// They are counted.
    Counted,
    /// They are counted, and end windows.
    Marking,
}

/// Classes of errors that are a message's, not the call's: MPI has done the rest of the call, and written its
/// outputs (MPI-4.1 §3.2.5, §3.7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `MPI_ERR_TRUNCATE`, of the one message received.
    Message,
    /// `MPI_ERR_IN_STATUS`: each status has its own request's error.
    Several,
}

impl HookPlan {
    /// True where it makes a request, and names none.
    #[inline(always)]
    pub fn makes_request(&self) -> bool {
        self.request.is_some() && !self.names_request
    }
}

/// Plans of all functions, once there is an agent. No pointer leads there: with cold caches, a call fetches its plan
/// and its thread's state at the same time.
static ALL: [Slot; FUNCTION_COUNT] = [const { Slot(OnceLock::new()) }; FUNCTION_COUNT];

/// One line of memory.
#[repr(align(64))]
struct Slot(OnceLock<HookPlan>);

const _: () = assert!(size_of::<Slot>() == 64);

/// Plan of `function`; `None` before [`derive`].
#[inline(always)]
pub fn of(function: Function) -> Option<&'static HookPlan> {
    ALL.get(usize::from(function.0))?.0.get()
}

/// As [`of`], once plans have been [derived](derive).
///
/// # Safety
/// They must have been, and `function` must be one of the table's.
#[inline(always)]
pub unsafe fn of_derived(function: Function) -> &'static HookPlan {
    debug_assert!(of(function).is_some());
    // SAFETY: the caller's promise.
    unsafe { ALL.get_unchecked(usize::from(function.0)).0.get().unwrap_unchecked() }
}

/// Prefetches the plan of `function`, which is to be called.
#[inline(always)]
pub fn fetch_of(function: Function) {
    fetch(&raw const ALL[usize::from(function.0)]);
}

/// Derives all plans, for a job with `shared`; returns the work for calls of each function while the agent is to cost
/// next to nothing.
pub fn derive(shared: &Shared) -> [FastPath; FUNCTION_COUNT] {
    std::array::from_fn(|index| {
        let function = Function(index as u16);
        let one = plan(function, &FUNCTIONS[index]);
        let observed = shared.observes(function);
        let partners = shared.partners.is_some();
        let marker = shared.marker().filter(|&(marker, _)| marker == function);
        let fast_path = match (one.fast_path, marker) {
            (FastPath::Counted, Some((_, false))) => FastPath::Marking,
            (FastPath::Counted, None) => FastPath::Counted,
            _ => FastPath::Never,
        };
        let plan = HookPlan {
            local: one.local && !observed,
            fast_path,
            ends: one.ends.filter(|_| partners),
            tells_partners: one.tells_partners && partners,
            short_way: match one.short_way {
                _ if observed || ((one.ends.is_some() || one.names_request) && partners) => ShortWay::None,
                way => way,
            },
            ..one
        };
        ALL[index].0.get_or_init(|| plan).fast_path
    })
}

fn plan(function: Function, spec: &'static FunctionSpec) -> HookPlan {
    let position =
        |found: &dyn Fn(&Param) -> bool| spec.params.iter().position(found).map(|index| index as u8);
    let request = position(&|param| param.kind == Kind::Request);
    let counts = |param: &Param| matches!(param.name, "count" | "incount");
    let array = request.is_some_and(|index| spec.params[usize::from(index)].length != Length::One);
    let waits = matches!(spec.class, Class::Nonblocking | Class::Completion | Class::Poll | Class::Start);
    let blocks = matches!(
        function.name(),
        "MPI_Barrier" | "MPI_Probe" | "MPI_Mprobe" | "MPI_Win_fence" | "MPI_Win_unlock" | "MPI_Win_complete"
    );
    let status = position(&|param| param.kind == Kind::Status && param.direction != Direction::In);
    let numbers = |p: &Param| p.direction == Direction::InOut && p.kind == Kind::Int;
    let in_out = spec.params.iter().any(|param| is_overwritten(param) || numbers(param));
    let counts_at_start = spec.class == Class::PersistentCollective
        || matches!(spec.traffic, Traffic::SendInit | Traffic::RecvInit);
    let makes_persistent = counts_at_start || spec.name.contains("_init");
    let gives = spec.params.iter().any(is_given) && function != ids::MPI_COMM_GET_PARENT;
    let ends_objects =
        spec.params.iter().any(|param| is_overwritten(param) && ObjectKind::of(param.kind).is_some());
    let names_request =
        request.is_some_and(|index| spec.params[usize::from(index)].direction != Direction::Out);
    // The program itself fills the statuses of the latter.
    let receives = !spec.name.starts_with("MPI_File") && !spec.name.starts_with("MPI_Status_");
    let passed = request.map(|index| spec.params[usize::from(index)].direction);
    let ends = matches!(spec.class, Class::Completion | Class::Poll) || function == ids::MPI_REQUEST_FREE;
    let completes = passed == Some(Direction::InOut) && ends;
    let has_message = matches!(spec.traffic, Traffic::Recv | Traffic::Sendrecv | Traffic::SendrecvReplace);
    let outcome = status.filter(|_| receives && (completes || has_message)).map(|index| {
        match spec.params[usize::from(index)].length {
            Length::One => Outcome::Message,
            _ => Outcome::Several,
        }
    });
    let steps = |takes: fn(&Param) -> bool, step: fn(&Param) -> Step| {
        let params = spec.params.iter().zip(0u8..).filter(move |(param, _)| takes(param));
        together(params.map(move |(param, index)| (index, step(param))).collect())
    };
    let (inputs, outputs) = (steps(is_input, input_step), steps(is_output, output_step));
    let telling = telling(&inputs).filter(|_| !asks_anew(spec.traffic));
    let told = match outputs[..] {
        [] | [(_, Step::RequestAfter)] => Outputs::Silent,
        [(index, Step::Value(kind))] if is_integer(kind) && telling.is_none_or(leaves_room) => {
            Outputs::Value(index)
        }
        _ => Outputs::Other,
    };
    let answer = match outputs[..] {
        [(_, Step::Status | Step::RequestAfter)] if has_message => position(&|param| param.name == "source")
            .zip(position(&|param| matches!(param.name, "tag" | "recvtag"))),
        _ => None,
    };
    let flag = match spec.class {
        Class::Poll => position(&|param| matches!(param.name, "flag" | "outcount")),
        _ => None,
    };
    let repeats = telling.is_some() && (told != Outputs::Other || answer.is_some() || flag.is_some());
    let asks = match inputs[..] {
        [(_, Step::Request)] => true,
        [(count, Step::Int), (at, Step::Other)] => {
            request == Some(at) && array && position(&counts) == Some(count)
        }
        _ => false,
    };
    let is_rare = matches!(spec.class, Class::Lifecycle | Class::CountOnly) || function == ids::MPI_PCONTROL;
    let short_way = match request {
        _ if is_rare || in_out || gives || function == ids::MPI_CANCEL => ShortWay::None,
        None if repeats => ShortWay::All,
        None => ShortWay::None,
        // The bytes of persistent ones count at their start.
        Some(_) if makes_persistent => ShortWay::None,
        Some(_) if !names_request && repeats && told == Outputs::Silent => ShortWay::Makes,
        Some(_) if asks && completes && flag.is_some() => ShortWay::Asks,
        Some(_) if names_request => ShortWay::Begins,
        Some(_) => ShortWay::None,
    };
    // The graphs' edge lists have that name too.
    let index = request.and_then(|_| position(&tells_request));
    let outcount = position(&|param| param.name == "outcount");
    HookPlan {
        class: spec.class,
        local: spec.class == Class::Local,
        operands: Operands::of(spec),
        ends: Ends::of(spec),
        tells_partners: Ends::of(spec).is_some() || names_request,
        request,
        request_count: if array { position(&counts) } else { None },
        status,
        receives,
        flag,
        names_request,
        completes,
        makes_persistent,
        makes_receive: matches!(spec.traffic, Traffic::Recv | Traffic::RecvInit | Traffic::Sendrecv)
            || spec.name.starts_with("MPI_Isendrecv")
            // What a generalized request's own function leaves out of a status is undefined.
            || function == ids::MPI_PRECV_INIT,
        in_out,
        gives,
        fast_path: match function {
            ids::MPI_REQUEST_FREE | ids::MPI_PCONTROL => FastPath::Never,
            _ if gives || makes_persistent || ends_objects => FastPath::Never,
            _ if matches!(spec.class, Class::Lifecycle | Class::CountOnly) => FastPath::Never,
            _ => FastPath::Counted,
        },
        prepares: names_request || in_out || (status.is_some() && receives) || function == ids::MPI_PCONTROL,
        communicates: waits || blocks || spec.traffic.is_message(),
        telling,
        outputs: told,
        short_way,
        answer,
        about: about(spec),
        rest: Box::leak(Box::new(Rest {
            request_by_value: !array && passed == Some(Direction::In),
            asks,
            names_memory: spec.params.iter().any(gives_address)
                || matches!(function.base_name(), "MPI_Free_mem" | "MPI_Win_attach" | "MPI_Win_detach"),
            inputs,
            outputs,
            outcome,
            index,
            outcount,
        })),
    }
}

/// Stands for the first index in [`HookPlan::about`] where a function has no such argument.
pub const NOT_ABOUT: u8 = u8::MAX;

/// Indices of the arguments in [`HookPlan::about`]. Readers know which of them a function has: an argument stands for
/// those that it has not.
fn about(spec: &FunctionSpec) -> [u8; 3] {
    let operands = Named::of(spec);
    let rank = |operand: Option<(u8, Role)>| operand.map(|(index, _)| index);
    let all = [rank(operands.peer), rank(operands.second).or(operands.tag), operands.comm];
    if all == [None; 3] { [NOT_ABOUT; 3] } else { all.map(|index| index.unwrap_or(0)) }
}

/// True where MPI is asked at every call for what the bytes depend on: a topology may have changed unseen.
fn asks_anew(traffic: Traffic) -> bool {
    matches!(traffic, Traffic::NeighborAllgather | Traffic::NeighborAlltoall)
}

/// True where MPI writes handles there that the program owns from then on. The handle of `MPI_Comm_get_parent` is
/// always the same one.
pub fn is_given(param: &Param) -> bool {
    param.direction == Direction::Out && param.kind != Kind::Request && ObjectKind::of(param.kind).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: Function) -> HookPlan {
        plan(function, function.spec())
    }

    #[test]
    fn parameters_are_where_the_standard_puts_them() {
        let waitall = of(ids::MPI_WAITALL);
        assert_eq!((waitall.request_count, waitall.request, waitall.status), (Some(0), Some(1), Some(2)));
        let test = of(ids::MPI_TEST);
        assert_eq!(
            (test.request, test.request_count, test.flag, test.status),
            (Some(0), None, Some(1), Some(2))
        );
        assert!(of(ids::MPI_COMM_FREE).in_out && !of(ids::MPI_WAIT).in_out);
        assert!(of(ids::MPI_REQUEST_FREE).names_request && !of(ids::MPI_ISEND).names_request);
        let completing = [ids::MPI_WAIT, ids::MPI_TESTSOME, ids::MPI_REQUEST_FREE];
        assert!(completing.into_iter().all(|function| of(function).completes));
        let others = [ids::MPI_START, ids::MPI_CANCEL, ids::MPI_REQUEST_GET_STATUS, ids::MPI_ISEND];
        assert!(!others.into_iter().any(|function| of(function).completes));
        assert_eq!(others.map(|function| of(function).rest.request_by_value), [false, false, true, false]);
        assert_eq!(of(ids::MPI_WAITANY).rest.index, Some(2));
        assert!(of(ids::MPI_PRECV_INIT).makes_receive && !of(ids::MPI_PSEND_INIT).makes_receive);
        assert!(!of(ids::MPI_COMM_RANK).communicates && of(ids::MPI_COMM_RANK).local);
        assert!(of(ids::MPI_SEND).communicates && !of(ids::MPI_SEND).local);
        let testsome = of(ids::MPI_TESTSOME);
        assert_eq!(
            (testsome.request_count, testsome.rest.outcount, testsome.rest.index),
            (Some(0), Some(2), Some(3))
        );
        for objects in
            [ids::MPI_COMM_DUP, ids::MPI_COMM_FREE, ids::MPI_SEND_INIT, ids::MPI_REQUEST_FREE, ids::MPI_ABORT]
        {
            assert_eq!(of(objects).fast_path, FastPath::Never, "{}", objects.name());
        }
        for traffic in
            [ids::MPI_ISEND, ids::MPI_WAITALL, ids::MPI_START, ids::MPI_ALLREDUCE, ids::MPI_COMM_RANK]
        {
            assert_eq!(of(traffic).fast_path, FastPath::Counted, "{}", traffic.name());
        }
        for (function, outcome) in [
            (ids::MPI_RECV, Some(Outcome::Message)),
            (ids::MPI_MRECV, Some(Outcome::Message)),
            (ids::MPI_SENDRECV_REPLACE, Some(Outcome::Message)),
            (ids::MPI_TESTANY, Some(Outcome::Message)),
            (ids::MPI_WAITSOME, Some(Outcome::Several)),
            (ids::MPI_TESTALL, Some(Outcome::Several)),
            (ids::MPI_IPROBE, None),
            (ids::MPI_IRECV, None),
            (ids::MPI_REQUEST_GET_STATUS, None),
            (ids::MPI_FILE_READ, None),
        ] {
            assert_eq!(of(function).rest.outcome, outcome, "{}", function.name());
        }
        assert!(of(ids::MPI_COMM_GROUP).gives && !of(ids::MPI_COMM_GET_PARENT).gives);
    }

    #[test]
    fn words_tell_all_of_calls_that_read_and_write_nothing_that_is_recorded() {
        for (function, words) in [
            (ids::MPI_SEND, 6),
            (ids::MPI_IRECV, 6),
            (ids::MPI_SEND_INIT, 6),
            (ids::MPI_ALLREDUCE, 6),
            (ids::MPI_ALLTOALL, 7),
            (ids::MPI_BARRIER, 1),
        ] {
            assert_eq!(
                (of(function).telling, of(function).outputs),
                (Some(words), Outputs::Silent),
                "{}",
                function.name()
            );
        }
        for (function, words, outputs) in [
            (ids::MPI_RECV, 6, Outputs::Other),
            (ids::MPI_IPROBE, 3, Outputs::Other),
            (ids::MPI_COMM_RANK, 1, Outputs::Value(1)),
            (ids::MPI_GET_ADDRESS, 1, Outputs::Other),
            (ids::MPI_COMM_DUP, 1, Outputs::Other),
        ] {
            assert_eq!(
                (of(function).telling, of(function).outputs),
                (Some(words), outputs),
                "{}",
                function.name()
            );
        }
        for (function, short) in [
            (ids::MPI_SEND, ShortWay::All),
            (ids::MPI_RECV, ShortWay::All),
            (ids::MPI_IPROBE, ShortWay::All),
            (ids::MPI_COMM_RANK, ShortWay::All),
            (ids::MPI_SENDRECV, ShortWay::All),
            (ids::MPI_SENDRECV_REPLACE, ShortWay::All),
            (ids::MPI_ALLREDUCE, ShortWay::All),
            (ids::MPI_ISEND, ShortWay::Makes),
            (ids::MPI_SEND_INIT, ShortWay::None),
            (ids::MPI_TEST, ShortWay::Asks),
            (ids::MPI_TESTALL, ShortWay::Asks),
            (ids::MPI_TESTSOME, ShortWay::Asks),
            (ids::MPI_TESTANY, ShortWay::Asks),
            (ids::MPI_WAITALL, ShortWay::Begins),
            (ids::MPI_WAIT, ShortWay::Begins),
            (ids::MPI_COMM_DUP, ShortWay::None),
            (ids::MPI_PCONTROL, ShortWay::None),
            (ids::MPI_FINALIZE, ShortWay::None),
            (ids::MPI_ALLTOALLV, ShortWay::None),
        ] {
            assert_eq!(of(function).short_way, short, "{}", function.name());
        }
        for function in [
            ids::MPI_WAIT,
            ids::MPI_START,
            ids::MPI_ALLTOALLV,
            ids::MPI_INFO_SET,
            ids::MPI_NEIGHBOR_ALLGATHER,
            ids::MPI_INEIGHBOR_ALLTOALL,
        ] {
            assert_eq!(of(function).telling, None, "{}", function.name());
        }
    }

    #[test]
    fn common_arguments_have_a_step_of_their_own() {
        let send = of(ids::MPI_SEND);
        let steps: Vec<Step> = send.rest.inputs.iter().map(|&(_, step)| step).collect();
        let comm = Step::Handle(Kind::Comm, ObjectKind::Comm);
        assert_eq!(steps, [Step::Block, Step::Envelope]);
        assert!(send.rest.outputs.is_empty());
        let gather = of(ids::MPI_GATHER);
        assert_eq!(gather.rest.inputs[..], [(0, Step::Block), (3, Step::Block), (6, Step::Rank), (7, comm)]);
        let sendrecv = of(ids::MPI_SENDRECV_REPLACE);
        let (rank, tag) = (Step::Rank, Step::Tag);
        let expected = [(0, Step::Block), (3, rank), (4, tag), (5, Step::Envelope)];
        assert_eq!(sendrecv.rest.inputs[..], expected);
        let allocate = of(ids::MPI_ALLOC_MEM);
        assert_eq!(allocate.rest.inputs.last(), Some(&(2, Step::AddressAfter)));
        let wait = of(ids::MPI_WAIT);
        assert_eq!(wait.rest.inputs[..], [(0, Step::Request)]);
        assert_eq!(wait.rest.outputs[..], [(0, Step::RequestAfter), (1, Step::Status)]);
    }
}
