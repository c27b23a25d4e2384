//! Effects of calls on communicators and groups.

use ampl_core::mpi::{Direction, Function, Kind, PREDEFINED, Param, ids};
use ampl_core::value::UNDEFINED;

use crate::args::{index_of_predefined, inputs, is_predefined, own_words, parts, place};
use crate::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP, PLACE_WORDS};
use crate::structure::Signature;

/// Way in which a communicator is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// By duplication of the parent, at once or later.
    Dup,
    /// By colour and key.
    Split,
    /// By shared resources, and key.
    SplitType,
    /// Of a group, in a call of all of the parent.
    Create,
    /// Of a group, in a call of that group.
    CreateGroup,
    /// A grid.
    Cart,
    /// The sub-grids of a grid.
    CartSub,
    /// A graph.
    Graph,
    /// A graph that no process knows all of.
    DistGraph,
    /// Between the groups of two communicators.
    Between,
    /// Both groups of an intercommunicator.
    Merge,
    /// By means that this job's calls do not record: its members are not known.
    Elsewhere,
}

/// Way in which a group is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derive {
    /// Group of a communicator; of an intercommunicator the caller's.
    Of,
    /// Remote group of an intercommunicator.
    Remote,
    /// The ranks listed.
    Pick,
    /// All but the ranks listed.
    Drop,
    /// The ranks in the ranges listed.
    PickRanges,
    /// All but the ranks in the ranges listed.
    DropRanges,
    /// The first group, then the rest of the second.
    Union,
    /// Ranks of the first group that are in the second.
    Common,
    /// Ranks of the first group that are not in the second.
    Without,
    /// By means that calls do not record.
    Elsewhere,
}

/// Effect of a function on communicators and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Makes a communicator.
    Makes(Way),
    /// Makes a group.
    Derives(Derive),
    /// Frees a communicator.
    Frees,
    /// Frees a group.
    FreesGroup,
    /// Returns the size of a communicator.
    TellsSize,
    /// Returns the caller's rank in it.
    TellsNumber,
    /// Returns the size of the remote group of an intercommunicator.
    TellsRemote,
}

/// Effect of `function` on communicators and groups; `None` if it has none.
pub fn does(function: u16) -> Option<Does> {
    use Does::*;
    Some(match Function(function) {
        ids::MPI_COMM_DUP
        | ids::MPI_COMM_DUP_WITH_INFO
        | ids::MPI_COMM_IDUP
        | ids::MPI_COMM_IDUP_WITH_INFO => Makes(Way::Dup),
        ids::MPI_COMM_SPLIT => Makes(Way::Split),
        ids::MPI_COMM_SPLIT_TYPE => Makes(Way::SplitType),
        ids::MPI_COMM_CREATE => Makes(Way::Create),
        ids::MPI_COMM_CREATE_GROUP => Makes(Way::CreateGroup),
        ids::MPI_CART_CREATE => Makes(Way::Cart),
        ids::MPI_CART_SUB => Makes(Way::CartSub),
        ids::MPI_GRAPH_CREATE => Makes(Way::Graph),
        ids::MPI_DIST_GRAPH_CREATE | ids::MPI_DIST_GRAPH_CREATE_ADJACENT => Makes(Way::DistGraph),
        ids::MPI_INTERCOMM_CREATE => Makes(Way::Between),
        ids::MPI_INTERCOMM_MERGE => Makes(Way::Merge),
        ids::MPI_COMM_ACCEPT
        | ids::MPI_COMM_CONNECT
        | ids::MPI_COMM_CREATE_FROM_GROUP
        | ids::MPI_COMM_GET_PARENT
        | ids::MPI_COMM_JOIN
        | ids::MPI_COMM_SPAWN
        | ids::MPI_COMM_SPAWN_MULTIPLE
        | ids::MPI_INTERCOMM_CREATE_FROM_GROUPS => Makes(Way::Elsewhere),
        ids::MPI_COMM_GROUP => Derives(Derive::Of),
        ids::MPI_COMM_REMOTE_GROUP => Derives(Derive::Remote),
        ids::MPI_GROUP_INCL => Derives(Derive::Pick),
        ids::MPI_GROUP_EXCL => Derives(Derive::Drop),
        ids::MPI_GROUP_RANGE_INCL => Derives(Derive::PickRanges),
        ids::MPI_GROUP_RANGE_EXCL => Derives(Derive::DropRanges),
        ids::MPI_GROUP_UNION => Derives(Derive::Union),
        ids::MPI_GROUP_INTERSECTION => Derives(Derive::Common),
        ids::MPI_GROUP_DIFFERENCE => Derives(Derive::Without),
        ids::MPI_FILE_GET_GROUP | ids::MPI_GROUP_FROM_SESSION_PSET | ids::MPI_WIN_GET_GROUP => {
            Derives(Derive::Elsewhere)
        }
        ids::MPI_COMM_DISCONNECT | ids::MPI_COMM_FREE => Frees,
        ids::MPI_GROUP_FREE => FreesGroup,
        ids::MPI_COMM_SIZE => TellsSize,
        ids::MPI_COMM_RANK => TellsNumber,
        ids::MPI_COMM_REMOTE_SIZE => TellsRemote,
        _ => return None,
    })
}

/// Weight of a call for following communicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// No effect.
    None,
    /// Reports a fact about a communicator, the same however often it is called.
    Tells,
    /// Makes or frees an object: every call counts, and its position.
    Acts,
}

/// Weight of `function`.
pub fn weight(function: u16) -> Weight {
    match does(function) {
        _ if function == GAP => Weight::Acts,
        None => Weight::None,
        Some(Does::TellsSize | Does::TellsNumber | Does::TellsRemote) => Weight::Tells,
        Some(_) => Weight::Acts,
    }
}

/// A call that matters, as its words have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index in the function table.
    pub function: u16,
    /// Its effect.
    pub does: Does,
    /// Words of the communicators, then of the groups that it is given.
    pub given: Vec<u64>,
    /// Its numbers: colour and key, dimensions, ranks.
    pub numbers: Vec<i64>,
    /// The word of what it makes or frees; `None` where it failed.
    pub object: Option<u64>,
    /// The caller's place in the communicator that it makes, where that is recorded with the call.
    pub place: Option<[u64; PLACE_WORDS]>,
}

impl Call {
    /// The word of what it makes, unless that is predefined (a null handle, the empty group).
    pub fn made(&self) -> Option<u64> {
        self.object.filter(|&word| !is_predefined(word))
    }
}

/// Result of reading a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A call whose effect is known.
    Known(Call),
    /// A call whose effect is unknown: calls were only counted, or it is not recorded.
    Lost,
    /// A call that does not matter.
    Nothing,
}

/// The call that `signature` stands for.
pub fn read(signature: &Signature) -> Read {
    if signature.function == GAP {
        return Read::Lost;
    }
    let Some(does) = does(signature.function) else { return Read::Nothing };
    let matters = weight(signature.function) == Weight::Acts;
    let unknown = if matters { Read::Lost } else { Read::Nothing };
    if signature.flags & (CALL_NO_ARGS | CALL_UNFINISHED | CALL_MISS) != 0 {
        return unknown;
    }
    let spec = Function(signature.function).spec();
    let failed = signature.flags & CALL_ERROR != 0;
    let Some(words) = own_words(signature.flags, &signature.words) else { return unknown };
    let parts = match failed {
        false => parts(spec, words),
        // The error's code comes first, and outputs are not there.
        true => words.split_first().and_then(|(_, words)| inputs(spec, &mut { words })),
    };
    let Some(parts) = parts else { return unknown };
    let mut call = Call {
        function: signature.function,
        does,
        given: Vec::new(),
        numbers: Vec::new(),
        object: None,
        place: place(signature.flags, &signature.words),
    };
    let mut groups = Vec::new();
    let mut overwritten = None;
    for (index, (param, words)) in parts.iter().enumerate() {
        let again = parts[..index].iter().any(|(before, _)| std::ptr::eq(*before, *param));
        match (param.kind, param.direction) {
            (Kind::Comm | Kind::Group, Direction::InOut) if again => {
                // The object before has been freed, if another word stands there now.
                call.object = overwritten.filter(|before| Some(before) != words.first());
            }
            (Kind::Comm | Kind::Group, Direction::InOut) => overwritten = words.first().copied(),
            (Kind::Comm | Kind::Group, Direction::Out) => call.object = words.first().copied(),
            (Kind::Comm, _) => call.given.extend(*words),
            (Kind::Group, _) => groups.extend(*words),
            _ if tells(param) => call.numbers.extend(words.iter().map(|&word| word as i64)),
            _ => {}
        }
    }
    call.given.append(&mut groups);
    Read::Known(call)
}

/// True where the numbers of `param` describe the members of a communicator or group, or their order.
fn tells(param: &Param) -> bool {
    const NAMES: [&str; 15] = [
        "color",
        "split_type",
        "key",
        "tag",
        "reorder",
        "dims",
        "nnodes",
        "remain_dims",
        "local_leader",
        "remote_leader",
        "high",
        "ranks",
        "ranges",
        "size",
        "rank",
    ];
    NAMES.contains(&param.name)
}

/// True where a colour or type is `MPI_UNDEFINED`.
pub fn is_undefined(number: i64) -> bool {
    number == UNDEFINED
}

/// The name of a predefined object that a word stands for.
pub fn predefined(word: u64) -> Option<&'static str> {
    PREDEFINED.get(index_of_predefined(word)?).map(|&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::FUNCTIONS;

    /// One that is added to the table must be read, or it would be taken for one that makes nothing.
    #[test]
    fn every_function_that_gives_or_takes_a_communicator_or_group_is_known() {
        for (function, spec) in (0..).zip(FUNCTIONS) {
            let changes = |kind| {
                let mine = spec.params.iter().filter(|param| param.kind == kind);
                mine.map(|param| param.direction).find(|&direction| direction != Direction::In)
            };
            let expected = match (changes(Kind::Comm), changes(Kind::Group)) {
                (Some(Direction::Out), None) => matches!(does(function), Some(Does::Makes(_))),
                (None, Some(Direction::Out)) => matches!(does(function), Some(Does::Derives(_))),
                (Some(Direction::InOut), None) => does(function) == Some(Does::Frees),
                (None, Some(Direction::InOut)) => does(function) == Some(Does::FreesGroup),
                (None, None) => weight(function) != Weight::Acts,
                _ => false,
            };
            assert!(expected, "{}", spec.name);
        }
    }

    #[test]
    fn calls_are_read() {
        let signature = |name: &str, flags, words: &[u64]| {
            let function = Function::by_name(name).unwrap().0;
            Signature { function, flags, site: 0, path: 0, words: words.to_vec() }
        };
        let split = |flags, words: &[u64]| read(&signature("MPI_Comm_split", flags, words));
        let Read::Known(call) = split(0, &[3, 7, u64::MAX, 5]) else { panic!("it can be read") };
        assert_eq!((&call.given[..], &call.numbers[..], call.made()), (&[3][..], &[7, -1][..], Some(5)));
        let Read::Known(call) = split(CALL_ERROR, &[13, 3, 7, 1]) else { panic!("it can be read") };
        assert_eq!((&call.given[..], &call.numbers[..], call.made()), (&[3][..], &[7, 1][..], None));
        assert_eq!(split(CALL_NO_ARGS, &[]), Read::Lost);
        assert_eq!(split(0, &[3]), Read::Lost);
        let null = crate::args::predefined_word(0);
        let free = |words: &[u64]| match read(&signature("MPI_Comm_free", 0, words)) {
            Read::Known(call) => call.made(),
            _ => panic!("it can be read"),
        };
        assert_eq!((free(&[4, null]), free(&[4, 4])), (Some(4), None));
        let Read::Known(call) = read(&signature("MPI_Group_range_incl", 0, &[6, 1, 3, 9, 0, u64::MAX, 8]))
        else {
            panic!("it can be read")
        };
        assert_eq!((&call.given[..], &call.numbers[..], call.made()), (&[6][..], &[9, 0, -1][..], Some(8)));
        let Read::Known(call) = read(&signature("MPI_Cart_create", 0, &[3, 2, 2, 4, 2, 2, 0, 1, 1, 9]))
        else {
            panic!("it can be read")
        };
        assert_eq!((&call.numbers[..], call.made()), (&[4, 2, 1][..], Some(9)));
        assert_eq!(read(&signature("MPI_Barrier", 0, &[3])), Read::Nothing);
    }
}
