//! Addresses that stand for the buffers of a call.

use ampl_core::mpi::{Direction, Param};
use ampl_core::value::Value;
use ampl_reader::Call;
use ampl_replay::completions::{input, output};

use super::ffi::{self, Constant};
use super::player::Player;
use super::problem::Problem;

/// The buffer that `MPI_Buffer_attach` has lent.
const ATTACHED: &str = "attached";
/// A window's memory until its handle is known.
const NEW_WINDOW: &str = "window";
/// Bytes that a message in an attached buffer may take here and not where it was recorded, for a few messages.
const BUFFER_MARGIN: usize = 1 << 16;

fn number(call: &Call, names: &[&str]) -> Option<usize> {
    let value = names.iter().find_map(|name| input(call, name))?;
    match value {
        Value::Int(number) => usize::try_from(*number).ok(),
        Value::List(values) => {
            let sum = values.iter().filter_map(|value| match value {
                Value::Int(number) => usize::try_from(*number).ok(),
                _ => None,
            });
            Some(sum.fold(0, usize::saturating_add))
        }
        _ => None,
    }
}

/// Names of the count and the datatype that go with a buffer.
fn described(buffer: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match buffer {
        "sendbuf" => {
            (&["sendcount", "sendcounts", "count", "recvcounts", "recvcount"], &["sendtype", "datatype"])
        }
        "recvbuf" => (&["recvcount", "recvcounts", "count"], &["recvtype", "datatype"]),
        "origin_addr" => (&["origin_count"], &["origin_datatype", "datatype"]),
        "result_addr" => (&["result_count"], &["result_datatype", "datatype"]),
        "inbuf" => (&["incount", "insize", "count"], &["datatype"]),
        "outbuf" => (&["outsize", "outcount"], &["datatype"]),
        _ => (&["count"], &["datatype"]),
    }
}

/// Address for the buffer `param` of `call`.
pub fn address(
    player: &mut Player<'_>,
    call: &Call,
    param: &'static Param,
    given: Option<&Value>,
    direction: Direction,
) -> Result<usize, Problem> {
    let name = call.function.base_name();
    let size = number(call, &["size"]).unwrap_or(0);
    match (name, param.name) {
        ("MPI_Win_create", "base") => return Ok(player.memory.lend(NEW_WINDOW.to_owned(), size)?),
        ("MPI_Win_attach", "base") => return Ok(player.memory.lend(label(given), size)?),
        ("MPI_Win_detach", "base") => return Ok(player.memory.lent(&label(given)).unwrap_or(0)),
        ("MPI_Buffer_attach" | "MPI_Comm_attach_buffer" | "MPI_Session_attach_buffer", "buffer") => {
            return Ok(player.memory.lend(ATTACHED.to_owned(), size + BUFFER_MARGIN)?);
        }
        ("MPI_Free_mem", "base") => {
            let found = player.memory.given.remove(&label(given));
            return found.ok_or_else(|| Problem::Unknown("this memory".to_owned()));
        }
        _ => {}
    }
    let bottom = match given {
        Some(Value::Name(name)) if name == "MPI_IN_PLACE" => {
            return Constant::InPlace.word().ok_or_else(|| Problem::NoConstant(name.clone()));
        }
        Some(Value::Name(name)) => name == "MPI_BOTTOM",
        _ => false,
    };
    let (counts, types) = described(param.name);
    let count = number(call, counts).unwrap_or(1) * number(call, &["partitions"]).unwrap_or(1);
    let datatype = types.iter().find_map(|name| input(call, name));
    let handle = datatype.map(|value| player.objects.datatype(value)).transpose()?.flatten();
    let extents = handle.and_then(ffi::extents);
    let (extent, lower, own) = extents.unwrap_or((1, 0, 1));
    let sends = direction == Direction::In;
    let bytes = count.saturating_mul(extent.unsigned_abs() as usize).max(own.unsigned_abs() as usize);
    if bottom && count == 0 {
        return Ok(0);
    }
    if bottom {
        // Data at absolute addresses, which are those of the recorded process.
        return Ok(player.memory.absolute(sends, lower, bytes)?);
    }
    Ok(if sends { player.memory.source(bytes)? } else { player.memory.target(bytes)? })
}

fn label(value: Option<&Value>) -> String {
    value.map(Value::to_string).unwrap_or_default()
}

/// Name of a window's memory.
fn of_window(value: Option<&Value>) -> String {
    label(value)
}

/// Keeps memory with the window that has it, until this is freed.
pub fn note(player: &mut Player<'_>, call: &Call) {
    match call.function.base_name() {
        "MPI_Win_create" => player.memory.rename(NEW_WINDOW, of_window(output(call, "win"))),
        "MPI_Win_free" => player.memory.take_back(&of_window(input(call, "win"))),
        "MPI_Win_detach" => player.memory.take_back(&label(input(call, "base"))),
        "MPI_Buffer_detach" | "MPI_Comm_detach_buffer" | "MPI_Session_detach_buffer" => {
            player.memory.take_back(ATTACHED);
        }
        _ => {}
    }
}
