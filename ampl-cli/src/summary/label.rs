//! Call sites on a line that has no room.

use ampl_core::mpi::FUNCTIONS;

use crate::human::cut;
use crate::symbols::{Function, Symbols};

/// What a label tells of a place without line information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// `scope::function`
    Function,
    /// `scope::function+0x1f`, for two calls of one function.
    Offset,
    /// `module+0xoffset`, which always differs.
    Address,
}

/// Where calls are made whose sites were not told apart.
pub(super) const NOWHERE: (&str, u64) = ("?", 0);

/// A place in the source where a function of MPI is called.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// Index of the function.
    pub function: u16,
    /// `file:line`, where known.
    pub line: Option<String>,
    /// Modules and offsets that calls from here return to; one at least.
    pub addresses: Vec<(&'a str, u64)>,
    /// Where its function was called from, and so on outwards; none where paths are not told apart.
    pub callers: Vec<(&'a str, u64)>,
}

impl Place<'_> {
    /// `MPI_Send @ PLACE` in `room` columns, the place as `function (file:line)`, as `file:line` where that is too
    /// long, and without line information as `detail` says. What cannot be shortened may still be longer.
    pub(super) fn label(&self, symbols: &mut Symbols, detail: Detail, room: usize) -> String {
        // Numbers of a damaged file may name no function.
        let mpi = FUNCTIONS.get(usize::from(self.function)).map_or("?", |spec| spec.name);
        if self.addresses == [NOWHERE] {
            return mpi.into();
        }
        let room = room.saturating_sub(mpi.len() + 3);
        let callers = self.callers(symbols, room / 2);
        let room = room.saturating_sub(callers.chars().count());
        let around = self.around(symbols);
        let place = match (&self.line, around, detail) {
            (Some(line), around, _) => {
                let rest = room.saturating_sub(line.chars().count() + 3);
                let name = around.and_then(|around| shorten(&around.name, rest));
                name.map_or_else(|| line.clone(), |name| format!("{name} ({line})"))
            }
            (None, Some(Function { name, .. }), Detail::Function) => short(&name, room),
            (None, Some(Function { name, offset: Some(offset) }), Detail::Offset) => {
                let suffix = format!("+{offset:#x}");
                short(&name, room.saturating_sub(suffix.len())) + &suffix
            }
            _ => symbols.name(self.addresses[0].0, self.addresses[0].1),
        };
        format!("{mpi} @ {place}{callers}")
    }

    /// ` < CALLER < ITS CALLER`, as many as there is room for.
    fn callers(&self, symbols: &mut Symbols, room: usize) -> String {
        let mut text = String::new();
        for &(module, offset) in &self.callers {
            let function = symbols.function(module, offset).map(|function| function.name);
            let name = function.as_deref().and_then(|name| shorten(name, room)).or(function);
            let name = name.unwrap_or_else(|| symbols.name(module, offset));
            if text.chars().count() + 3 + name.chars().count() > room {
                break;
            }
            text += " < ";
            text += &name;
            if name == "main" {
                break;
            }
        }
        text
    }

    /// The function that all addresses are in; its offset is that of the first.
    fn around(&self, symbols: &mut Symbols) -> Option<Function> {
        let mut all = self.addresses.iter().map(|&(module, offset)| symbols.function(module, offset));
        let first = all.next()??;
        all.all(|other| other.is_some_and(|other| other.name == first.name)).then_some(first)
    }
}

/// As [`shorten`]; a name that is too long nevertheless is cut.
fn short(name: &str, room: usize) -> String {
    shorten(name, room).unwrap_or_else(|| cut(name, room))
}

/// `name` in at most `room` columns: first without template arguments, then without outer scopes. `None` if its
/// last part is longer still.
fn shorten(name: &str, room: usize) -> Option<String> {
    let fits = |name: &str| name.chars().count() <= room;
    if fits(name) {
        return Some(name.to_owned());
    }
    // The brackets of operators are names.
    let (scopes, operator) = name.split_at(name.rfind("::operator").unwrap_or(name.len()));
    let bare = without_templates(scopes) + operator;
    let mut rest = &*bare;
    while !fits(rest) {
        rest = &rest[scope_end(rest)?..];
    }
    Some(rest.to_owned())
}

/// `a<b<c>>::d` as `a::d`.
fn without_templates(name: &str) -> String {
    let mut depth = 0_u32;
    let outside = |&letter: &char| {
        depth += u32::from(letter == '<');
        let outside = depth == 0;
        depth = depth.saturating_sub(u32::from(letter == '>'));
        outside
    };
    let bare: String = name.chars().filter(outside).collect();
    // Rust writes `<Type as Trait>::function` and `function::<T>`.
    bare.trim_start_matches("::").trim_end_matches("::").to_owned()
}

/// Bytes of the outermost scope with its `::`; those in brackets are not the name's own.
fn scope_end(name: &str) -> Option<usize> {
    let mut depth = 0_i32;
    name.char_indices().find_map(|(at, letter)| {
        depth += i32::from("({".contains(letter)) - i32::from(")}".contains(letter));
        (depth == 0 && name[at..].starts_with("::")).then_some(at + 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_what_tells_least() {
        for (name, room, expected) in [
            ("exchange", 8, Some("exchange")),
            ("exchange", 7, None),
            ("LAMMPS_NS::CommBrick::forward_comm", 34, Some("LAMMPS_NS::CommBrick::forward_comm")),
            ("LAMMPS_NS::CommBrick::forward_comm", 33, Some("CommBrick::forward_comm")),
            ("LAMMPS_NS::CommBrick::forward_comm", 22, Some("forward_comm")),
            ("LAMMPS_NS::CommBrick::forward_comm", 11, None),
            ("a::Grid<b::C<int>, 3>::swap<double>", 13, Some("a::Grid::swap")),
            ("a::Grid<b::C<int>, 3>::swap<double>", 12, Some("Grid::swap")),
            ("(anonymous namespace)::f", 10, Some("f")),
            ("run(a::B)::{lambda(a::C)#1}::go", 25, Some("{lambda(a::C)#1}::go")),
            ("<a::Grid as b::Swap>::swap", 10, Some("swap")),
            ("a::swap::<f64>", 8, Some("a::swap")),
            ("big::Box<int>::operator<<", 15, Some("Box::operator<<")),
            ("big::Box<int>::operator<<", 10, Some("operator<<")),
            ("big::Box<int>::operator<<", 9, None),
        ] {
            assert_eq!(shorten(name, room).as_deref(), expected, "{name} in {room}");
        }
    }

    #[test]
    fn lines_come_with_their_function_where_there_is_room() {
        let me = std::env::current_exe().unwrap();
        let mut symbols = Symbols::default();
        let mpi = FUNCTIONS[0].name;
        let place = |line: Option<&str>, offset| Place {
            function: 0,
            line: line.map(str::to_owned),
            addresses: vec![(me.to_str().unwrap(), offset)],
            callers: Vec::new(),
        };
        // Nothing is known of the first byte.
        let label = place(Some("a.c:3"), 0).label(&mut symbols, Detail::Function, 60);
        assert_eq!(label, format!("{mpi} @ a.c:3"));
        assert!(place(None, 0).label(&mut symbols, Detail::Function, 60).ends_with("+0x0"));
        let (libc, atoi, _) = crate::symbols::tests::atoi();
        let addresses = vec![(&*libc, atoi + 1)];
        let place = Place { function: 0, line: Some("a.c:3".into()), addresses, callers: Vec::new() };
        let room = mpi.len() + " @ atoi (a.c:3)".len();
        assert_eq!(place.label(&mut symbols, Detail::Function, room), format!("{mpi} @ atoi (a.c:3)"));
        assert_eq!(place.label(&mut symbols, Detail::Function, room - 1), format!("{mpi} @ a.c:3"));
        // Two functions share the line.
        let place = Place { addresses: vec![(&libc, atoi + 1), (&libc, atoi)], ..place };
        assert_eq!(place.label(&mut symbols, Detail::Function, room), format!("{mpi} @ a.c:3"));
    }
}
