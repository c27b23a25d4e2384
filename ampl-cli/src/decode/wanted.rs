//! The calls that are asked for.

use ampl_core::config::keys::nearest;
use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_reader::call_selection::CallSelection;

use super::Args;
use crate::failure::{Failure, USAGE};
use crate::selection;

/// The calls that `args` ask for.
///
/// # Errors
/// A [`Failure`] of status 2 for what cannot be read, and for a function that MPI does not have.
pub fn wanted(args: &Args) -> anyhow::Result<CallSelection> {
    let selection = selection::parse(args.from.as_deref(), args.until.as_deref(), args.ranks.as_deref())?;
    let functions = args.functions.iter().map(|name| function(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(CallSelection::new(selection, functions))
}

/// The function of that name, in whichever case.
fn function(name: &str) -> anyhow::Result<u16> {
    let folded = || FUNCTIONS.iter().position(|spec| spec.name.eq_ignore_ascii_case(name));
    let found = Function::by_name(name).map(|function| function.0).or_else(|| folded().map(|at| at as u16));
    found.ok_or_else(|| {
        let names = || FUNCTIONS.iter().map(|spec| spec.name);
        let prefixed = format!("MPI_{name}");
        let fix = match nearest(name, names()).or_else(|| nearest(&prefixed, names())) {
            Some(near) => format!("did you mean {near}?"),
            None => "name a function of MPI, as in MPI_Send".into(),
        };
        Failure::message(USAGE, format!("'{name}' is no function of MPI"), "--fn", fix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_slips_are_told() {
        let send = Function::by_name("MPI_Send").unwrap().0;
        assert_eq!(function("MPI_Send").unwrap(), send);
        assert_eq!(function("mpi_send").unwrap(), send);
        for (slip, near) in [("MPI_Alreduce", "MPI_Allreduce?"), ("Isend", "MPI_Isend?"), ("qqqq", "as in")] {
            let error = function(slip).unwrap_err();
            assert!(Failure::has(&error, USAGE) && error.to_string().contains(near), "{error}");
        }
    }
}
