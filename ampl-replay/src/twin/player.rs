//! Issues the recorded calls of a rank.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ampl_core::mpi::constants::AbiFamily;
use ampl_core::mpi::{Class, Direction, FUNCTION_COUNT, Function, Kind, Length, ObjectKind, Param};
use ampl_core::value::Value;
use ampl_reader::Call;
use ampl_replay::completions::{completed, input, is_failed_poll, output, requests_of};
use ampl_replay::constants::Constants;
use ampl_replay::content::is_left_out;
use ampl_replay::wildcards::{Sources, is_wildcard};

use super::buffers;
use super::ffi::{self, Callback, Constant, Routine};
use super::files::Files;
use super::means;
use super::memory::Memory;
use super::objects::Objects;
use super::problem::Problem;
use super::report::Measured;
use super::statuses::Statuses;
use super::watchdog::Progress;
use super::words::{self, Words};

/// Bytes behind an output string: more than any `MPI_MAX_*`.
const STRING_BYTES: usize = 1 << 14;

/// State of a rank's replay.
pub struct Player<'a> {
    pub objects: Objects,
    pub memory: Memory,
    pub files: Files,
    pub measured: Measured,
    /// Time in calls, with what these wait for.
    pub in_calls: Duration,
    words: Words,
    routines: Vec<Option<Routine>>,
    constants: Constants,
    /// Sources of wildcard receives; `None` where these stay wildcards.
    sources: Option<Sources<Box<dyn Iterator<Item = Call> + 'a>>>,
    /// Statuses that calls have filled, where the program reads any.
    statuses: Option<Statuses>,
    /// True where counts are agreed on in place of means.
    has_means: bool,
    progress: Arc<Progress>,
}

/// Parts of a player that a run decides.
pub struct Setting<'a> {
    /// Binary interface that gave the trace's constants their meaning.
    pub family: AbiFamily,
    pub sources: Option<Box<dyn Iterator<Item = Call> + 'a>>,
    pub reads_statuses: bool,
    pub has_means: bool,
    pub progress: Arc<Progress>,
    pub files: Files,
}

impl<'a> Player<'a> {
    /// A player at the beginning.
    pub fn new(setting: Setting<'a>, memory: Memory) -> Self {
        Self {
            objects: Objects::new(),
            memory,
            files: setting.files,
            measured: Measured::default(),
            in_calls: Duration::ZERO,
            words: Words::default(),
            routines: vec![None; FUNCTION_COUNT],
            constants: Constants::new(setting.family, ffi::family()),
            sources: setting.sources.map(Sources::new),
            statuses: setting.reads_statuses.then(Statuses::new),
            has_means: setting.has_means,
            progress: setting.progress,
        }
    }

    /// Issues `call`, unless it has no place in a replay.
    ///
    /// # Errors
    /// The reason for which the replay cannot go on.
    pub fn play(&mut self, call: &Call) -> Result<(), Problem> {
        let function = call.function;
        let name = function.name();
        if is_failed_poll(call) || is_left_out(function) {
            return Ok(());
        }
        if name == "MPI_Abort" {
            return Err(Problem::Aborted);
        }
        if call.lacks_arguments() {
            return Err(Problem::NoArguments);
        }
        if self.files.are_skipped() && name.starts_with("MPI_File_") {
            return self.leave_out(call);
        }
        let routine = match self.routines[usize::from(function.0)] {
            Some(routine) => routine,
            None => {
                let routine = Routine::of(name).ok_or(Problem::Lacking)?;
                self.routines[usize::from(function.0)] = Some(routine);
                routine
            }
        };
        let pinned = match &mut self.sources {
            Some(sources) if is_wildcard(call) => sources.next_source(),
            _ => None,
        };
        self.progress.enter(call);
        let agreed = if self.has_means { means::agreed(self, call)? } else { None };
        let call = agreed.as_ref().unwrap_or(call);
        self.prepare(call, pinned)?;
        let entered = Instant::now();
        let masked = self.await_outcome(call)?;
        let begun = Instant::now();
        let mut code = routine.call(self.words.all());
        while code == 0 && self.missed(call) {
            std::thread::yield_now();
            code = routine.call(self.words.all());
        }
        self.measured.add(function, begun.elapsed());
        self.in_calls += entered.elapsed();
        if code != 0 && call.code == 0 {
            return Err(Problem::Failed(code));
        }
        if call.code != 0 {
            self.constants.note_failure(call.code, code);
        }
        self.note(call, masked.as_deref())?;
        self.progress.leave();
        Ok(())
    }

    /// True where a poll was successful when it was recorded and is not yet now.
    fn missed(&mut self, call: &Call) -> bool {
        if call.function.spec().class != Class::Poll || output(call, "flag") != Some(&Value::Bool(true)) {
            return false;
        }
        let params = call.function.spec().params;
        let flag = params.iter().position(|param| param.name == "flag");
        flag.is_some_and(|flag| self.words.value(flag, 0, 4) == 0)
    }

    /// Objects of a call that is left out are null.
    fn leave_out(&mut self, call: &Call) -> Result<(), Problem> {
        for (_, value) in &call.out {
            if let Value::Object(kind, number) = value {
                let null = self.objects.null(*kind)?;
                self.objects.put(*kind, *number, null);
            }
        }
        Ok(())
    }

    fn prepare(&mut self, call: &Call, pinned: Option<i64>) -> Result<(), Problem> {
        self.words.clear();
        for (index, param) in call.function.spec().params.iter().enumerate() {
            let given = input(call, param.name);
            match (param.kind, param.direction) {
                (Kind::Buffer, direction) => {
                    let word = buffers::address(self, call, param, given, direction)?;
                    self.words.push(word);
                }
                (Kind::Rank, Direction::In) if param.name == "source" && pinned.is_some() => {
                    self.words.push(pinned.unwrap_or_default() as usize);
                }
                (Kind::String, Direction::In) => self.push_text(call, given)?,
                (Kind::Address, Direction::In) => self.words.push(callback(param.name)),
                (Kind::Status, Direction::In | Direction::InOut) if param.length == Length::One => {
                    self.push_status(given);
                }
                (_, Direction::In) if param.length == Length::One => {
                    let word = self.scalar(call, param, given)?;
                    self.words.push(word);
                }
                (_, Direction::In) => self.push_array(call, param, given)?,
                (Kind::Status, _) if self.statuses.is_some() => {
                    let number = room(call, param).div_ceil(ffi::STATUS_BYTES);
                    let address =
                        self.statuses.as_mut().and_then(|all| all.room(number, output(call, param.name)));
                    match address {
                        Some(address) => self.words.push(address),
                        None => drop(self.words.push_slot(number * ffi::STATUS_BYTES)),
                    }
                }
                (_, direction) => {
                    let bytes = room(call, param);
                    self.words.push_slot(bytes);
                    if direction == Direction::InOut {
                        self.fill_slot(call, index, param, given)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn push_text(&mut self, call: &Call, given: Option<&Value>) -> Result<(), Problem> {
        let text = match given {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        };
        let text = self.files.text(call.function.name(), text).into_bytes();
        let slot = self.words.push_slot(text.len() + 1);
        slot[..text.len()].copy_from_slice(&text);
        Ok(())
    }

    fn push_status(&mut self, given: Option<&Value>) {
        let kept = match given {
            Some(Value::Status { source, tag }) => {
                self.statuses.as_ref().and_then(|all| all.address(*source, *tag))
            }
            _ => None,
        };
        match kept {
            Some(address) => self.words.push(address),
            None => drop(self.words.push_slot(ffi::STATUS_BYTES)),
        }
    }

    /// The word of one value that is passed by value.
    fn scalar(
        &mut self,
        call: &Call,
        param: &'static Param,
        value: Option<&Value>,
    ) -> Result<usize, Problem> {
        let value = value.ok_or(Problem::NoArgument(param.name))?;
        match ObjectKind::of(param.kind) {
            Some(kind) => self.objects.handle(kind, value),
            None => self.number(call.function, param, value).map(|number| number as usize),
        }
    }

    fn number(&self, function: Function, param: &'static Param, value: &Value) -> Result<i64, Problem> {
        let word = |constant: Constant, name: &str| {
            let found = constant.word().map(|word| word as i64);
            found.ok_or_else(|| Problem::NoConstant(name.to_owned()))
        };
        match value {
            Value::Bool(flag) => Ok((*flag).into()),
            Value::Address(word) => Ok(*word as i64),
            Value::Int(number) => {
                self.constants.number(function, param.name, *number).map_err(Problem::NoConstant)
            }
            Value::Name(name) => match name.as_str() {
                "MPI_ANY_SOURCE" => word(Constant::AnySource, name),
                "MPI_ANY_TAG" => word(Constant::AnyTag, name),
                "MPI_PROC_NULL" => word(Constant::ProcNull, name),
                "MPI_ROOT" => word(Constant::Root, name),
                "MPI_UNDEFINED" => word(Constant::Undefined, name),
                _ => Err(Problem::NoConstant(name.clone())),
            },
            Value::Absent => Ok(0),
            _ => Err(Problem::NoArgument(param.name)),
        }
    }

    fn push_array(
        &mut self,
        call: &Call,
        param: &'static Param,
        given: Option<&Value>,
    ) -> Result<(), Problem> {
        let index = self.words.all().len();
        match given {
            Some(Value::List(values)) => {
                self.words.push_slot(values.len() * words::width(param.kind));
                self.fill_slot(call, index, param, given)?;
            }
            // Weights that are not given are not null.
            _ if param.name.ends_with("weights") => {
                self.words.push(Constant::Unweighted.word().unwrap_or_default());
            }
            _ => self.words.push(0),
        }
        Ok(())
    }

    fn fill_slot(
        &mut self,
        call: &Call,
        index: usize,
        param: &'static Param,
        given: Option<&Value>,
    ) -> Result<(), Problem> {
        let one = given.map(std::slice::from_ref).unwrap_or_default();
        let values = if let Some(Value::List(all)) = given { &all[..] } else { one };
        let width = words::width(param.kind);
        for (position, value) in values.iter().enumerate() {
            let word = self.scalar(call, param, Some(value))?;
            words::put(self.words.slot(index), position, width, word);
        }
        Ok(())
    }

    /// Waits until the call can have its recorded outcome; returns which of its requests it is to see, where these are
    /// not all.
    fn await_outcome(&mut self, call: &Call) -> Result<Option<Vec<u8>>, Problem> {
        let params = call.function.spec().params;
        if matches!(call.function.name(), "MPI_Iprobe" | "MPI_Improbe") {
            let [source, tag, comm] = [self.words.all()[0], self.words.all()[1], self.words.all()[2]];
            while !ffi::has_arrived(source, tag, comm) {
                std::thread::yield_now();
            }
        }
        let Some(requests) = requests_of(call) else { return Ok(None) };
        let index = params.iter().position(|param| param.name == requests).unwrap_or_default();
        if params[index].length == Length::One {
            // MPI_Wait waits itself; MPI_Parrived asks for a part.
            if call.function.name() == "MPI_Test" {
                let handle = self.words.value(index, 0, words::width(Kind::Request));
                self.await_requests(&[handle]);
            }
            return Ok(None);
        }
        let names_some =
            params.iter().any(|param| ["index", "indx", "array_of_indices"].contains(&param.name));
        if !names_some && call.function.spec().class != Class::Poll {
            return Ok(None);
        }
        let width = words::width(Kind::Request);
        let done: Vec<usize> = completed(call).iter().map(|one| one.position).collect();
        let handles: Vec<usize> = done.iter().map(|&at| self.words.value(index, at, width)).collect();
        self.await_requests(&handles);
        let count = match input(call, requests) {
            Some(Value::List(all)) => all.len(),
            _ => 0,
        };
        let null = self.objects.null(ObjectKind::Request)?;
        let mut used = vec![1; count];
        for (at, used) in used.iter_mut().enumerate() {
            let other = !done.contains(&at) && !same(self.words.value(index, at, width), null, width);
            *used = u8::from(!other);
        }
        if !names_some || done.is_empty() || used.iter().all(|&used| used == 1) {
            return Ok(None);
        }
        self.mask(index, &used, null, width);
        Ok(Some(used))
    }

    /// Lets the call see null in place of the requests that it is not to complete.
    fn mask(&mut self, index: usize, used: &[u8], null: usize, width: usize) {
        let mut all = self.words.slot(index).to_vec();
        for (at, _) in used.iter().enumerate().filter(|(_, used)| **used == 0) {
            words::put(&mut all, at, width, null);
        }
        // Without the library a tool that records the replay sees the nulls.
        if !ffi::mask(&all, used, width) {
            self.words.slot(index).copy_from_slice(&all);
        }
    }

    fn await_requests(&self, handles: &[usize]) {
        for &handle in handles {
            while !ffi::is_complete(handle) {
                std::thread::yield_now();
            }
        }
    }

    /// Notes objects that the call made, changed or freed.
    fn note(&mut self, call: &Call, used: Option<&[u8]>) -> Result<(), Problem> {
        for (index, param) in call.function.spec().params.iter().enumerate() {
            if param.direction == Direction::In || param.kind == Kind::Buffer {
                continue;
            }
            let (before, after) = (input(call, param.name), output(call, param.name));
            match (ObjectKind::of(param.kind), after.or(before)) {
                (Some(kind), Some(Value::List(values))) => {
                    for at in 0..values.len() {
                        // What the call has not seen is as it was.
                        if used.is_none_or(|used| used.get(at) != Some(&0)) {
                            self.note_object(kind, index, at, element(before, at), element(after, at));
                        }
                    }
                }
                (Some(kind), Some(_)) => self.note_object(kind, index, 0, before, after),
                (None, Some(value)) => self.note_value(call.function, param, index, value),
                (_, None) => {}
            }
        }
        buffers::note(self, call);
        Ok(())
    }

    fn note_object(
        &mut self,
        kind: ObjectKind,
        index: usize,
        at: usize,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        let handle = self.words.value(index, at, ffi::handle_width(kind));
        match (before, after) {
            (_, Some(Value::Object(kind, number))) => self.objects.put(*kind, *number, handle),
            // Another handle of a freed object may still be in use, under its name.
            (Some(Value::Object(kind @ ObjectKind::Request, number)), _) => {
                self.objects.forget(*kind, *number)
            }
            _ => {}
        }
    }

    fn note_value(&mut self, function: Function, param: &'static Param, index: usize, value: &Value) {
        match (param.kind, value) {
            (Kind::Int, Value::Int(number)) if param.length == Length::One => {
                let own = self.words.value(index, 0, 4) as i32;
                self.constants.note(function, param.name, *number, own);
            }
            (Kind::Address, value) if *value != Value::Absent => {
                let given = self.words.value(index, 0, 8);
                self.memory.given.insert(value.to_string(), given);
            }
            _ => {}
        }
    }
}

fn element(value: Option<&Value>, at: usize) -> Option<&Value> {
    match value {
        Some(Value::List(values)) => values.get(at),
        value => value,
    }
}

/// True where both words are one handle.
fn same(word: usize, other: usize, width: usize) -> bool {
    let shift = 8 * (8 - width as u32);
    word << shift == other << shift
}

/// The function that takes the place of the program's.
fn callback(param: &str) -> usize {
    match param {
        "user_fn" => Callback::Operation.word(),
        "query_fn" => Callback::Query.word(),
        "copy_fn" => Callback::Copy.word(),
        name if name.ends_with("copy_attr_fn") => Callback::Copy.word(),
        "function" => Callback::Nothing.word(),
        name if name.ends_with("_fn") => Callback::Nothing.word(),
        _ => 0,
    }
}

/// Bytes that the output `param` may need.
fn room(call: &Call, param: &'static Param) -> usize {
    if param.kind == Kind::String {
        return STRING_BYTES;
    }
    let length = |value: Option<&Value>| match value {
        Some(Value::List(values)) => values.len(),
        Some(Value::Int(number)) => usize::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    let of_list = length(output(call, param.name).filter(|value| matches!(value, Value::List(_))));
    let of_input = length(input(call, param.name).filter(|value| matches!(value, Value::List(_))));
    let by_table = match param.length {
        Length::One => 1,
        Length::Param(index) | Length::IfFlag(index, _) => {
            length(input(call, call.function.spec().params[usize::from(index)].name))
        }
        // As many as there are requests.
        Length::OutCount(_) => length(input(call, "incount")),
        _ => 1 << 10,
    };
    // Lengths are what the program said: a mistake of it must not write elsewhere.
    (of_list.max(of_input).max(by_table) + 8) * words::width(param.kind).max(8)
}
