//! A marker's call site, from `file:line` to the code it compiled to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use ampl_core::config::Marker;
use ampl_core::config::site::{CodeRange, Site};

use crate::elf;
use crate::failure::{Failure, USAGE};
use crate::job::Job;

/// What one module's line table says of a source line.
#[derive(Debug, Default)]
struct Lookup {
    /// Code of the line, half open, in the module's own addresses.
    ranges: Vec<(u64, u64)>,
    /// Full names of the source files that match.
    files: BTreeSet<String>,
    /// Lines of those files that have code.
    lines: BTreeSet<u32>,
}

/// Replaces a `file:line` in the job's marker by code ranges of `programs` or their libraries; returns the new
/// marker if there was something to replace.
///
/// Offsets are the addresses of the module's own ELF file: what is left of a run-time address after subtracting
/// the load bias (`dlpi_addr`). They are what `addr2line -e MODULE` takes.
///
/// # Errors
/// A [`Failure`] of status 2 when no module has code for that line, or several source files match.
pub fn resolve(job: &mut Job, programs: &[PathBuf]) -> anyhow::Result<Option<String>> {
    let Marker::Mpi { function, site: Some(site) } = &job.config.window.marker else { return Ok(None) };
    let Some(Site::Line { file, line }) = Site::parse(site) else { return Ok(None) };
    let fail = |what: String, fix: String| {
        Failure::message(USAGE, what, format!("window.marker, {}", job.place()), fix)
    };
    let mut code = Vec::new();
    let mut seen = Lookup::default();
    let mut look = |modules: &[PathBuf]| {
        for module in modules.iter().collect::<BTreeSet<_>>() {
            let found = look_up(module, &file, line).unwrap_or_default();
            let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let range = |(low, high)| CodeRange { module: name.clone(), low, high: Some(high) };
            code.extend(merge(found.ranges).into_iter().map(range));
            seen.files.extend(found.files);
            seen.lines.extend(found.lines);
        }
        seen.files.is_empty()
    };
    // Reading every library takes a moment; the executable usually has the loop.
    if look(programs) {
        let libraries: BTreeSet<PathBuf> =
            programs.iter().filter_map(|program| elf::libraries(program)).flatten().collect();
        look(&libraries.into_iter().collect::<Vec<_>>());
    }
    if seen.files.is_empty() {
        let fix = "compile that file with -g, or use MODULE+0xOFFSET".to_owned();
        return Err(fail(format!("no line information for '{file}' in the program or its libraries"), fix));
    }
    if seen.files.len() > 1 {
        let names = seen.files.into_iter().collect::<Vec<_>>().join(", ");
        return Err(fail(
            format!("'{file}' is several source files: {names}"),
            "add a directory to the name".into(),
        ));
    }
    if code.is_empty() {
        let near = seen.lines.iter().min_by_key(|have| have.abs_diff(line));
        let fix = near.map_or_else(String::new, |near| format!("the nearest line that has is {file}:{near}"));
        return Err(fail(format!("'{file}:{line}' has no code of its own"), fix));
    }
    let marker =
        Marker::Mpi { function: function.clone(), site: Some(Site::Code(code).to_string()) }.to_string();
    job.set("window.marker", &marker)?;
    Ok(Some(marker))
}

fn look_up(module: &Path, file: &str, line: u32) -> Option<Lookup> {
    let loader = Loader::new(module).ok()?;
    let mut found = Lookup::default();
    for (address, length, location) in loader.find_location_range(0, u64::MAX).ok()? {
        let (Some(name), Some(at)) = (location.file, location.line) else { continue };
        if !Path::new(name).ends_with(file) {
            continue;
        }
        found.files.insert(name.to_owned());
        found.lines.insert(at);
        if at == line && length > 0 {
            found.ranges.push((address, address + length));
        }
    }
    Some(found)
}

/// The ranges in order, touching ones joined.
fn merge(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_join() {
        assert_eq!(merge(vec![(8, 9), (1, 3), (3, 5), (4, 6)]), [(1, 6), (8, 9)]);
    }

    #[test]
    fn this_line_has_code() {
        let line = line!();
        let me = std::env::current_exe().unwrap();
        let found = look_up(&me, "src/marker_site.rs", line).unwrap();
        assert_eq!(found.files.len(), 1, "{:?}", found.files);
        assert!(!found.ranges.is_empty() && found.lines.contains(&line));
        let nothing = look_up(&me, "src/marker_site.rs", 1).unwrap();
        assert!(nothing.ranges.is_empty() && !nothing.lines.is_empty());
        assert!(look_up(&me, "marker_site.rsx", line).unwrap().files.is_empty());
    }
}
