//! Records of a journal: 64-bit words, one header word each.
//!
//! The hot path writes words, not bytes: an aligned store each, no encoding. Compaction happens
//! once, off the application's path.
//!
//! Header word, least significant first: kind (8 bits), flags (8), function (16), length in words
//! including the header (32).

/// Contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Times of a call of the application: start and duration in ticks, its terminal and how often.
    Call = 1,
    /// Collection begins: window, start ticks, probability (f64 bits), update, calls of the thread before it.
    Open = 2,
    /// A window's summary: window, start and end ticks, the agent's own ticks, probability (f64 bits), update, and its
    /// [cells](crate::cells::Cells::put).
    Window = 3,
    /// A call site: index in the thread's site table, module number, offset in the module; then module and offset of
    /// each caller on its path, outwards.
    Site = 4,
    /// A module: number, then its path as packed text.
    Module = 5,
    /// A communicator or datatype met for the first time: object kind, number, two facts
    /// (size and rank of a communicator; bytes of a datatype).
    Object = 6,
    /// JSON text: run information (flag [`TEXT_RUN`]), a decision, a step, metadata, and others.
    Text = 7,
    /// Retrospective decision about a window: window, probability (f64 bits), stratum; flag [`DECISION_KEPT`].
    Retrospective = 8,
    /// A call signature, with its function and call flags: the index of its site in the thread's table, and the
    /// arguments. The thread's terminals are numbered in the order of these records.
    Signature = 9,
    /// A place in memory that a buffer's word stands for: the word of the place, its address; a module's base with
    /// the word of its first byte.
    Place = 10,
    /// Functions on the way of calls of a site: its index in the thread's table; 1 where paths differ beyond what follows; then
    /// module and one more than the offset of each function outwards, from the caller of the site's own. The last of a site counts.
    Way = 11,
    /// A kind of [unrecorded calls](crate::gaps::Unrecorded), with its function, and its reason in the flags: the index
    /// of its site in the thread's table, 0 where it is not known. They are numbered in the order of these records.
    Unrecorded = 12,
    /// Moments of a gap: the number of its first call, start and end ticks, bits of its reasons; flag [`GAP_REST`].
    Gap = 13,
    /// A set of [buffers](crate::buffers) of a terminal's calls, but for that of the first, which its signature has: the
    /// terminal, and the places. They are numbered in the order of these records.
    Buffers = 14,
    /// A kind of [moves](crate::buffers::Move): the terminal, calls of it since the move before, and one more than the
    /// number of the set, 0 for that of the first call. Flag [`MOVE_FIRST`]: it is the terminal's first move, with
    /// its position in the thread's sequence in place of the calls. They are numbered in the order of these records.
    Move = 15,
    /// A way by which calls came to a site: its index in the thread's table, the number of the way, then module and offset
    /// of the site and of its callers outwards.
    Path = 16,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Call,
            2 => Self::Open,
            3 => Self::Window,
            4 => Self::Site,
            5 => Self::Module,
            6 => Self::Object,
            7 => Self::Text,
            8 => Self::Retrospective,
            9 => Self::Signature,
            10 => Self::Place,
            11 => Self::Way,
            12 => Self::Unrecorded,
            13 => Self::Gap,
            14 => Self::Buffers,
            16 => Self::Path,
            15 => Self::Move,
            _ => return None,
        })
    }
}

/// Call flag: it returned an error; the code follows the fixed words, outputs are not recorded but with
/// [`CALL_OUTCOME`].
pub const CALL_ERROR: u8 = 1;
/// Call flag: a poll found nothing; `count` such polls in a row share the record, no outputs.
pub const CALL_MISS: u8 = 2;
/// Call flag: it has not returned (`MPI_Finalize`, `MPI_Abort`); no duration, no outputs.
pub const CALL_UNFINISHED: u8 = 4;
/// Call flag: its arguments could not be recorded.
pub const CALL_NO_ARGS: u8 = 8;
/// Call flag: the error is that of a message or of some of several, and MPI has written the outputs. Every
/// status in an array is followed by its error code.
pub const CALL_OUTCOME: u8 = 16;
/// Call flag: behind the outputs follow three words about the communicator that the call has made: its size, the
/// caller's rank in it, and the rank in the world of its rank 0; [`NOWHERE`] each where it made none.
pub const CALL_PLACE: u8 = 32;
/// No rank, and no size of a communicator.
pub const NOWHERE: u64 = u64::MAX;
/// Number of words that [`CALL_PLACE`] announces.
pub const PLACE_WORDS: usize = 3;
/// Window flag: its calls are recorded.
pub const WINDOW_KEPT: u8 = 1;
/// Window flag: it was drawn, so its summary is in the sample (its calls too, unless timing is off).
pub const WINDOW_DRAWN: u8 = 4;
/// Window flag: as many windows as the word behind its cells says, from this one on, were alike: nothing
/// happened in any of them.
pub const WINDOW_RUN: u8 = 8;
/// Window flag: closed by the end of the run, not by its marker.
pub const WINDOW_PARTIAL: u8 = 2;
/// Window flag: it was not drawn, but a rank that this one exchanges messages with was. Its calls are recorded for
/// that rank's sake (unless timing is off).
pub const WINDOW_PARTNER: u8 = 16;
/// Window flag: behind its cells is the probability (f64 bits) that this rank or a partner of it was drawn; it is
/// that of the draw itself otherwise.
pub const WINDOW_INCLUSION: u8 = 32;
/// Window flag: its calls are in pending blocks. Its retrospective decision says whether it is kept; without one it is
/// kept if it was drawn.
pub const WINDOW_BUFFERED: u8 = 64;
/// Window flag: the last word is the stratum of a divided group that it was drawn in.
pub const WINDOW_STRATUM: u8 = 128;
/// Decision flag: the window is kept.
pub const DECISION_KEPT: u8 = 1;
/// Stratum of a retrospective decision that has none.
pub const NO_STRATUM: u64 = u64::MAX;
/// Gap flag: the moments are those of all gaps from that one on, which have none of their own.
pub const GAP_REST: u8 = 1;
/// First bit of the way in the site of a signature.
pub const SIGNATURE_WAY: u32 = 32;
/// Way of calls of a site that has more ways than there are numbers for.
pub const MANY_WAYS: u8 = u8::MAX;
/// Move flag: the first of its terminal.
pub const MOVE_FIRST: u8 = 1;
/// Object flag: behind its kind and its number is the handle that the program was given.
pub const OBJECT_HANDLE: u8 = 1;
/// Text flag: run information.
pub const TEXT_RUN: u8 = 1;
/// Text flag: a decision of the client.
pub const TEXT_DECISION: u8 = 2;
/// Text flag: a step of the agent to another level, because of what it costs.
pub const TEXT_STEP: u8 = 3;
/// Text flag: metadata of the run; facts of a later record replace those of an earlier one.
pub const TEXT_METADATA: u8 = 4;
/// Text flag: regions of which the thread has left visits out, a list of [`LeftOutRegion`](crate::model::LeftOutRegion).
pub const TEXT_LEFT_OUT: u8 = 5;
/// Text flag: a [`TimestepRecord`](crate::timestep::TimestepRecord).
pub const TEXT_TIMESTEP: u8 = 6;

/// Words of a call record: header, start, duration, terminal and count.
pub const CALL_WORDS: usize = 4;
/// Stands for the function in the signature of a gap: calls that were counted and not recorded, in a pause or where
/// nothing is to be stored of them.
pub const GAP: u16 = u16::MAX;
/// Stands for the function in the signature of an [entry](crate::regions) of a region.
pub const REGION_ENTER: u16 = u16::MAX - 1;
/// Stands for the function in the signature of an exit of a region.
pub const REGION_EXIT: u16 = u16::MAX - 2;
/// Region flag: the thread passed it while nothing was recorded.
pub const REGION_UNSEEN: u8 = 64;
/// Words of a window record before its cells.
pub const WINDOW_FIXED_WORDS: usize = 7;

/// A header word.
pub fn header(kind: Kind, flags: u8, function: u16, words: usize) -> u64 {
    kind as u64 | u64::from(flags) << 8 | u64::from(function) << 16 | (words as u64) << 32
}

/// A word as it lies in a journal: least significant byte first, at any address.
pub type Word = [u8; 8];

/// One record, borrowed from a journal.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Kind of its contents.
    pub kind: Kind,
    /// Flags of that kind.
    pub flags: u8,
    /// The function of a call.
    pub function: u16,
    /// Everything after the header word.
    pub body: &'a [Word],
}

impl Record<'_> {
    /// A copy of its body.
    pub fn words(&self) -> Vec<u64> {
        self.body.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }
}

/// Yields the records in some words, as far as they are well-formed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    words: &'a [Word],
    rest: &'a [Word],
}

impl<'a> Records<'a> {
    /// The records in `words`.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, rest: words }
    }

    /// After the last record: the position of the first word that is no record, if there is one.
    pub fn malformed_at(&self) -> Option<usize> {
        (!self.rest.is_empty()).then_some(self.words.len() - self.rest.len())
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let word = u64::from_le_bytes(*self.rest.first()?);
        let kind = Kind::from_byte(word as u8)?;
        let (record, rest) = self.rest.split_at_checked((word >> 32) as usize)?;
        let (_, body) = record.split_first()?;
        self.rest = rest;
        Some(Record { kind, flags: (word >> 8) as u8, function: (word >> 16) as u16, body })
    }
}

/// Appends `text` as a byte count and packed words.
pub fn put_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    for chunk in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(bytes));
    }
}

/// Number of words of the text at the beginning of `words`; `None` if they are not all there.
pub fn text_words(words: &[u64]) -> Option<usize> {
    let bytes = usize::try_from(*words.first()?).ok()?;
    let taken = 1usize.checked_add(bytes.div_ceil(8))?;
    (taken <= words.len()).then_some(taken)
}

/// The text at the beginning of `words`, and how many words it takes; bad UTF-8 is replaced.
pub fn get_text(words: &[u64]) -> Option<(String, usize)> {
    let taken = text_words(words)?;
    let bytes = words[1..taken].iter().flat_map(|word| word.to_le_bytes());
    let text: Vec<u8> = bytes.take(words[0] as usize).collect();
    Some((String::from_utf8_lossy(&text).into_owned(), taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(words: &[u64]) -> Vec<Word> {
        words.iter().map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn records_end_where_words_stop_making_sense() {
        let mut words = vec![header(Kind::Site, 0, 0, 4), 1, 2, 3];
        words.push(header(Kind::Call, CALL_MISS, 77, 2));
        words.push(9);
        let read = |words: &[u64]| {
            let stored = stored(words);
            let mut records = Records::new(&stored);
            let found =
                records.by_ref().map(|r| (r.kind, r.flags, r.function, r.words())).collect::<Vec<_>>();
            (found, records.malformed_at())
        };
        let both = vec![(Kind::Site, 0, 0, vec![1, 2, 3]), (Kind::Call, CALL_MISS, 77, vec![9])];
        assert_eq!(read(&words), (both.clone(), None));
        words.push(header(Kind::Call, 0, 1, 5));
        assert_eq!(read(&words), (both, Some(6)));
        assert_eq!(read(&[0]), (vec![], Some(0)));
        assert_eq!(read(&[header(Kind::Call, 0, 1, 0)]), (vec![], Some(0)));
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(words: Vec<u64>) {
            for record in Records::new(&stored(&words)) {
                let _ = get_text(&record.words());
            }
        }

        #[test]
        fn text_comes_back(text: String) {
            let mut words = vec![];
            put_text(&mut words, &text);
            prop_assert_eq!(get_text(&words), Some((text, words.len())));
        }
    }
}
