//! Steps by which a call's arguments get into its record.

use ampl_agent::repeats::MOST_WORDS;
use ampl_core::mpi::{Kind, Length, Param};
use ampl_core::value::ObjectKind;
use ampl_trace::args::{Shape, gives_address, is_overwritten, shape};

/// How one argument gets into the record, or three that often come together.
// The discriminant by itself: steps are compared without arithmetic.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A buffer's address, an `int` and a datatype.
    Block,
    /// A rank, a tag and a communicator.
    Envelope,
    /// The word as it is.
    Word,
    /// An `int` passed by value.
    Int,
    /// A rank passed by value.
    Rank,
    /// A tag passed by value.
    Tag,
    /// A buffer's address.
    Buffer,
    /// Another address.
    Address,
    /// The address that the call has written behind its own.
    AddressAfter,
    /// A handle passed by value.
    Handle(Kind, ObjectKind),
    /// The request that the call is about.
    Request,
    /// One request behind its address, after the call.
    RequestAfter,
    /// One status behind its address.
    Status,
    /// One value behind its address, after the call, which is no handle and no index of a request.
    Value(Kind),
    /// Anything else: worked out at the call.
    Other,
}

/// The same steps, arguments that often come together as one.
pub fn together(steps: Vec<(u8, Step)>) -> Box<[(u8, Step)]> {
    const BLOCK: [Step; 3] = [Step::Buffer, Step::Int, Step::Handle(Kind::Datatype, ObjectKind::Type)];
    const ENVELOPE: [Step; 3] = [Step::Rank, Step::Tag, Step::Handle(Kind::Comm, ObjectKind::Comm)];
    let (mut left, mut fewer) = (&steps[..], Vec::new());
    while let Some((&(index, step), rest)) = left.split_first() {
        // Parameters without a gap between them: an output there would have a place in another part.
        let three = left.first_chunk::<3>().filter(|three| three[2].0 == index + 2);
        let one = three.and_then(|three| match three.map(|(_, step)| step) {
            BLOCK => Some(Step::Block),
            ENVELOPE => Some(Step::Envelope),
            _ => None,
        });
        fewer.push((index, one.unwrap_or(step)));
        left = if one.is_some() { &left[3..] } else { rest };
    }
    fewer.into()
}

pub fn input_step(param: &Param) -> Step {
    if shape(param) != Shape::Scalar || is_overwritten(param) {
        return match param.kind {
            Kind::Request if shape(param) == Shape::Scalar => Step::Request,
            _ => Step::Other,
        };
    }
    match param.kind {
        Kind::Request => Step::Request,
        _ if gives_address(param) => Step::AddressAfter,
        _ if param.length == Length::Unknown => Step::Address,
        Kind::Int | Kind::Logical => Step::Int,
        Kind::Rank => Step::Rank,
        Kind::Tag => Step::Tag,
        Kind::Buffer => Step::Buffer,
        Kind::Address => Step::Address,
        Kind::Count | Kind::Aint | Kind::Offset => Step::Word,
        kind => ObjectKind::of(kind).map_or(Step::Other, |object| Step::Handle(kind, object)),
    }
}

pub fn output_step(param: &Param) -> Step {
    match (shape(param), param.length, param.kind) {
        (Shape::Scalar, Length::Unknown, _) => Step::Address,
        (_, _, Kind::Attribute) => Step::Other,
        (Shape::Scalar, _, Kind::Request) => Step::RequestAfter,
        (Shape::Scalar, _, Kind::Status) => Step::Status,
        (Shape::Scalar, _, kind) if ObjectKind::of(kind).is_none() && !tells_request(param) => {
            Step::Value(kind)
        }
        _ => Step::Other,
    }
}

/// True for an output with the indices of completed requests, if the call has requests.
pub fn tells_request(param: &Param) -> bool {
    matches!(param.name, "index" | "array_of_indices")
}

/// Number of words as in [`HookPlan::telling`].
pub fn telling(inputs: &[(u8, Step)]) -> Option<u8> {
    let mut words = 0;
    for &(index, step) in inputs {
        let width = match step {
            Step::Block | Step::Envelope => 3,
            Step::Word
            | Step::Int
            | Step::Rank
            | Step::Tag
            | Step::Buffer
            | Step::Address
            | Step::Handle(..) => 1,
            _ => return None,
        };
        words = if index == words { words + width } else { return None };
    }
    (usize::from(words) <= MOST_WORDS).then_some(words)
}
