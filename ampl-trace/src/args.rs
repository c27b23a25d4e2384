//! Arguments of a call as words, and words as values: the one encoding that the agent writes and
//! every reader decodes, driven by the function table.
//!
//! Entry part: every `In` and `InOut` parameter and every address in order. Exit part: every other
//! `Out` and `InOut` parameter in order, absent after a failed poll, and after an error unless it is that of a
//! message. A scalar is one word; an array is its length and its elements; text is its byte count and packed bytes.

use ampl_core::mpi::{Direction, FunctionSpec, Kind, Length, PREDEFINED, Param};
use ampl_core::value::{ObjectKind, UNDEFINED, Value, rank_value, tag_value};

use crate::places::may_vary;
use crate::record::{
    CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_OUTCOME, CALL_PLACE, CALL_UNFINISHED, PLACE_WORDS, get_text,
    put_text, text_words,
};
use crate::spread::{SPREAD, SPREAD_WORDS, spread};

/// A buffer word: `MPI_IN_PLACE`.
pub const IN_PLACE: u64 = u64::MAX;
/// The length of an array or text whose address was null or a sentinel.
pub const NO_ARRAY: u64 = u64::MAX;
/// The status word where the program passed none and none was substituted.
pub const NO_STATUS: u64 = 0x8000_0000_8000_0000;

/// The handle word of the predefined object of that index in [`PREDEFINED`]: a small negative number, which a
/// trace stores in a byte or two. Words of other handles are the number of an object the program made.
pub fn predefined_word(index: u16) -> u64 {
    !u64::from(index)
}

/// True where a handle word names a predefined object.
#[inline]
pub fn is_predefined(word: u64) -> bool {
    word >> 63 != 0
}

/// The index in [`PREDEFINED`] that a handle word names, if it names a predefined object.
pub fn index_of_predefined(word: u64) -> Option<usize> {
    let index = match word >> 62 {
        0b11 => !word,
        _ => return None,
    };
    Some(index as usize)
}

/// A status word.
pub fn status_word(source: i32, tag: i32) -> u64 {
    u64::from(source as u32) << 32 | u64::from(tag as u32)
}

fn source_and_tag(word: u64) -> (i64, i64) {
    (i64::from((word >> 32) as u32 as i32), i64::from(word as u32 as i32))
}

/// Layout of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One word.
    Scalar,
    /// Length and elements.
    Array,
    /// Byte count and packed bytes.
    Text,
}

/// The layout of `param`.
pub fn shape(param: &Param) -> Shape {
    match (param.kind, param.length) {
        (Kind::String, _) => Shape::Text,
        _ if is_opaque(param) => Shape::Scalar,
        (_, Length::One | Length::Unknown) => Shape::Scalar,
        _ => Shape::Array,
    }
}

/// True where `param` is an array of numbers that the caller passes: of these a [`Spread`](ampl_core::value::Spread) may be stored.
pub fn may_be_spread(param: &Param) -> bool {
    let is_number = matches!(param.kind, Kind::Int | Kind::Count | Kind::Aint);
    is_number && param.direction == Direction::In && shape(param) == Shape::Array
}

/// True where only the address is recorded: the contents of a buffer are the application's business.
pub fn is_opaque(param: &Param) -> bool {
    matches!(param.kind, Kind::Buffer | Kind::Address)
}

/// True where `param` is in the entry part.
pub fn is_input(param: &Param) -> bool {
    param.direction != Direction::Out || is_opaque(param)
}

/// True where MPI writes an address behind that parameter. Its word is in the entry part, as every address is, and 0
/// where nothing was written.
pub fn gives_address(param: &Param) -> bool {
    param.kind == Kind::Address && param.direction == Direction::Out
}

/// True where `param` is in the exit part.
pub fn is_output(param: &Param) -> bool {
    param.direction != Direction::In && !is_opaque(param)
}

/// True where `param` is a single value, no request, that MPI reads and overwrites: its value before the call must be
/// noted then.
pub fn is_overwritten(param: &Param) -> bool {
    param.direction == Direction::InOut
        && param.length == Length::One
        && param.kind != Kind::Request
        && !is_opaque(param)
}

/// Named values in the order of the parameters.
pub type Named = Vec<(&'static str, Value)>;

/// Meaning of words that are not the same on every rank.
pub trait Names {
    /// Value that the word of a [place](crate::places) stands for.
    fn place(&self, word: u64) -> Value;
    /// The name of a request: a number from 1.
    fn request(&mut self, word: u64) -> u64;
    /// Value of a communicator that the program made, by its word.
    fn comm(&self, word: u64) -> Value {
        Value::Object(ObjectKind::Comm, word)
    }
}

/// The arguments and the outputs in `words`, recorded with `flags`; `None` if the words do not fit the table.
pub fn decode(
    spec: &'static FunctionSpec,
    flags: u8,
    words: &[u64],
    names: &mut dyn Names,
) -> Option<(Named, Named)> {
    if flags & CALL_NO_ARGS != 0 {
        return words.is_empty().then(Default::default);
    }
    let mut at = own_words(flags, words)?;
    let (mut inputs, mut given) = (Vec::new(), Vec::new());
    for param in spec.params.iter().filter(|param| is_input(param)) {
        let value = take(param, &mut at, names)?;
        if gives_address(param) { given.push(value) } else { inputs.push((param.name, value)) }
    }
    let (mut outputs, mut given) = (Vec::new(), given.into_iter());
    if flags & CALL_MISS != 0 {
        outputs.extend(spec.params.iter().filter_map(|param| match param.name {
            "flag" => Some(("flag", Value::Bool(false))),
            "outcount" => Some(("outcount", Value::Int(0))),
            _ => None,
        }));
    } else if flags & CALL_OUTCOME != 0 || flags & (CALL_ERROR | CALL_UNFINISHED) == 0 {
        for param in spec.params.iter().filter(|param| is_output(param) || gives_address(param)) {
            let value = if gives_address(param) {
                given.next()?
            } else if flags & CALL_OUTCOME != 0 && is_several_statuses(param) {
                take_outcomes(&mut at)?
            } else {
                take(param, &mut at, names)?
            };
            outputs.push((param.name, value));
        }
    }
    if outputs.contains(&("flag", Value::Bool(false))) {
        // A query that found nothing has written nothing else.
        let unwritten = spec.params.iter().filter(|param| param.kind == Kind::Attribute);
        for param in unwritten {
            outputs.iter_mut().filter(|(name, _)| *name == param.name).for_each(|(_, value)| {
                *value = Value::Absent;
            });
        }
    }
    at.is_empty().then_some((inputs, outputs))
}

/// The words of arguments and outputs, without those of the caller's [place](CALL_PLACE) behind them.
pub fn own_words(flags: u8, words: &[u64]) -> Option<&[u64]> {
    if flags & CALL_PLACE == 0 { Some(words) } else { Some(words.split_last_chunk::<PLACE_WORDS>()?.0) }
}

/// The caller's [place](CALL_PLACE): size of the communicator, its rank there, the world's rank of its rank 0.
pub fn place(flags: u8, words: &[u64]) -> Option<[u64; PLACE_WORDS]> {
    if flags & CALL_PLACE == 0 { None } else { words.last_chunk().copied() }
}

/// True where `param` is an array of statuses.
pub fn is_several_statuses(param: &Param) -> bool {
    param.kind == Kind::Status && shape(param) == Shape::Array
}

/// Statuses, each with its error code behind it.
fn take_outcomes(at: &mut &[u64]) -> Option<Value> {
    let (&length, rest) = at.split_first()?;
    if length == NO_ARRAY {
        *at = rest;
        return Some(Value::Absent);
    }
    let words = usize::try_from(length).ok()?.checked_mul(2)?;
    let (pairs, behind) = rest.split_at_checked(words)?;
    *at = behind;
    let outcome = |&[status, error]: &[u64; 2]| {
        let told = (status != NO_STATUS).then(|| source_and_tag(status));
        Value::Outcome { told, error: error as i64 }
    };
    Some(Value::List(pairs.as_chunks().0.iter().map(outcome).collect()))
}

/// The words of each parameter in `words`, which a call of `spec` left that succeeded: inputs in their order, then
/// outputs; what is read and overwritten is there twice. An array is its elements, and none where there was none or a
/// [`Spread`](ampl_core::value::Spread) is stored.
/// `None` if the words do not fit the table.
pub fn parts<'a>(spec: &'static FunctionSpec, words: &'a [u64]) -> Option<Vec<(&'static Param, &'a [u64])>> {
    let mut at = words;
    let mut parts = inputs(spec, &mut at)?;
    for param in spec.params.iter().filter(|param| is_output(param)) {
        parts.push((param, part(param, &mut at)?.elements()));
    }
    at.is_empty().then_some(parts)
}

/// The words of a call of `spec` with other texts in them: each is what `of` makes of it. `words` stand behind an error's
/// code, as in [`decode`]. `None` if they do not fit the table.
pub fn with_texts(
    spec: &'static FunctionSpec,
    flags: u8,
    words: &[u64],
    mut of: impl FnMut(&str) -> String,
) -> Option<Vec<u64>> {
    let mut changed = Vec::with_capacity(words.len());
    let behind = each_part(spec, flags, words, |param, stored| {
        // A length alone says that there is no text.
        match stored {
            [NO_ARRAY] => changed.push(NO_ARRAY),
            text if shape(param) == Shape::Text => put_text(&mut changed, &of(&get_text(text)?.0)),
            other => changed.extend_from_slice(other),
        }
        Some(())
    })?;
    changed.extend_from_slice(behind);
    Some(changed)
}

/// The words of a call of `spec` with `other` in them for each place that [may vary](may_vary) among calls with one
/// signature. `words` stand behind an error's code, as in [`decode`]. `None` if they do not fit the table.
pub fn with_places(spec: &'static FunctionSpec, flags: u8, words: &[u64], other: u64) -> Option<Vec<u64>> {
    let mut changed = Vec::with_capacity(words.len());
    let behind = each_part(spec, flags, words, |param, stored| {
        let is_place = is_opaque(param) || (shape(param) == Shape::Scalar && param.length == Length::Unknown);
        match stored {
            &[word] if is_place && may_vary(word) => changed.push(other),
            others => changed.extend_from_slice(others),
        }
        Some(())
    })?;
    changed.extend_from_slice(behind);
    Some(changed)
}

/// Passes each parameter of a call of `spec` to `each`, with the words that store it, a length among them, in their order;
/// returns the words behind all. `None` if the words do not fit the table, or `each` returns that.
fn each_part<'a>(
    spec: &'static FunctionSpec,
    flags: u8,
    words: &'a [u64],
    mut each: impl FnMut(&'static Param, &'a [u64]) -> Option<()>,
) -> Option<&'a [u64]> {
    let mut at = own_words(flags, words)?;
    let behind = &words[at.len()..];
    let outputs =
        flags & CALL_OUTCOME != 0 || flags & (CALL_MISS | CALL_NO_ARGS | CALL_ERROR | CALL_UNFINISHED) == 0;
    let inputs = spec.params.iter().filter(|param| is_input(param) && flags & CALL_NO_ARGS == 0);
    for param in inputs.chain(spec.params.iter().filter(|param| is_output(param) && outputs)) {
        let before = at;
        if flags & CALL_OUTCOME != 0 && is_several_statuses(param) {
            take_outcomes(&mut at)?;
        } else {
            part(param, &mut at)?;
        }
        each(param, &before[..before.len() - at.len()])?;
    }
    at.is_empty().then_some(behind)
}

/// As [`parts`], of inputs only, which are taken off `at`.
pub fn inputs<'a>(
    spec: &'static FunctionSpec,
    at: &mut &'a [u64],
) -> Option<Vec<(&'static Param, &'a [u64])>> {
    let inputs = spec.params.iter().filter(|param| is_input(param));
    inputs.map(|param| Some((param, part(param, at)?.elements()))).collect()
}

/// Words that are stored of a parameter.
enum Part<'a> {
    /// Its word, its text, or the elements of an array.
    Words(&'a [u64]),
    /// The spread of an array.
    Spread(&'a [u64]),
    /// No array or text was passed.
    Absent,
}

impl<'a> Part<'a> {
    /// Words that are stored of each element.
    fn elements(self) -> &'a [u64] {
        if let Self::Words(words) = self { words } else { &[] }
    }
}

/// Takes the words of `param` off `at`.
fn part<'a>(param: &Param, at: &mut &'a [u64]) -> Option<Part<'a>> {
    let (&first, rest) = at.split_first()?;
    let (from, length) = match shape(param) {
        Shape::Scalar => (*at, 1),
        _ if first == NO_ARRAY => {
            *at = rest;
            return Some(Part::Absent);
        }
        Shape::Array if first == SPREAD => {
            let (words, rest) = rest.split_at_checked(SPREAD_WORDS)?;
            *at = rest;
            return Some(Part::Spread(words));
        }
        Shape::Text => (*at, text_words(at)?),
        Shape::Array => (rest, usize::try_from(first).ok()?),
    };
    let (words, rest) = from.split_at_checked(length)?;
    *at = rest;
    Some(Part::Words(words))
}

fn take(param: &Param, at: &mut &[u64], names: &mut dyn Names) -> Option<Value> {
    let words = match part(param, at)? {
        Part::Absent => return Some(Value::Absent),
        Part::Spread(words) => return spread(words).map(Value::Spread),
        Part::Words(words) => words,
    };
    Some(match shape(param) {
        Shape::Scalar if gives_address(param) && words[0] == 0 => Value::Absent,
        Shape::Scalar => {
            let kind = if param.length == Length::Unknown { Kind::Address } else { param.kind };
            value(kind, words[0], names)
        }
        Shape::Text => Value::Text(get_text(words)?.0),
        Shape::Array => Value::List(words.iter().map(|&word| value(param.kind, word, names)).collect()),
    })
}

fn value(kind: Kind, word: u64, names: &mut dyn Names) -> Value {
    let number = word as i64;
    match kind {
        Kind::Int | Kind::Count | Kind::Aint | Kind::Offset => Value::Int(number),
        Kind::Logical => Value::Bool(word != 0),
        Kind::Double => Value::Double(f64::from_bits(word)),
        Kind::Rank => rank_value(number),
        Kind::Tag => tag_value(number),
        Kind::IntOrUndefined if number == UNDEFINED => Value::Name("MPI_UNDEFINED".into()),
        Kind::IntOrUndefined => Value::Int(number),
        Kind::Status if word == NO_STATUS => Value::Absent,
        Kind::Status => {
            let (source, tag) = source_and_tag(word);
            Value::Status { source, tag }
        }
        Kind::Buffer if word == IN_PLACE => Value::Name("MPI_IN_PLACE".into()),
        Kind::Buffer if word == 0 => Value::Name("MPI_BOTTOM".into()),
        Kind::Buffer | Kind::Address => names.place(word),
        Kind::Attribute | Kind::String => Value::Address(word),
        Kind::Request if !is_predefined(word) => Value::Object(ObjectKind::Request, names.request(word)),
        Kind::Comm if !is_predefined(word) => names.comm(word),
        _ => handle(kind, word),
    }
}

fn handle(kind: Kind, word: u64) -> Value {
    let object = ObjectKind::of(kind).expect("every other kind is a handle");
    let Some(index) = index_of_predefined(word) else { return Value::Object(object, word) };
    match PREDEFINED.get(index) {
        Some(&(_, "MPI_COMM_WORLD")) => Value::Name("world".into()),
        Some(&(_, "MPI_COMM_SELF")) => Value::Name("self".into()),
        Some(&(_, name)) => Value::Name(name.into()),
        None => Value::Name(format!("{}:?", object.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::Function;

    /// Every word is its own name.
    struct Same;

    impl Names for Same {
        fn place(&self, word: u64) -> Value {
            Value::Address(word)
        }
        fn request(&mut self, word: u64) -> u64 {
            word
        }
    }

    fn decode(spec: &'static FunctionSpec, flags: u8, words: &[u64]) -> Option<(Named, Named)> {
        super::decode(spec, flags, words, &mut Same)
    }

    #[test]
    fn predefined_objects_are_read_as_they_are_written() {
        let index = PREDEFINED.iter().position(|&(_, name)| name == "MPI_COMM_SELF").unwrap() as u16;
        let size = Function::by_name("MPI_Comm_size").unwrap().spec();
        let word = predefined_word(index);
        assert!(is_predefined(word));
        let (args, _) = decode(size, CALL_ERROR, &[word]).unwrap();
        assert_eq!(args, [("comm", Value::Name("self".into()))]);
        let (args, _) = decode(size, CALL_ERROR, &[7]).unwrap();
        assert_eq!(args, [("comm", Value::Object(ObjectKind::Comm, 7))]);
        assert!(!is_predefined(7));
    }

    #[test]
    fn texts_are_changed_and_nothing_else() {
        let open = Function::by_name("MPI_File_open").unwrap().spec();
        let info = predefined_word(PREDEFINED.len() as u16 - 1);
        let words = |name: &str, file: &[u64], behind: &[u64]| {
            let mut words = vec![5];
            put_text(&mut words, name);
            words.extend([9, info]);
            [&words[..], file, behind].concat()
        };
        let longer = |text: &str| format!("{text} and more");
        let place = CALL_PLACE;
        for (flags, file, behind) in [
            (0, &[7][..], &[][..]),
            (CALL_ERROR, &[][..], &[][..]),
            (CALL_UNFINISHED, &[], &[]),
            (place, &[7], &[4, 1, 0]),
        ] {
            let changed = with_texts(open, flags, &words("/scratch/ann/x", file, behind), longer);
            assert_eq!(changed, Some(words("/scratch/ann/x and more", file, behind)), "{flags}");
        }
        assert_eq!(with_texts(open, CALL_NO_ARGS, &[], longer), Some(Vec::new()));
        assert_eq!(with_texts(open, 0, &words("x", &[], &[]), longer), None);
        // Statuses with errors, and no text.
        let waitall = Function::by_name("MPI_Waitall").unwrap().spec();
        let told = [2, 2, 7, 8, 2, info, info, 2, status_word(3, 9), 15, NO_STATUS, 0];
        let flags = CALL_ERROR | CALL_OUTCOME;
        assert_eq!(with_texts(waitall, flags, &told, longer), Some(told.to_vec()));
    }

    #[test]
    fn errors_of_messages_stand_beside_their_statuses() {
        let waitall = Function::by_name("MPI_Waitall").unwrap().spec();
        let null = predefined_word(PREDEFINED.len() as u16 - 1);
        let told = status_word(3, 9);
        let words = [2, 2, 7, 8, 2, null, null, 2, told, 15, NO_STATUS, 0];
        let (args, out) = decode(waitall, CALL_ERROR | CALL_OUTCOME, &words).unwrap();
        assert_eq!(args[0], ("count", Value::Int(2)));
        let statuses =
            vec![Value::Outcome { told: Some((3, 9)), error: 15 }, Value::Outcome { told: None, error: 0 }];
        assert_eq!(out[1], ("array_of_statuses", Value::List(statuses)));
        let (_, out) = decode(waitall, CALL_ERROR, &words[..4]).unwrap();
        assert!(out.is_empty());
        for cut in 5..words.len() {
            assert_eq!(decode(waitall, CALL_ERROR | CALL_OUTCOME, &words[..cut]), None, "{cut}");
        }
        let wait = Function::by_name("MPI_Wait").unwrap().spec();
        let (_, out) = decode(wait, CALL_ERROR | CALL_OUTCOME, &[7, null, told]).unwrap();
        assert_eq!(out[1], ("status", Value::Status { source: 3, tag: 9 }));
    }

    #[test]
    fn an_address_that_mpi_gives_is_an_output() {
        let query = Function::by_name("MPI_Win_shared_query").unwrap().spec();
        let (args, out) = decode(query, 0, &[3, 1, 0x40, 64, 4]).unwrap();
        assert_eq!(args.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["win", "rank"]);
        let given = ("baseptr", Value::Address(0x40));
        assert_eq!(out, [("size", Value::Int(64)), ("disp_unit", Value::Int(4)), given]);
        let (args, out) = decode(query, CALL_ERROR, &[3, 1, 0]).unwrap();
        assert!(args.len() == 2 && out.is_empty());
        let (_, out) = decode(query, 0, &[3, 1, 0, 64, 4]).unwrap();
        assert_eq!(out[2], ("baseptr", Value::Absent));
    }

    #[test]
    fn an_attribute_that_was_not_found_has_no_value() {
        let get = Function::by_name("MPI_Comm_get_attr").unwrap().spec();
        let value = |flag| decode(get, 0, &[1, 5, 0x40, flag]).unwrap().1[0].clone();
        assert_eq!(value(1), ("attribute_val", Value::Address(0x40)));
        assert_eq!(value(0), ("attribute_val", Value::Absent));
    }
}
