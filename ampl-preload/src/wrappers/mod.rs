//! The exported symbols: one macro call each, generated from the table of MPI functions.
//!
//! A body puts its words in an array and hands them to [`intercept`](crate::intercept), which
//! forwards them exactly once through the body's `forward`.

use ampl_core::mpi::Function;

use crate::entry::stubs;
use crate::intercept::{intercept, intercept_double};
use crate::symbol::{Language, Symbol};

macro_rules! word {
    ($argument:ident) => {
        usize
    };
}

/// Declares the symbol and its forwarder: transmutes the next definition to the right arity.
macro_rules! symbol {
    ($function:expr, $language:expr, [$($names:expr),+], ($($argument:ident)*), $returns:ty) => {
        #[unsafe(link_section = "ampl_symbols")]
        static SYMBOL: Symbol = Symbol::new($function, $language, &[$($names),+]);

        #[allow(unused_variables, unused_mut, unused_assignments)]
        unsafe fn forward(next: *const (), words: *const usize) -> $returns {
            type Next = unsafe extern "C-unwind" fn($(word!($argument)),*) -> $returns;
            // SAFETY: `next` is a definition of this function, and its arguments are words.
            let next: Next = unsafe { std::mem::transmute(next) };
            let mut at = words;
            // SAFETY: `words` has one word per argument.
            unsafe { next($({ let $argument = *at; at = at.add(1); $argument }),*) }
        }
    };
}

macro_rules! name {
    ($name:ident) => {
        concat!(stringify!($name), "\0")
    };
}

macro_rules! body {
    (word, $function:expr, ($($argument:ident)*)) => {
        unsafe extern "C-unwind" fn body($($argument: usize),*) -> usize {
            crate::hook_plan::fetch_of(Function($function));
            let mut words = [$($argument),*];
            // SAFETY: the application's own arguments.
            unsafe { intercept(&SYMBOL, &mut words, forward) }
        }
    };
    (double, ($($argument:ident)*)) => {
        unsafe extern "C-unwind" fn body($($argument: usize),*) -> f64 {
            let words = [$($argument),*];
            // SAFETY: the application's own arguments.
            unsafe { intercept_double(&SYMBOL, &words, forward) }
        }
    };
}

macro_rules! c {
    ($name:ident, $function:literal, ($($argument:ident)*)) => {
        const _: () = {
            symbol!($function, Language::C, [name!($name), concat!("P", name!($name))], ($($argument)*), usize);
            body!(word, $function, ($($argument)*));
            stubs!(body, $name);
        };
    };
}

macro_rules! c_double {
    ($name:ident, $function:literal, ()) => {
        const _: () = {
            symbol!($function, Language::C, [name!($name), concat!("P", name!($name))], (), f64);
            body!(double, ());
            stubs!(body, $name);
        };
    };
}

/// `MPI_Pcontrol(level, ...)`: the word arguments a caller can have set are forwarded, and the
/// number of vector registers that a variadic call announces is zeroed: ours has none.
macro_rules! pcontrol {
    ($name:ident, $function:literal) => {
        const _: () = {
            #[unsafe(link_section = "ampl_symbols")]
            static SYMBOL: Symbol =
                Symbol::new($function, Language::C, &[name!($name), concat!("P", name!($name))]);

            unsafe fn forward(next: *const (), words: *const usize) -> usize {
                // SAFETY: `next` is MPI_Pcontrol, a variadic C function.
                let next: unsafe extern "C" fn(usize, ...) -> usize = unsafe { std::mem::transmute(next) };
                // SAFETY: `words` has six words.
                unsafe {
                    next(*words, *words.add(1), *words.add(2), *words.add(3), *words.add(4), *words.add(5))
                }
            }
    body!(word, $function, (a b c d e f));
            stubs!(body, $name);
        };
    };
}

/// The profiling name of a function, for callers that skip the usual one.
macro_rules! twin {
    ($name:ident, $function:expr, ($($argument:ident)*)) => {
        const _: () = {
            symbol!($function.0, Language::C, [name!($name)], ($($argument)*), usize);
            body!(word, $function.0, ($($argument)*));
            stubs!(body, $name);
        };
    };
}

/// A tool before ampl, or the program's own profiling layer, keeps `MPI_Init` to itself and goes on by the profiling
/// name: there the agent begins and ends. No other call is recorded so: a tool makes its own that way.
#[allow(non_snake_case)]
mod twins {
    use ampl_core::mpi::ids;

    use super::*;

    twin!(PMPI_Init, ids::MPI_INIT, (a b));
    twin!(PMPI_Init_thread, ids::MPI_INIT_THREAD, (a b c d));
    twin!(PMPI_Finalize, ids::MPI_FINALIZE, ());
}

macro_rules! fortran {
    ([$($name:ident)+], [$($next:ident)+], $function:literal, ($($argument:ident)*)) => {
        const _: () = {
            symbol!($function, Language::Fortran, [$(name!($name),)+ $(name!($next)),+], ($($argument)*), usize);
            body!(word, $function, ($($argument)*));
            stubs!(body, $($name)+);
        };
    };
}

macro_rules! fortran_word {
    ($($rest:tt)*) => {
        fortran!($($rest)*);
    };
}

macro_rules! fortran_pcontrol {
    ($($rest:tt)*) => {
        fortran!($($rest)*);
    };
}

macro_rules! fortran_double {
    ([$($name:ident)+], [$($next:ident)+], $function:literal, ()) => {
        const _: () = {
            symbol!($function, Language::Fortran, [$(name!($name),)+ $(name!($next)),+], (), f64);
            body!(double, ());
            stubs!(body, $($name)+);
        };
    };
}

#[allow(non_snake_case, clippy::too_many_arguments)]
mod generated {
    use super::*;
    include!("generated.rs");
}
