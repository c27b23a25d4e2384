//! One call as a statement of C.

use std::collections::BTreeMap;

use ampl_analysis::logical::{
    Argument, BUFFER_IN_PLACE, Call, Formula, Formulas, Meaning, NO_REQUEST, OUTPUT, Program,
};
use ampl_core::mpi::constants::{AbiFamily, Set};
use ampl_core::mpi::{Class, Direction, Function, FunctionSpec, Kind, Length, ObjectKind, PREDEFINED, Param};
use ampl_core::value::{ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT, UNDEFINED};
use ampl_trace::args::index_of_predefined;
use ampl_trace::record::get_text;

use super::expression::Expressions;
use super::refusal::Refusal;

/// Greatest number of an object that has a variable.
const MOST_OBJECTS: i64 = 1 << 16;
/// Displacement from which one is an address.
const ADDRESS: i64 = 1 << 40;

/// Functions that no skeleton can call as the program did, for a reason that their parameters do not show: what they
/// do depends on which request was complete, or they end the job, or they tell of what is not repeated.
const REFUSED: [&str; 9] = [
    "MPI_Abort",
    "MPI_Cancel",
    "MPI_Group_range_excl",
    "MPI_Group_range_incl",
    "MPI_Ialltoallw",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Waitany",
    "MPI_Waitsome",
];

/// Numbers of the variables that calls name.
#[derive(Debug, Default)]
pub struct Variables {
    /// Variable of the request that the call of a label makes.
    pub requests: BTreeMap<i64, usize>,
    /// One more than the greatest number of an object, by kind.
    pub objects: BTreeMap<&'static str, i64>,
    /// Most statuses of one call.
    pub statuses: usize,
    /// Most requests of one call that are not beside each other.
    pub gathered: usize,
}

/// Writes calls.
pub struct Calls<'a> {
    /// The program.
    pub program: &'a Program,
    /// Formulas over its coordinates.
    pub formulas: &'a Formulas,
    /// Meaning of constants in the run.
    pub family: Option<AbiFamily>,
}

/// Values of a call's arguments at one parameter: a column for each element.
type Columns = Vec<(Argument, Vec<(u32, i64)>)>;

impl Calls<'_> {
    /// The statements of a call, without what is around it.
    ///
    /// # Errors
    /// The [`Refusal`] of what cannot be written.
    pub fn statements(
        &self,
        call: &Call,
        out: &mut Expressions,
        variables: &mut Variables,
    ) -> Result<Vec<String>, Refusal> {
        let spec = Function(call.function).spec();
        let name = spec.name;
        if REFUSED.contains(&Function(call.function).base_name()) || spec.class == Class::CountOnly {
            return Err(Refusal::Function(name));
        }
        match name {
            "MPI_Init" => return Ok(vec!["MPI_Init(&argc, &argv);".into(), "begin();".into()]),
            "MPI_Finalize" => return Ok(vec!["MPI_Finalize();".into()]),
            _ => {}
        }
        let mut by_param: BTreeMap<u8, Columns> = BTreeMap::new();
        for (place, argument) in call.arguments.iter().enumerate() {
            let column = call.column(place, &self.program.space, self.program.ranks);
            by_param.entry(argument.param).or_default().push((*argument, column));
        }
        let comm = spec.params.iter().position(|param| param.kind == Kind::Comm);
        let comm = match comm.and_then(|at| by_param.get(&(at as u8))) {
            Some(columns) => {
                Some(self.handle(spec, &spec.params[comm.unwrap_or(0)], columns, out, variables)?)
            }
            None => None,
        };
        let mut words = Vec::with_capacity(spec.params.len());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (index, param) in spec.params.iter().enumerate() {
            let none = Vec::new();
            let given = by_param.get(&(index as u8)).unwrap_or(&none);
            let made = by_param.get(&(index as u8 | OUTPUT)).unwrap_or(&none);
            words.push(match (param.kind, param.direction, param.length) {
                (Kind::Address, ..) if name == "MPI_Init_thread" => format!("&{}", param.name),
                (Kind::Address, Direction::In, _) if name.starts_with("MPI_Op_create") => {
                    out.helpers.nothing = true;
                    "nothing".into()
                }
                (Kind::Attribute, Direction::Out, _) => "sink".into(),
                (Kind::Address, Direction::Out, _) if name.starts_with("MPI_Buffer_detach") => "sink".into(),
                (
                    Kind::Address
                    | Kind::Attribute
                    | Kind::Double
                    | Kind::File
                    | Kind::Win
                    | Kind::Message
                    | Kind::Session,
                    ..,
                ) => return Err(Refusal::Function(name)),
                (Kind::Buffer, direction, _) => buffer(spec, param, direction, given, out)?,
                (Kind::Status, Direction::Out, Length::One) => "MPI_STATUS_IGNORE".into(),
                // Some compilers take what says that none are wanted for an array of no length.
                (Kind::Status, Direction::Out, _) => {
                    let of_requests = |columns: &Columns| {
                        let is_one = |(argument, _): &&(Argument, _)| argument.meaning == Meaning::Request;
                        columns.iter().filter(is_one).count()
                    };
                    let most = by_param.values().map(of_requests).max().unwrap_or(0).max(1);
                    variables.statuses = variables.statuses.max(most);
                    "statuses".into()
                }
                (Kind::Status, ..) => {
                    out.helpers.status = true;
                    "&status".into()
                }
                (Kind::String, Direction::In, _) => text(spec, param, given)?,
                (Kind::String, ..) => "(char *)sink".into(),
                (Kind::Request, direction, length) => {
                    let all = if made.is_empty() { given } else { made };
                    let all = self.requests(spec, param, all, out, variables)?;
                    match (direction, length) {
                        (Direction::In, Length::One) => variable(all.first(), out),
                        (_, Length::One) => format!("&{}", variable(all.first(), out)),
                        _ => gathered(&all, out, variables, &mut before, &mut after),
                    }
                }
                (kind, direction, Length::One) if ObjectKind::of(kind).is_some() => match direction {
                    Direction::In => self.handle(spec, param, given, out, variables)?,
                    Direction::Out => self.place(spec, param, made, out, variables)?,
                    Direction::InOut => self.place(spec, param, given, out, variables)?,
                },
                (kind, Direction::In, _) if ObjectKind::of(kind).is_some() => {
                    self.handles(spec, param, given, out, variables)?
                }
                (kind, ..) if ObjectKind::of(kind).is_some() => return Err(Refusal::Function(name)),
                (_, Direction::Out, Length::One) if param.name == "flag" && spec.class == Class::Poll => {
                    out.helpers.flag = true;
                    "&flag".into()
                }
                (kind, Direction::Out, _) => format!("({} *)sink", c_type(kind)),
                (kind, direction, Length::One) => {
                    let value = self.scalar(spec, param, given, comm.as_deref(), out)?;
                    if direction == Direction::InOut {
                        format!("&({}){{{value}}}", c_type(kind))
                    } else {
                        value
                    }
                }
                (kind, Direction::InOut, _) if !given.is_empty() => {
                    format!("({}[]){{{}}}", c_type(kind), self.values(spec, param, given)?)
                }
                _ => match self.array(spec, param, given, out)? {
                    None if param.name.ends_with("weights") => "MPI_UNWEIGHTED".into(),
                    None => "NULL".into(),
                    Some(table) => table,
                },
            });
        }
        let call = format!("{name}({});", words.join(", "));
        let statement = match words.iter().any(|word| word == "&flag") {
            true => format!("do {call} while (!flag);"),
            false => call,
        };
        if name == "MPI_Init_thread" {
            after.push("begin();".into());
        }
        Ok([before, vec![statement], after].concat())
    }

    /// Formula of a column, partners by their own rules.
    fn formula(&self, argument: &Argument, column: &[(u32, i64)]) -> Formula {
        match argument.meaning {
            Meaning::Partner => self.formulas.partner(column),
            _ => self.formulas.number(column),
        }
    }

    fn scalar(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        comm: Option<&str>,
        out: &mut Expressions,
    ) -> Result<String, Refusal> {
        let [(argument, column)] = &given[..] else { return Err(Refusal::NoArguments(spec.name)) };
        self.check(spec, param, column)?;
        let formula = self.formula(argument, column);
        let shown = |value| self.shown(spec, param, value);
        let text = out.value(&formula, param.name, c_type(param.kind), &shown);
        let is_real = column.iter().any(|&(_, value)| value >= 0);
        Ok(match comm {
            Some(comm) if argument.meaning == Meaning::Partner && is_real && comm != "MPI_COMM_WORLD" => {
                out.helpers.local = true;
                format!("local({comm}, {text})")
            }
            _ => text,
        })
    }

    /// Refuses values that mean something only to the recorded machine.
    fn check(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        column: &[(u32, i64)],
    ) -> Result<(), Refusal> {
        let meaningless = Refusal::Meaningless(spec.name, param.name);
        let set = Set::of_parameter(Function::by_name(spec.name).unwrap_or(Function(0)), param.name);
        let is_unnamed = |value: i64| match (set, self.family) {
            (Some(Set::Keyval), Some(family)) => {
                set.and_then(|set| set.named(param.name, family, value)).is_none()
            }
            (Some(_), None) => true,
            _ => false,
        };
        let is_address = param.kind == Kind::Aint;
        let bad = column.iter().any(|&(_, value)| is_unnamed(value) || is_address && value.abs() >= ADDRESS);
        if bad { Err(meaningless) } else { Ok(()) }
    }

    /// A number as C names it.
    fn shown(&self, spec: &'static FunctionSpec, param: &'static Param, value: i64) -> String {
        let set = Set::of_parameter(Function::by_name(spec.name).unwrap_or(Function(0)), param.name);
        if let (Some(set), Some(family)) = (set, self.family)
            && let Some(name) = set.named(param.name, family, value)
        {
            return name.replace('|', " | ");
        }
        match (param.kind, value) {
            (Kind::Rank, ANY_SOURCE) => "MPI_ANY_SOURCE".into(),
            (Kind::Rank, PROC_NULL) => "MPI_PROC_NULL".into(),
            (Kind::Rank, ROOT) => "MPI_ROOT".into(),
            (Kind::Tag, ANY_TAG) => "MPI_ANY_TAG".into(),
            (Kind::IntOrUndefined, UNDEFINED) => "MPI_UNDEFINED".into(),
            _ => value.to_string(),
        }
    }

    /// The table of an array's values; `None` where the program passed none.
    fn array(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        out: &mut Expressions,
    ) -> Result<Option<String>, Refusal> {
        let Some((_, first)) = given.first() else { return Ok(None) };
        for (_, column) in given {
            self.check(spec, param, column)?;
        }
        let is_same = given.iter().all(|(_, column)| column.iter().all(|&(_, value)| value == column[0].1));
        let shown = |value| self.shown(spec, param, value);
        if is_same {
            let values: Vec<String> = given.iter().map(|(_, column)| shown(column[0].1)).collect();
            return Ok(Some(out.tables.name(param.name, c_type(param.kind), &values)));
        }
        let mut rows = vec![Vec::new(); self.program.ranks as usize];
        for (place, &(rank, _)) in first.iter().enumerate() {
            rows[rank as usize] = given.iter().map(|(_, column)| shown(column[place].1)).collect();
        }
        Ok(Some(format!("{}[rank]", out.tables.of_rows(param.name, c_type(param.kind), &rows))))
    }

    /// Values of an array that MPI writes to.
    fn values(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
    ) -> Result<String, Refusal> {
        let one = |(_, column): &(Argument, Vec<(u32, i64)>)| {
            self.check(spec, param, column)?;
            let first = column.first().map_or(0, |&(_, value)| value);
            let same = column.iter().all(|&(_, value)| value == first);
            same.then(|| self.shown(spec, param, first)).ok_or(Refusal::Differs(spec.name, param.name))
        };
        Ok(given.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(", "))
    }

    /// The handle that a parameter names.
    fn handle(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        out: &mut Expressions,
        variables: &mut Variables,
    ) -> Result<String, Refusal> {
        let [(argument, column)] = &given[..] else { return Err(Refusal::NoArguments(spec.name)) };
        let unseen = || Refusal::Unseen(spec.name, param.name);
        let kind = ObjectKind::of(param.kind).ok_or_else(unseen)?;
        let word = column.first().ok_or_else(unseen)?.1;
        if let Some(index) = index_of_predefined(word as u64) {
            let is_same = column.iter().all(|&(_, value)| value == word);
            let name = PREDEFINED.get(index).map(|&(_, name)| name.to_owned());
            return name.filter(|_| is_same).ok_or(Refusal::Differs(spec.name, param.name));
        }
        for &(_, word) in column {
            if index_of_predefined(word as u64).is_some() {
                return Err(Refusal::Differs(spec.name, param.name));
            }
            if !(1..MOST_OBJECTS).contains(&word) {
                return Err(unseen());
            }
            let most = variables.objects.entry(kind.name()).or_default();
            *most = (*most).max(word + 1);
        }
        let formula = self.formula(argument, column);
        let number = out.value(&formula, kind.name(), "int", &|value| value.to_string());
        Ok(format!("{}[{number}]", kind.name()))
    }

    /// Address of the handle that a call writes. MPI's own objects are no variables: a copy is written.
    fn place(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        out: &mut Expressions,
        variables: &mut Variables,
    ) -> Result<String, Refusal> {
        let handle = self.handle(spec, param, given, out, variables)?;
        Ok(match handle.starts_with("MPI_") {
            true => format!("&({}){{{handle}}}", handle_type(param.kind)),
            false => format!("&{handle}"),
        })
    }

    /// An array of handles, as a literal.
    fn handles(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        out: &mut Expressions,
        variables: &mut Variables,
    ) -> Result<String, Refusal> {
        if given.is_empty() {
            return Ok("NULL".into());
        }
        let each = given.iter().map(|one| {
            let one: Columns = vec![one.clone()];
            self.handle(spec, param, &one, out, variables)
        });
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(format!("({}[]){{{}}}", handle_type(param.kind), each.join(", ")))
    }

    /// Numbers of the requests that a parameter names, `None` for `MPI_REQUEST_NULL`.
    fn requests(
        &self,
        spec: &'static FunctionSpec,
        param: &'static Param,
        given: &Columns,
        out: &mut Expressions,
        variables: &Variables,
    ) -> Result<Vec<Option<String>>, Refusal> {
        let one = |(_, column): &(Argument, Vec<(u32, i64)>)| {
            if column.iter().all(|&(_, label)| label == NO_REQUEST) {
                return Ok(None);
            }
            let number = |&(rank, label): &(u32, i64)| match variables.requests.get(&label) {
                Some(&number) => Ok((rank, number as i64)),
                None if label == NO_REQUEST => Err(Refusal::Differs(spec.name, param.name)),
                None => Err(Refusal::Unseen(spec.name, param.name)),
            };
            let column: Vec<(u32, i64)> = column.iter().map(number).collect::<Result<_, _>>()?;
            let formula = self.formulas.number(&column);
            Ok(Some(out.value(&formula, "request", "int", &|value| value.to_string())))
        };
        given.iter().map(one).collect()
    }
}

/// The variable of a request.
fn variable(number: Option<&Option<String>>, out: &mut Expressions) -> String {
    match number {
        Some(Some(number)) => format!("request[{number}]"),
        _ => {
            out.helpers.no_request = true;
            "no_request".into()
        }
    }
}

/// An array of requests: those variables, where they are beside each other; else copies.
fn gathered(
    all: &[Option<String>],
    out: &mut Expressions,
    variables: &mut Variables,
    before: &mut Vec<String>,
    after: &mut Vec<String>,
) -> String {
    if all.is_empty() {
        return "NULL".into();
    }
    let numbers: Option<Vec<usize>> = all.iter().map(|number| number.as_ref()?.parse().ok()).collect();
    if let Some(numbers) = &numbers
        && numbers.iter().copied().eq(numbers[0]..numbers[0] + all.len())
    {
        return format!("&request[{}]", numbers[0]);
    }
    variables.gathered = variables.gathered.max(all.len());
    out.helpers.gather = true;
    let which: Vec<&str> = all.iter().map(|number| number.as_deref().unwrap_or("-1")).collect();
    let list = format!("(int[]){{{}}}", which.join(", "));
    before.push(format!("gather({}, {list});", all.len()));
    after.push(format!("scatter({}, {list});", all.len()));
    "gathered".into()
}

fn buffer(
    spec: &'static FunctionSpec,
    param: &'static Param,
    direction: Direction,
    given: &Columns,
    out: &mut Expressions,
) -> Result<String, Refusal> {
    let in_place = |&(_, value): &(u32, i64)| value == BUFFER_IN_PLACE;
    let column: Vec<(u32, i64)> = given.iter().flat_map(|(_, column)| column.iter().copied()).collect();
    if column.iter().any(in_place) {
        return match column.iter().all(in_place) {
            true => Ok("MPI_IN_PLACE".into()),
            false => Err(Refusal::Differs(spec.name, param.name)),
        };
    }
    if spec.name.starts_with("MPI_Buffer_attach") {
        out.helpers.attached = true;
        return Ok("attached".into());
    }
    Ok(if spec.name.starts_with("MPI_Buffer_detach") {
        "sink".into()
    } else if direction == Direction::In {
        "out".into()
    } else {
        "in".into()
    })
}

fn text(spec: &'static FunctionSpec, param: &'static Param, given: &Columns) -> Result<String, Refusal> {
    let mut words = Vec::with_capacity(given.len());
    for (_, column) in given {
        let first = column.first().map_or(0, |&(_, value)| value);
        if column.iter().any(|&(_, value)| value != first) {
            return Err(Refusal::Differs(spec.name, param.name));
        }
        words.push(first as u64);
    }
    let (text, _) = get_text(&words).ok_or(Refusal::NoArguments(spec.name))?;
    let safe = |letter: char| match letter {
        '"' | '\\' | '?' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => letter.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect(),
    };
    Ok(format!("\"{}\"", text.chars().map(safe).collect::<String>()))
}

/// C type of a number.
fn c_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "MPI_Count",
        Kind::Aint => "MPI_Aint",
        Kind::Offset => "MPI_Offset",
        _ => "int",
    }
}

/// C type of a handle.
pub fn handle_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Comm => "MPI_Comm",
        Kind::Datatype => "MPI_Datatype",
        Kind::Op => "MPI_Op",
        Kind::Group => "MPI_Group",
        Kind::Info => "MPI_Info",
        Kind::Errhandler => "MPI_Errhandler",
        _ => "MPI_Request",
    }
}
