//! A call's arguments as words of the record: [`ampl_trace::args`] is the other side.

mod addresses;
mod lengths;

use ampl_agent::requests::{SILENT, TELLS};
use ampl_core::mpi::{Direction, Function, Kind, Length, Param};
use ampl_core::value::{ANY_SOURCE, ANY_TAG, ObjectKind};
use ampl_trace::args::{IN_PLACE, NO_ARRAY, NO_STATUS, Shape, is_overwritten, may_be_spread, shape};
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_OUTCOME};
use ampl_trace::spread::put_spread;

use super::facts::object_word;
use super::filling::{is_program_s, note};
use crate::abi::Abi;
use crate::abi::memory::readable;
use crate::hook_plan::{HookPlan, Step, is_given};
use crate::hot_state;
use crate::process::Process;
use crate::thread_state::ThreadState;

/// More elements than this are a broken argument, not a program.
const MOST: usize = 1 << 24;
/// Status of no request, and of an inactive one (MPI-4.1 §3.7.3).
const EMPTY_STATUS: u64 = (ANY_SOURCE as u32 as u64) << 32 | ANY_TAG as u32 as u64;
/// Longest text recorded, bytes.
const LONGEST_TEXT: usize = 4096;

/// Fills `state.args` with the call's inputs and, if it has them, outputs.
///
/// # Safety
/// `words` must be the arguments of a C call of `function` that has just returned, with what
/// [`super::enter`] noted of it before.
pub unsafe fn call(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    words: &[usize],
    flags: u8,
    code: i32,
) {
    let mut out = std::mem::take(&mut state.args);
    out.clear();
    state.call_places.clear();
    let failed = flags & CALL_ERROR != 0;
    if failed {
        out.push(i64::from(code) as u64);
    }
    let abi = state.process.abi;
    // One record stands for many polls that found nothing.
    let varies = state.thread.knows_places() && flags & CALL_MISS == 0;
    let mut encoder = Encoder { state, abi, plan, function, words, failed, varies, before: 0 };
    // SAFETY: the caller's promise.
    unsafe { encoder.part(&plan.rest.inputs, Encoder::other_input, &mut out) };
    if flags & (CALL_ERROR | CALL_MISS) == 0 || flags & CALL_OUTCOME != 0 {
        // SAFETY: the call succeeded, or failed in a way that leaves its outputs written.
        unsafe { encoder.part(&plan.rest.outputs, Encoder::other_output, &mut out) };
    }
    state.args = out;
}

/// Handles that a call that succeeded has given out, requests apart, each with its kind.
///
/// # Safety
/// As [`call`].
pub unsafe fn given(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    words: &[usize],
    mut take: impl FnMut(&Process, ObjectKind, u64),
) {
    let (params, abi) = (function.spec().params, state.process.abi);
    let (failed, varies) = (false, false);
    let mut encoder = Encoder { state, abi, plan, function, words, failed, varies, before: 0 };
    for (param, &word) in params.iter().zip(words).filter(|(param, _)| is_given(param)) {
        let kind = ObjectKind::of(param.kind).expect("a handle");
        let length = match param.length {
            Length::One => 1,
            length => encoder.length(length).filter(|&length| length <= MOST).unwrap_or(0),
        };
        for element in 0..length {
            // SAFETY: MPI has written the handles.
            if let Some(handle) = unsafe { encoder.state.reader.load(param.kind, word, element) } {
                take(encoder.state.process, kind, handle);
            }
        }
    }
}

struct Encoder<'a> {
    state: &'a mut ThreadState,
    abi: &'static Abi,
    plan: &'a HookPlan,
    function: Function,
    words: &'a [usize],
    failed: bool,
    /// True where places are no part of the signature.
    varies: bool,
    before: usize,
}

impl Encoder<'_> {
    fn params(&self) -> &'static [Param] {
        self.function.spec().params
    }

    /// Appends the arguments that `steps` name; `other` encodes those that are not a word each.
    ///
    /// # Safety
    /// As [`call`]; outputs must have been written.
    #[inline(always)]
    unsafe fn part(
        &mut self,
        steps: &[(u8, Step)],
        other: unsafe fn(&mut Self, usize, &mut Vec<u64>),
        out: &mut Vec<u64>,
    ) {
        for &(index, step) in steps {
            let index = usize::from(index);
            // SAFETY: the caller's promise, and a plan's steps are arguments of its function.
            unsafe {
                match step {
                    Step::Block => out.extend_from_slice(&[
                        self.word(index, Step::Buffer),
                        self.word(index + 1, Step::Int),
                        self.word(index + 2, Step::Handle(Kind::Datatype, ObjectKind::Type)),
                    ]),
                    Step::Envelope => out.extend_from_slice(&[
                        self.word(index, Step::Rank),
                        self.word(index + 1, Step::Tag),
                        self.word(index + 2, Step::Handle(Kind::Comm, ObjectKind::Comm)),
                    ]),
                    Step::Other => other(self, index, out),
                    step => out.push(self.word(index, step)),
                }
            }
        }
    }

    /// The record word of the argument number `index`.
    #[inline(always)]
    unsafe fn word(&mut self, index: usize, step: Step) -> u64 {
        let (word, abi) = (self.words[index], self.abi);
        match step {
            Step::Word | Step::Block | Step::Envelope | Step::Other => word as u64,
            Step::Int => i64::from(word as i32) as u64,
            Step::Rank => abi.rank(word as i32) as u64,
            Step::Tag => abi.tag(word as i32) as u64,
            Step::Buffer if word == abi.in_place => IN_PLACE,
            Step::Buffer | Step::Address => self.place(word as u64),
            Step::AddressAfter if self.failed => 0,
            Step::AddressAfter => {
                // SAFETY: MPI has written an address there, or the program wanted none.
                let given = unsafe { self.state.reader.load(Kind::Address, word, 0) }.unwrap_or(0);
                self.place(given)
            }
            Step::Handle(kind, object_kind) => {
                object_word(self.state, object_kind, abi.handle_word(kind, word))
            }
            Step::Request => self.request(0),
            // SAFETY: a request parameter points to a handle.
            Step::RequestAfter => unsafe { self.request_after(word, 0) },
            // SAFETY: a status that is not ignored has been written.
            Step::Status => {
                // SAFETY: as said.
                let told = unsafe { self.status(word, 0) };
                note(self.state, word, told);
                told
            }
            // SAFETY: an output points to a value that MPI has written, or is null.
            Step::Value(kind) => unsafe { self.state.reader.load(kind, word, 0) }.unwrap_or(0),
        }
    }

    /// An input that needs more than its word.
    unsafe fn other_input(&mut self, index: usize, out: &mut Vec<u64>) {
        let param = &self.params()[index];
        let word = self.words[index];
        match shape(param) {
            Shape::Scalar if !is_overwritten(param) => {
                let value = self.by_value(param, word);
                out.push(value);
            }
            Shape::Scalar => {
                out.push(self.state.before.get(self.before).copied().unwrap_or(0));
                self.before += 1;
            }
            Shape::Text => {
                // What ranks other than the root pass may be no string.
                let is_passed = param.length != Length::Unknown || self.is_root();
                // SAFETY: an input string is NUL-terminated.
                unsafe { self.text(index, if is_passed { LONGEST_TEXT } else { 0 }, out) }
            }
            Shape::Array if param.kind == Kind::Request => {
                let named = &self.state.named;
                out.push(named.len() as u64);
                out.extend_from_slice(named.words());
            }
            Shape::Array if param.direction == Direction::InOut => {
                let noted = self.state.before.get(self.before..).unwrap_or_default();
                let count =
                    noted.first().map_or(0, |&count| count as usize).min(noted.len().saturating_sub(1));
                out.push(count as u64);
                out.extend_from_slice(noted.get(1..=count).unwrap_or_default());
                self.before += count + 1;
            }
            // SAFETY: MPI has read the array itself; after an error its readability is checked.
            Shape::Array => unsafe { self.array(index, out) },
        }
    }

    /// An output that is neither a request nor a status alone.
    unsafe fn other_output(&mut self, index: usize, out: &mut Vec<u64>) {
        let param = &self.params()[index];
        let word = self.words[index];
        match shape(param) {
            Shape::Scalar if param.kind == Kind::Attribute && self.found_nothing() => out.push(0),
            Shape::Scalar => {
                // SAFETY: an output points to a value that MPI has written, or is null.
                let value = unsafe { self.state.reader.load(param.kind, word, 0) }.unwrap_or(0);
                let value = self.recorded(index, value);
                out.push(value);
            }
            Shape::Text => {
                let limit = match param.length {
                    Length::One => LONGEST_TEXT,
                    // It is unknown whether anything was written there.
                    Length::Unknown => 0,
                    length => self.length(length).map_or(0, |length| (length + 1).min(LONGEST_TEXT)),
                };
                // SAFETY: MPI has written a string of that length, or one that ends in NUL.
                unsafe { self.text(index, limit, out) }
            }
            Shape::Array if param.kind == Kind::Request => {
                self.requests_after(out);
            }
            // SAFETY: MPI has written the array.
            Shape::Array => unsafe { self.array(index, out) },
        }
    }

    fn by_value(&mut self, param: &Param, word: usize) -> u64 {
        let undefined = self.state.process.abi.undefined;
        match param.kind {
            Kind::IntOrUndefined if word as i32 == undefined => ampl_core::value::UNDEFINED as u64,
            Kind::IntOrUndefined => i64::from(word as i32) as u64,
            Kind::Status => {
                if self.state.reader.ignores_status(word) || !self.can_read(Kind::Status, word, 1) {
                    return NO_STATUS;
                }
                // SAFETY: an input status has been read by MPI.
                let read = unsafe { self.state.reader.load(Kind::Status, word, 0) };
                read.map_or(NO_STATUS, |read| self.state.filled.told(word, read))
            }
            _ => word as u64,
        }
    }

    /// The record word of the value of parameter number `index`.
    fn recorded(&mut self, index: usize, value: u64) -> u64 {
        if self.plan.rest.index == Some(index as u8) {
            return self.state.reader.index(value);
        }
        let kind = self.params()[index].kind;
        if kind == Kind::Attribute {
            // SAFETY: the attribute was found; its key is the parameter before it.
            return unsafe { self.state.reader.attribute(self.words[index - 1] as i32, value) };
        }
        self.handle_or(kind, value)
    }

    /// True where the call is a query whose flag says that it has written nothing else.
    fn found_nothing(&self) -> bool {
        let flag = self.params().iter().position(|param| param.name == "flag");
        flag.is_some_and(|index| self.number(index as u8) == 0)
    }

    /// True where `count` values of `kind` at `base` can be read: MPI has done so itself unless the call failed.
    fn can_read(&self, kind: Kind, base: usize, count: usize) -> bool {
        let bytes = count * self.state.reader.bytes(kind);
        !self.failed || readable(base, bytes) == bytes
    }

    /// The record word of a handle; other values as they are.
    fn handle_or(&mut self, kind: Kind, value: u64) -> u64 {
        match ObjectKind::of(kind) {
            Some(kind) => object_word(self.state, kind, value),
            None => value,
        }
    }

    #[inline]
    fn request(&self, element: usize) -> u64 {
        let word = self.state.named.words().get(element);
        word.copied().unwrap_or(self.state.process.request_null_word)
    }

    /// Appends the words of the call's requests after it: the same as before, or null.
    fn requests_after(&self, out: &mut Vec<u64>) {
        let ThreadState { process, handles, after, named, .. } = &*self.state;
        out.push(named.len() as u64);
        if after == handles {
            out.extend_from_slice(named.words());
            return;
        }
        let (null, null_word) = (process.request_null, process.request_null_word);
        let words = after.iter().zip(named.words());
        out.extend(words.map(|(&after, &word)| if after == null { null_word } else { word }));
    }

    #[inline]
    unsafe fn request_after(&self, base: usize, element: usize) -> u64 {
        // SAFETY: the caller's promise.
        let after = unsafe { self.state.reader.load(Kind::Request, base, element) };
        if after == Some(self.state.process.request_null) {
            self.state.process.request_null_word
        } else if self.plan.names_request {
            self.request(element)
        } else {
            // A request that the call has made: its slot is added when it has been followed.
            0
        }
    }

    /// The status of completion number `element`; [`NO_STATUS`] where the program gave no place for it.
    unsafe fn status(&self, base: usize, element: usize) -> u64 {
        if self.state.reader.ignores_status(base) && !self.knows_statuses() {
            return NO_STATUS;
        }
        // SAFETY: the caller's promise.
        unsafe { self.status_there(base, element) }
    }

    /// The status of completion number `element`; [`NO_STATUS`] where it describes no message: a send's has no source.
    /// The status of no request, or of an inactive one, is empty (MPI-4.1 §3.7.3), and recorded so.
    #[inline]
    unsafe fn status_there(&self, base: usize, element: usize) -> u64 {
        let reader = &self.state.reader;
        if !self.plan.receives {
            return NO_STATUS;
        }
        if self.plan.names_request {
            let completed = match self.plan.rest.index {
                // SAFETY: a call that has an index of the completed request has written that.
                Some(index) => unsafe { reader.load(Kind::Int, self.words[usize::from(index)], element) }
                    .map(|said| reader.index(said)),
                None => Some(element as u64),
            };
            let completed = completed.and_then(|index| usize::try_from(index).ok());
            if completed.is_none() && self.plan.rest.index.is_some() {
                // No request was active. MPICH 4.0 leaves in the status what was there.
                return EMPTY_STATUS;
            }
            let mark = completed.and_then(|index| self.state.named.marks().get(index));
            if mark.is_some_and(|mark| mark & SILENT != 0) {
                return NO_STATUS;
            }
            if reader.ignores_status(base) {
                return EMPTY_STATUS;
            }
            // SAFETY: the caller's promise.
            if unsafe { self.was_cancelled(base, element) } {
                return NO_STATUS;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { reader.load(Kind::Status, base, element) }.unwrap_or(NO_STATUS)
    }

    /// True where the status of element `element` is of a request that was cancelled: nothing else of it is defined
    /// (MPI-4.1 §3.8.4). MPI is asked only in programs that cancel.
    ///
    /// # Safety
    /// `base` must point to as many statuses as a call has written.
    #[inline]
    unsafe fn was_cancelled(&self, base: usize, element: usize) -> bool {
        if !hot_state::has_cancelled() {
            return false;
        }
        let (mut flag, bytes) = (0i32, self.state.reader.bytes(Kind::Status));
        // SAFETY: the caller's promise, and a place for an int.
        unsafe { (self.state.process.pmpi.test_cancelled)(base + element * bytes, &raw mut flag as usize) };
        flag != 0
    }

    /// True where statuses are known without MPI: no status of its requests describes a message.
    fn knows_statuses(&self) -> bool {
        self.plan.names_request && !self.state.named.any(TELLS)
    }

    /// The status of completion number `element` and its error; one that is pending describes no message.
    unsafe fn outcome(&self, base: usize, element: usize) -> [u64; 2] {
        // SAFETY: the caller's promise.
        let (status, error) =
            unsafe { (self.status_there(base, element), self.state.reader.status_error(base, element)) };
        let pending = error != 0 && self.abi.error_class(error) == self.abi.error_pending;
        [if pending { NO_STATUS } else { status }, i64::from(error) as u64]
    }

    unsafe fn text(&mut self, index: usize, limit: usize, out: &mut Vec<u64>) {
        let address = self.words[index];
        let limit = if self.failed { readable(address, limit) } else { limit };
        if address == 0 || limit == 0 {
            out.push(NO_ARRAY);
            return;
        }
        // SAFETY: the caller's promise.
        let text = unsafe { self.state.reader.text(self.function, self.words, index, limit) };
        ampl_trace::record::put_text(out, &text);
    }

    /// Appends `length` statuses: in the order of the requests, or of the call's indices.
    unsafe fn statuses(&self, base: usize, length: usize, out: &mut Vec<u64>) {
        let Encoder { state, plan, .. } = self;
        let in_order = plan.names_request && plan.rest.index.is_none() && length == state.named.len();
        if !plan.receives || !in_order {
            // SAFETY: the caller's promise.
            out.extend((0..length).map(|element| unsafe { self.status_there(base, element) }));
            return;
        }
        let marks = state.named.marks();
        if state.reader.ignores_status(base) {
            if state.named.any(SILENT) {
                let known = |mark: &u8| if mark & SILENT != 0 { NO_STATUS } else { EMPTY_STATUS };
                out.extend(marks.iter().map(known));
            } else {
                out.resize(out.len() + length, EMPTY_STATUS);
            }
            return;
        }
        let first = out.len();
        // SAFETY: the caller's promise.
        unsafe { state.reader.statuses(base, length, out) };
        if state.named.any(SILENT) {
            for (word, mark) in out[first..].iter_mut().zip(marks) {
                *word = if mark & SILENT != 0 { NO_STATUS } else { *word };
            }
        }
        if hot_state::has_cancelled() {
            for (element, word) in out[first..].iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *word = if unsafe { self.was_cancelled(base, element) } { NO_STATUS } else { *word };
            }
        }
    }

    unsafe fn array(&mut self, index: usize, out: &mut Vec<u64>) {
        let param = &self.params()[index];
        let base = self.words[index];
        let length = if self.is_no_array(param, base) { None } else { self.length(param.length) };
        // Statuses that are known need no array.
        let there = |length| base == 0 || self.can_read(param.kind, base, length);
        let may_be_none = base != 0 || param.kind == Kind::Status;
        let Some(length) = length.filter(|&length| length <= MOST && may_be_none && there(length)) else {
            out.push(NO_ARRAY);
            return;
        };
        let exact = self.state.process.shared.plan.config.trace.exact_values;
        if !exact && self.function.counts_ranks() && may_be_spread(param) {
            let reader = self.state.reader;
            // SAFETY: as below.
            let number = |at| unsafe { reader.load(param.kind, base, at) }.unwrap_or(0) as i64;
            if put_spread(out, (0..length).map(number)) {
                return;
            }
        }
        out.push(length as u64);
        if param.kind == Kind::Status && self.failed {
            // SAFETY: the call has written `length` statuses, and the error of each.
            (0..length).for_each(|element| out.extend(unsafe { self.outcome(base, element) }));
            // What is in them is the recorder's to tell, and no later call's.
            self.state.filled.clear();
            return;
        }
        if param.kind == Kind::Status {
            let first = out.len();
            // SAFETY: the array has `length` statuses, or is ignored.
            unsafe { self.statuses(base, length, out) };
            if is_program_s(self.state, base) {
                let stride = self.state.reader.bytes(Kind::Status);
                self.state.filled.several(base, stride, &out[first..]);
            }
            return;
        }
        out.extend((0..length).map(|element| {
            // SAFETY: the array has `length` elements, as the standard counts them.
            let value = unsafe { self.state.reader.load(param.kind, base, element) }.unwrap_or(0);
            self.recorded(index, value)
        }));
    }
}
