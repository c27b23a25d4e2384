//! The requests that a call names, as records and hooks need them: the data of each lies together.

use crate::node::NOWHERE;

/// Locates a request: owner thread, node and generation. Default: no request.
///
/// The low half is the node; the next 16 bits are the owner, 0 for the thread itself, others 1 more than their place
/// among all; the upper 16 are the generation of another thread's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestRef(u64);

impl RequestRef {
    #[inline(always)]
    pub(crate) fn own(at: u32) -> Self {
        Self(u64::from(at))
    }

    /// `which` is less than `u16::MAX`.
    pub(crate) fn others(which: usize, at: u32, times: u16) -> Self {
        Self(u64::from(times) << 48 | (which as u64 + 1) << 32 | u64::from(at))
    }

    /// True where there is a request.
    #[inline]
    pub fn is_some(self) -> bool {
        self.at() != NOWHERE
    }

    #[inline(always)]
    pub(crate) fn is_own(self) -> bool {
        self.0 >> 32 == 0
    }

    pub(crate) fn other(self) -> usize {
        ((self.0 >> 32) as u16 as usize).wrapping_sub(1)
    }

    #[inline(always)]
    pub(crate) fn at(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn times(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// Words, marks and places of a call's requests; empty until [`crate::requests::Requests::name`] has filled them.
#[derive(Debug, Default)]
pub struct CallRequests {
    count: usize,
    words: Vec<u64>,
    marks: Vec<u8>,
    places: Vec<RequestRef>,
    /// All marks in one.
    together: u8,
    /// True while claims must be given back.
    pub(crate) claimed: bool,
}

/// Words, marks and places from one element on.
pub(crate) type Parts<'a> = (&'a mut [u64], &'a mut [u8], &'a mut [RequestRef]);

impl CallRequests {
    /// Room for `count`.
    pub(crate) fn begin(&mut self, count: usize) {
        self.count = count;
        if self.words.len() < count {
            self.words.resize(count, 0);
            self.marks.resize(count, 0);
            self.places.resize(count, RequestRef::default());
        }
    }

    #[inline(always)]
    pub(crate) fn parts(&mut self, from: usize) -> Parts<'_> {
        let to = self.count;
        (&mut self.words[from..to], &mut self.marks[from..to], &mut self.places[from..to])
    }

    pub(crate) fn set(&mut self, element: usize, word: u64, mark: u8, place: RequestRef) {
        (self.words[element], self.marks[element], self.places[element]) = (word, mark, place);
    }

    /// All have been set.
    #[inline(always)]
    pub(crate) fn put_together(&mut self) {
        self.together = self.marks().iter().fold(0, |together, mark| together | mark);
    }

    /// Notes that all requests are gone: no claim is left to give back.
    pub(crate) fn all_gone(&mut self) {
        self.claimed = false;
    }

    /// How many there are, null handles included.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True while requests are claimed for the call, which it must give back.
    #[inline(always)]
    pub fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// True where the call names no request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their words in records.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words[..self.count]
    }

    /// Marks of each request, as in [`crate::requests`].
    #[inline]
    pub fn marks(&self) -> &[u8] {
        &self.marks[..self.count]
    }

    /// Where they are.
    #[inline]
    pub fn places(&self) -> &[RequestRef] {
        &self.places[..self.count]
    }

    /// True where any request has a bit of `mark`.
    #[inline]
    pub fn any(&self, mark: u8) -> bool {
        self.together & mark != 0
    }
}
