//! Windows as they were written until November 2026, only read: entries of whole bytes, compressed by zstd.

use super::sections::unsqueezed;
use crate::cells::{Cell, Shape};
use crate::model::WindowSummary;
use crate::varint::Reader;

/// The windows in `payload`; `None` where it makes no sense.
pub fn decode(payload: &[u8]) -> Option<Vec<WindowSummary>> {
    let bytes = unsqueezed(payload)?;
    let mut reader = Reader::new(&bytes);
    let mut windows: Vec<WindowSummary> = Vec::new();
    let first = WindowSummary::default();
    while !reader.is_empty() {
        let window = read_window(&mut reader, windows.last().unwrap_or(&first))?;
        windows.push(window);
    }
    Some(windows)
}

fn read_window(reader: &mut Reader<'_>, before: &WindowSummary) -> Option<WindowSummary> {
    let window = before.window.wrapping_add(reader.get()?);
    let start_ns = before.end_ns.wrapping_add(reader.get_signed()?);
    let end_ns = start_ns.wrapping_add(reader.get_signed()?);
    let own_ns = reader.get()?;
    let flags = reader.take(1)?[0];
    let is = |bit: u32| flags >> bit & 1 != 0;
    let repeat = if is(3) { reader.get()? } else { 1 };
    let probability = if is(7) { before.probability } else { get_float(reader)? };
    let inclusion = if is(5) { Some(get_float(reader)?) } else { None };
    let stratum = if is(6) { Some(u16::try_from(reader.get()?).ok()?) } else { None };
    let update = reader.get()?;
    let cells = (0..reader.get()?).map(|_| get_cell(reader)).collect::<Option<_>>()?;
    Some(WindowSummary {
        window,
        start_ns,
        end_ns,
        own_ns,
        kept: is(0),
        drawn: is(2),
        partner: is(4),
        partial: is(1),
        probability,
        inclusion,
        stratum,
        update,
        cells,
        repeat,
    })
}

fn get_float(reader: &mut Reader<'_>) -> Option<f64> {
    Some(f64::from_bits(reader.get()?.swap_bytes()))
}

fn get_cell(reader: &mut Reader<'_>) -> Option<Cell> {
    let shape = Shape::of(reader.take(1)?[0].into())?;
    Cell::get(shape, || get_float(reader))
}
