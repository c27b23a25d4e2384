//! Labels of call sites for lines with little room.

use ampl_analysis::calls::{NOWHERE, Place, starts_programs};
use ampl_core::mpi::Function as MpiFunction;
use ampl_reader::sites::{Function, Symbols};

use crate::human::{fit, middle};

/// Form of a label for a place without line information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// `scope::function`
    Function,
    /// `scope::function+0x1f`, for two calls of one function.
    Offset,
    /// `module+0xoffset`, which always differs.
    Address,
}

/// Columns of a caller's name, if it can be shortened so far.
const LONGEST_CALLER: usize = 40;
/// Behind a wrapper whose calls differ in who called it.
const SEVERAL_CALLERS: &str = " < several callers";

/// `MPI_Send @ PLACE` in `room` columns, the place as `function (file:line)`, as `file:line` where that is too
/// long, and without line information as `detail` says. What cannot be shortened may still be longer.
pub fn label(place: &Place<'_>, symbols: &mut Symbols, detail: Detail, room: usize) -> String {
    let mpi = MpiFunction::name_of(place.function);
    if place.addresses == [NOWHERE] {
        return mpi.into();
    }
    let around = around(place, symbols);
    let room = room.saturating_sub(mpi.len() + 3);
    let callers = match place.callers.is_empty() {
        true => way(place, symbols, around.as_ref(), mpi),
        false => callers(place, symbols, room / 2),
    };
    let room = room.saturating_sub(callers.chars().count());
    let shown = match (&place.line, around, detail) {
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
        _ => address(&symbols.name(place.addresses[0].0, place.addresses[0].1), room),
    };
    format!("{mpi} @ {shown}{callers}")
}

/// ` < CALLER < ITS CALLER`, as many as there is room for.
fn callers(place: &Place<'_>, symbols: &mut Symbols, room: usize) -> String {
    let mut text = String::new();
    for &(module, offset) in &place.callers {
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

/// True where calls of a wrapper, or of code without names, came from several callers.
pub fn has_several_callers(place: &Place<'_>, symbols: &mut Symbols) -> bool {
    let mpi = MpiFunction::name_of(place.function);
    let around = around(place, symbols);
    place.callers.is_empty() && way(place, symbols, around.as_ref(), mpi).ends_with(SEVERAL_CALLERS)
}

/// Outward callers of a call in an MPI wrapper, or in code without a name. They end with the first function that
/// is neither, or with `SEVERAL_CALLERS`.
fn way(place: &Place<'_>, symbols: &mut Symbols, around: Option<&Function>, mpi: &str) -> String {
    let mut text = String::new();
    let Some((functions, several)) = &place.common_callers else { return text };
    let is_wrapper = |own: &Function| place.wrapper.is_some() || wraps(&own.name, mpi);
    if place.addresses == [NOWHERE] || around.is_some_and(|own| !is_wrapper(own)) {
        return text;
    }
    // The first caller outside of a wrapper that has no name; it is shown where no caller has one.
    let mut nameless = None;
    for (at, &(module, offset)) in functions.iter().enumerate() {
        let is_inner = place.wrapper.is_some_and(|frames| at < frames);
        let Some(Function { name, .. }) = symbols.function(module, offset) else {
            if around.is_some() && !is_inner && !starts_programs(module) {
                nameless.get_or_insert(format!("{}+{:#x}", file_name(module), offset.saturating_sub(1)));
            }
            continue;
        };
        if is_start(&name) {
            break;
        }
        text += " < ";
        text += &shorten(&name, LONGEST_CALLER).unwrap_or_else(|| name.clone());
        if !wraps(&name, mpi) && !is_inner {
            return text;
        }
    }
    if let Some(nameless) = nameless {
        text += " < ";
        text += &nameless;
    }
    if *several {
        text += SEVERAL_CALLERS;
    }
    text
}

/// `MPI_Send @ SITE` in at most `room` columns: a site that is too long loses its address, then template arguments and
/// outer scopes, then its middle.
pub fn fitted(title: &str, room: usize) -> String {
    if title.chars().count() <= room {
        return title.to_owned();
    }
    let Some((function, site)) = title.split_once(" @ ") else { return fit(title, room) };
    let name = site.strip_suffix(')').and_then(|site| site.rsplit_once(" (")).map_or(site, |(name, _)| name);
    let room = room.saturating_sub(function.chars().count() + 3).max(SHORTEST_MODULE);
    let is_address = name.contains("+0x");
    format!("{function} @ {}", if is_address { address(name, room) } else { short(name, room) })
}

/// True for a function of the C library that starts programs or threads: it says nothing about a call.
pub fn is_start(name: &str) -> bool {
    name == "_start"
        || name.starts_with("__libc_start")
        || ["start_thread", "clone", "clone3"].contains(&name)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The function that all addresses are in; its offset is that of the first.
fn around(place: &Place<'_>, symbols: &mut Symbols) -> Option<Function> {
    let mut all = place.addresses.iter().map(|&(module, offset)| symbols.function(module, offset));
    let first = all.next()??;
    all.all(|other| other.is_some_and(|other| other.name == first.name)).then_some(first)
}

/// True where the function `name` only forwards calls of `mpi`, judged by its name: `hypre_MPI_Waitall`,
/// `mpiWaitall`.
fn wraps(name: &str, mpi: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().replace('_', "");
    let stem = plain(mpi.strip_prefix("MPI_").unwrap_or(mpi));
    let (whole, own) = (plain(name), plain(name.rsplit("::").next().unwrap_or(name)));
    whole.contains(&stem) && (whole.contains("mpi") || own.starts_with(&stem) || own.ends_with(&stem))
}

/// `module+0xoffset` in `room` columns, where that is room enough for the offset: modules lose their middle.
fn address(name: &str, room: usize) -> String {
    match name.rsplit_once("+0x") {
        Some((module, offset)) => {
            let rest = room.saturating_sub(offset.chars().count() + 3);
            format!("{}+0x{offset}", middle(module, rest.max(SHORTEST_MODULE)))
        }
        None => name.to_owned(),
    }
}

/// Columns of a module's name, however little room there is.
const SHORTEST_MODULE: usize = 8;

/// As [`shorten`]; a name that is too long nevertheless loses its middle.
fn short(name: &str, room: usize) -> String {
    shorten(name, room).unwrap_or_else(|| middle(name, room))
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
    use ampl_core::mpi::FUNCTIONS;

    use super::*;

    #[test]
    fn a_site_that_is_too_long_keeps_its_name() {
        let site = "MPI_Send @ LAMMPS_NS::CommBrick::reverse_comm (liblammps.so.0+0x2b0cab)";
        for (title, room, expected) in [
            (site, 80, site),
            (site, 45, "MPI_Send @ LAMMPS_NS::CommBrick::reverse_comm"),
            (site, 34, "MPI_Send @ CommBrick::reverse_comm"),
            (site, 24, "MPI_Send @ reverse_comm"),
            ("MPI_Send @ liblammps.so.0+0x2b0cab", 30, "MPI_Send @ lib…s.so.0+0x2b0cab"),
            ("MPI_Win_fence @ fence.c:9", 34, "MPI_Win_fence @ fence.c:9"),
            ("MPI_Send @ (anonymous namespace)::f", 20, "MPI_Send @ f"),
            ("a region of many words", 12, "a region …"),
        ] {
            assert_eq!(fitted(title, room), expected, "{title} in {room}");
        }
    }

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
    fn wrappers_are_known_by_their_names() {
        for (name, mpi) in [
            ("hypre_MPI_Waitall", "MPI_Waitall"),
            ("mpiAllreduce", "MPI_Allreduce"),
            ("MPIU_Allreduce_Private", "MPI_Allreduce"),
            ("boost::mpi::detail::all_reduce_impl", "MPI_Allreduce"),
            ("comm::Bcast", "MPI_Bcast"),
            ("barrier_", "MPI_Barrier"),
        ] {
            assert!(wraps(name, mpi), "{name}");
        }
        for (name, mpi) in
            [("exchange", "MPI_Waitall"), ("hypre_MPI_Waitall", "MPI_Irecv"), ("main", "MPI_Send")]
        {
            assert!(!wraps(name, mpi), "{name}");
        }
    }

    #[test]
    fn modules_lose_their_middle_and_never_their_offset() {
        assert_eq!(address("app+0x1f40", 20), "app+0x1f40");
        let name = "libpetsc_real_with_a_long_name.so.3.18+0xdeadbeef";
        assert_eq!(address(name, 100), name);
        let short = address(name, 30);
        assert!(short.ends_with(".so.3.18+0xdeadbeef") && short.starts_with("lib"), "{short}");
        assert!(short.contains('…') && short.chars().count() == 30, "{short}");
        assert!(address(name, 3).ends_with("+0xdeadbeef"));
        assert_eq!(address("solver.c:20", 5), "solver.c:20");
    }

    fn copy<'a>(place: &Place<'a>) -> Place<'a> {
        Place {
            line: place.line.clone(),
            addresses: place.addresses.clone(),
            callers: place.callers.clone(),
            common_callers: place.common_callers.clone(),
            ..*place
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
            common_callers: None,
            wrapper: None,
        };
        // The first byte has no symbol.
        let labelled = label(&place(Some("a.c:3"), 0), &mut symbols, Detail::Function, 60);
        assert_eq!(labelled, format!("{mpi} @ a.c:3"));
        assert!(label(&place(None, 0), &mut symbols, Detail::Function, 60).ends_with("+0x0"));
        let (libc, atoi, _) = ampl_testkit::symbols::atoi();
        let addresses = vec![(&*libc, atoi + 1)];
        let place = Place { addresses, ..place(Some("a.c:3"), 0) };
        let room = mpi.len() + " @ atoi (a.c:3)".len();
        assert_eq!(label(&place, &mut symbols, Detail::Function, room), format!("{mpi} @ atoi (a.c:3)"));
        assert_eq!(label(&place, &mut symbols, Detail::Function, room - 1), format!("{mpi} @ a.c:3"));
        // A function that is a wrapper by the structure of calls is shown with its callers.
        let common_callers = Some((vec![(&*libc, atoi + 1)], true));
        let wrapped = Place { common_callers, ..copy(&place) };
        let shown = |wrapper| {
            label(&Place { wrapper, ..copy(&wrapped) }, &mut Symbols::default(), Detail::Function, 90)
        };
        assert_eq!(shown(None), format!("{mpi} @ atoi (a.c:3)"));
        assert_eq!(shown(Some(0)), format!("{mpi} @ atoi (a.c:3) < atoi"));
        assert_eq!(shown(Some(1)), format!("{mpi} @ atoi (a.c:3) < atoi < several callers"));
        // A caller without a name is shown by its address, the code that starts the program never.
        let common_callers = Some((vec![("/nowhere/app", 1)], false));
        let nameless = Place { common_callers, wrapper: Some(0), ..copy(&place) };
        let said = label(&nameless, &mut Symbols::default(), Detail::Function, 90);
        assert_eq!(said, format!("{mpi} @ atoi (a.c:3) < app+0x0"));
        let start = ["_start", "__libc_start_main", "start_thread", "main", "clone_all"].map(is_start);
        assert_eq!(start, [true, true, true, false, false]);
        // Two functions share the line.
        let place = Place { addresses: vec![(&libc, atoi + 1), (&libc, atoi)], ..place };
        assert_eq!(label(&place, &mut symbols, Detail::Function, room), format!("{mpi} @ a.c:3"));
    }
}
