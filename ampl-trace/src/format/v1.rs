//! Version 1 of the trace file, as sections in and out: what they hold is their own.
//!
//! Header: magic (8 bytes), version (u32, least significant byte first). Then sections, each
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 0xA5, where a section begins |
//! | 1 | kind |
//! | varint | rank and one, 0 for the run |
//! | varint | length of the payload |
//! | 2 | CRC-32 of these bytes of the head, lower half |
//! | 4 | CRC-32 of the payload |
//! | length | payload |
//!
//! The last section, contents, lists the others: for each the kind, rank and one, and length, as varints;
//! where they lie follows. Footer: offset of the contents (u64), CRC-32 of that offset (u32), end magic (8
//! bytes).
//!
//! A reader goes by the heads. Where one is damaged it goes on at the next place that the contents name, and
//! without contents at the next bytes that are a head whose checksum and whose payload's agree.

use std::io::{self, Write};

pub use super::kind::Kind;
use crate::error::{Damage, ReadError};
use crate::varint::{self, Reader};

/// First bytes of a trace file.
pub const MAGIC: [u8; 8] = *b"AMPLTRC1";
/// Last bytes of a trace file that was written to its end.
pub const END_MAGIC: [u8; 8] = *b"AMPLEND1";
/// Version in the header.
pub const VERSION: u32 = 1;

const HEADER: usize = 12;
const FOOTER: usize = 20;
const BEGIN: u8 = 0xa5;

/// A section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Kind of its contents.
    pub kind: Kind,
    /// Its rank; `None` for the whole run.
    pub rank: Option<u32>,
    /// Its bytes.
    pub payload: &'a [u8],
    /// Bytes it takes in the file, with its head.
    pub bytes: u64,
}

/// Writes a trace file front to back; memory grows by some bytes a section.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    at: u64,
    contents: Vec<u8>,
}

fn rank_number(rank: Option<u32>) -> u64 {
    rank.map_or(0, |rank| u64::from(rank) + 1)
}

fn head(kind: u8, rank: Option<u32>, payload: &[u8]) -> Vec<u8> {
    let mut head = vec![BEGIN, kind];
    varint::put(&mut head, rank_number(rank));
    varint::put(&mut head, payload.len() as u64);
    let check = crc32fast::hash(&head) as u16;
    head.extend(check.to_le_bytes());
    head.extend(crc32fast::hash(payload).to_le_bytes());
    head
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, at: 0, contents: Vec::new() };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Appends a section; [`Kind::Contents`] is for [`Writer::finish`].
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn section(&mut self, kind: Kind, rank: Option<u32>, payload: &[u8]) -> io::Result<()> {
        self.contents.push(kind as u8);
        varint::put(&mut self.contents, rank_number(rank));
        varint::put(&mut self.contents, payload.len() as u64);
        self.put(&head(kind as u8, rank, payload))?;
        self.put(payload)
    }

    /// Appends the list of sections and the footer, and gives `out` back.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        let offset = self.at.to_le_bytes();
        let contents = std::mem::take(&mut self.contents);
        self.put(&head(Kind::Contents as u8, None, &contents))?;
        self.put(&contents)?;
        self.put(&offset)?;
        self.put(&crc32fast::hash(&offset).to_le_bytes())?;
        self.put(&END_MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A head as it stands in a file.
#[derive(Clone, Copy, Debug)]
struct Found {
    kind: u8,
    rank: Option<u32>,
    /// Beginning and end of the payload.
    from: usize,
    to: usize,
    crc: u32,
}

/// The head at `at`, if there is one and its payload is not cut off.
fn head_at(bytes: &[u8], at: usize) -> Option<Found> {
    let rest = bytes.get(at..)?;
    let &[BEGIN, kind, ref numbers @ ..] = rest else { return None };
    let mut reader = Reader::new(numbers);
    let rank = reader.get()?;
    let length = usize::try_from(reader.get()?).ok()?;
    let check = 2 + reader.position();
    let stored = rest.get(check..check + 6)?;
    if stored[..2] != (crc32fast::hash(&rest[..check]) as u16).to_le_bytes() {
        return None;
    }
    let rank = rank.checked_sub(1).map(u32::try_from).transpose().ok()?;
    let from = at + check + 6;
    let to = from.checked_add(length).filter(|&to| to <= bytes.len())?;
    Some(Found { kind, rank, from, to, crc: u32::from_le_bytes(stored[2..].try_into().ok()?) })
}

impl Found {
    fn is_whole(&self, bytes: &[u8]) -> bool {
        crc32fast::hash(&bytes[self.from..self.to]) == self.crc
    }
}

/// The sections that the contents at the end list, and where these begin; `None` if they or the footer are damaged.
fn contents(bytes: &[u8]) -> Option<(Vec<Entry>, usize)> {
    let footer = bytes.get(bytes.len().checked_sub(FOOTER)?..)?;
    let (offset, rest) = footer.split_first_chunk::<8>()?;
    if rest[4..] != END_MAGIC || rest[..4] != crc32fast::hash(offset).to_le_bytes() {
        return None;
    }
    let begin = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
    let found = head_at(bytes, begin).filter(|found| found.is_whole(bytes))?;
    if found.kind != Kind::Contents as u8 {
        return None;
    }
    let mut reader = Reader::new(&bytes[found.from..found.to]);
    let mut listed = Vec::new();
    let mut at = HEADER;
    while !reader.is_empty() {
        let number = reader.take(1)?[0];
        let (rank, length) = (reader.get()?, reader.get()?);
        let mut head = Vec::new();
        varint::put(&mut head, rank);
        varint::put(&mut head, length);
        let end = (at + 8 + head.len()).checked_add(usize::try_from(length).ok()?)?;
        let rank = rank.checked_sub(1).map(u32::try_from).transpose().ok()?;
        listed.push(Entry { number, rank, at, end });
        at = end;
    }
    Some((listed, begin))
}

/// Checks that the first bytes are the header of a trace file of this version.
fn check_header(bytes: &[u8]) -> Result<(), ReadError> {
    let header = bytes.first_chunk::<HEADER>().ok_or(ReadError::TooShort { len: bytes.len() })?;
    if header[..8] != MAGIC {
        return Err(ReadError::BadMagic { found: header[..8].try_into().expect("eight bytes") });
    }
    let version = u32::from_le_bytes(header[8..].try_into().expect("four bytes"));
    if version == VERSION { Ok(()) } else { Err(ReadError::UnknownVersion { found: version.into() }) }
}

/// A section as a file lists it: its payload is read when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    number: u8,
    /// Its rank; `None` for the whole run.
    pub rank: Option<u32>,
    at: usize,
    end: usize,
}

impl Entry {
    /// Contents of the section; `None` where this version knows no section of that number.
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.number)
    }

    /// Bytes it takes in the file, with its head.
    pub fn bytes(&self) -> u64 {
        (self.end - self.at) as u64
    }

    /// The damage that a section is of a number that this version does not know.
    pub fn unknown(&self) -> Option<Damage> {
        let Self { number, rank, at, .. } = *self;
        let what = || format!("section of kind {number} at byte {at} is not known to this ampl");
        self.kind().is_none().then(|| Damage { rank, what: what() })
    }

    /// Its bytes before the payload; none where they are damaged.
    pub fn head<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        head_at(bytes, self.at).map_or(&[], |found| &bytes[self.at..found.from])
    }

    fn name(&self) -> String {
        self.kind().map_or_else(|| self.number.to_string(), |kind| format!("{kind:?}"))
    }

    /// The payload in the file's `bytes`; reads this section only.
    ///
    /// # Errors
    /// The damage, where the head or the checksum is not as listed.
    pub fn payload<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Damage> {
        let damage = |what| Damage { rank: self.rank, what };
        let as_listed =
            |found: &Found| (found.kind, found.rank, found.to) == (self.number, self.rank, self.end);
        let Some(found) = head_at(bytes, self.at).filter(as_listed) else {
            let what = format!("the head of section {} at byte {} is damaged", self.name(), self.at);
            return Err(damage(what));
        };
        if !found.is_whole(bytes) {
            let what = format!("section {} at byte {} fails its checksum", self.name(), self.at);
            return Err(damage(what));
        }
        Ok(&bytes[found.from..found.to])
    }
}

/// The sections of a file, in order.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Every section, whatever it holds.
    pub entries: Vec<Entry>,
    /// Damage beside the sections.
    pub damage: Vec<Damage>,
    /// True where the contents at the end were read. Otherwise the file was searched for sections, and those listed
    /// are whole.
    pub has_contents: bool,
}

impl Index {
    /// Lists the sections in `bytes`. Where the contents at the end are whole, nothing else is read.
    ///
    /// # Errors
    /// [`ReadError`] when it is not a trace file or has another version, by its first bytes, if its last do
    /// not contradict.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let contents = contents(bytes);
        let mut index = Self { has_contents: contents.is_some(), ..Self::default() };
        if let Err(error) = check_header(bytes) {
            if contents.is_none() {
                return Err(error);
            }
            let what = format!("the first {HEADER} bytes are damaged: {error}");
            index.damage.push(Damage { rank: None, what });
        }
        match contents {
            Some((listed, begin)) => {
                index.entries = listed;
                let end = head_at(bytes, begin).map_or(0, |found| found.to);
                if end + FOOTER != bytes.len() {
                    let what = format!("there are bytes behind the contents at {end}");
                    index.damage.push(Damage { rank: None, what });
                }
            }
            None => index.search(bytes),
        }
        Ok(index)
    }

    /// Finds sections by their heads.
    fn search(&mut self, bytes: &[u8]) {
        self.damage
            .push(Damage { rank: None, what: "the contents at the end are missing or damaged".into() });
        let (mut at, mut tries) = (HEADER, bytes.len().saturating_mul(4));
        while at < bytes.len() {
            if let Some(found) = head_at(bytes, at) {
                if found.kind != Kind::Contents as u8 {
                    self.entries.push(Entry { number: found.kind, rank: found.rank, at, end: found.to });
                }
                at = found.to;
                continue;
            }
            let lost = at;
            // Bytes that look like a head, by chance or by design, must not make the search quadratic.
            let next = (at + 1..bytes.len()).find(|&at| {
                head_at(bytes, at).is_some_and(|found| {
                    let length = found.to - found.from;
                    let checked = length <= tries;
                    tries -= if checked { length } else { 0 };
                    !checked || found.is_whole(bytes)
                })
            });
            at = next.unwrap_or(bytes.len());
            if at < bytes.len() || bytes.len() - lost > FOOTER {
                let what = format!("bytes {lost} to {at} are no section");
                self.damage.push(Damage { rank: None, what });
            }
        }
    }
}

/// The sections in `bytes` that are whole, in order, and what is damaged or missing.
///
/// # Errors
/// [`ReadError`] when it is not a trace file or has another version, by its first bytes, if its last do not
/// contradict.
pub fn read(bytes: &[u8]) -> Result<(Vec<Section<'_>>, Vec<Damage>), ReadError> {
    let Index { entries, mut damage, .. } = Index::read(bytes)?;
    let mut sections = Vec::new();
    for entry in entries {
        match (entry.payload(bytes), entry.kind()) {
            (Ok(_), Some(Kind::Contents)) => {}
            (Ok(payload), Some(kind)) => {
                sections.push(Section { kind, rank: entry.rank, payload, bytes: entry.bytes() });
            }
            (Ok(_), None) => damage.extend(entry.unknown()),
            (Err(found), _) => damage.push(found),
        }
    }
    Ok((sections, damage))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTIONS: [(Kind, Option<u32>, &[u8]); 6] = [
        (Kind::Structure, None, b"all ranks' calls, compressed"),
        (Kind::Times, Some(0), b"some times"),
        (Kind::Times, Some(1), b""),
        (Kind::Times, Some(70_000), &[BEGIN; 300]),
        (Kind::Processes, None, b"lines"),
        (Kind::Run, None, b"{}"),
    ];

    fn file() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (kind, rank, payload) in SECTIONS {
            writer.section(kind, rank, payload).unwrap();
        }
        writer.finish().unwrap()
    }

    /// The sections read, each one of those written and in their order.
    fn numbers(bytes: &[u8]) -> (Vec<usize>, Vec<Damage>) {
        let (sections, damage) = read(bytes).unwrap();
        let number = |section: &Section| {
            let like = |&(kind, rank, payload): &(Kind, Option<u32>, &[u8])| {
                (kind, rank, payload) == (section.kind, section.rank, section.payload)
            };
            SECTIONS.iter().position(like).expect("nothing that was not written")
        };
        let numbers: Vec<usize> = sections.iter().map(number).collect();
        assert!(numbers.is_sorted());
        (numbers, damage)
    }

    #[test]
    fn sections_come_back() {
        let bytes = file();
        assert_eq!(numbers(&bytes), (vec![0, 1, 2, 3, 4, 5], vec![]));
        let (sections, _) = read(&bytes).unwrap();
        let small = sections.iter().map(|section| section.bytes - section.payload.len() as u64);
        assert!(small.clone().all(|head| head <= 15) && small.min() == Some(10));
        // Header, contents and footer.
        assert!(bytes.len() as u64 - sections.iter().map(|section| section.bytes).sum::<u64>() < 80);
    }

    #[test]
    fn a_changed_byte_costs_one_section() {
        let bytes = file();
        for at in 0..bytes.len() {
            for flip in [1, 0x40, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                let (numbers, damage) = numbers(&changed);
                assert!(numbers.len() >= 5, "byte {at}: {numbers:?}");
                assert!(!damage.is_empty(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_cut_costs_what_is_behind_it_and_one_section() {
        let bytes = file();
        let (sections, _) = read(&bytes).unwrap();
        for length in HEADER..bytes.len() {
            let (numbers, damage) = numbers(&bytes[..length]);
            let mut end = HEADER;
            let before = sections.iter().take_while(|section| {
                end += section.bytes as usize;
                end <= length
            });
            assert_eq!(numbers.len(), before.count(), "{length}");
            assert!(!damage.is_empty());
        }
    }

    #[test]
    fn a_damaged_head_without_contents_costs_one_section() {
        let bytes = file();
        let cut = &bytes[..bytes.len() - 1];
        for at in HEADER..HEADER + 200 {
            let mut changed = cut.to_vec();
            changed[at] ^= 0x21;
            assert!(numbers(&changed).0.len() >= 5, "{at}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let bytes = file();
        assert_eq!(read(&bytes[..5]), Err(ReadError::TooShort { len: 5 }));
        let mut other = bytes.clone();
        // The last bytes say otherwise, until they are another's too.
        *other.last_mut().unwrap() = b'2';
        other[0] = b'a';
        assert!(matches!(read(&other), Err(ReadError::BadMagic { .. })));
        other[0] = bytes[0];
        other[8] = 2;
        assert_eq!(read(&other), Err(ReadError::UnknownVersion { found: 2 }));
    }
}
