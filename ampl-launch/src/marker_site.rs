//! Call sites of the job that are named by `file:line`: the code they compiled to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use ampl_core::config::site::{CodeRange, Site};
use ampl_core::config::{Config, Event, Marker, SiteMatch, table_path};

use crate::elf;
use crate::failure::{Failure, Kind};
use crate::job::Job;

/// A source line that the job names.
#[derive(Debug)]
struct Named {
    /// Key, as `--set` addresses it.
    key: String,
    /// Text before the site in the value of `key`.
    before: String,
    file: String,
    line: u32,
}

/// Result of looking up one source line in line tables.
#[derive(Clone, Debug, Default)]
struct Lookup {
    code: Vec<CodeRange>,
    /// Full names of the source files that match.
    files: BTreeSet<String>,
    /// Lines of those files that have code.
    lines: BTreeSet<u32>,
}

/// Adds to every `file:line` of the job its code in `programs` or their libraries, unless it is there; returns the
/// settings, `KEY=VALUE`, that do the same.
///
/// Offsets are the addresses of the module's own ELF file: what is left of a run-time address after subtracting
/// the load bias (`dlpi_addr`). They are what `addr2line -e MODULE` takes.
///
/// # Errors
/// A usage [`Failure`] when no module has code for a line, or several source files match.
pub fn resolve(job: &mut Job, programs: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let named = lines_of(&job.config);
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = vec![Lookup::default(); named.len()];
    for program in programs.iter().collect::<BTreeSet<_>>() {
        look_up(program, &named, &mut found);
    }
    // Reading every library takes a moment; the executable usually has the line.
    if found.iter().any(|lookup| lookup.files.is_empty()) {
        let mut in_libraries = vec![Lookup::default(); named.len()];
        let libraries: BTreeSet<PathBuf> =
            programs.iter().filter_map(|program| elf::libraries(program)).flatten().collect();
        libraries.iter().for_each(|library| look_up(library, &named, &mut in_libraries));
        for (lookup, more) in found.iter_mut().zip(in_libraries).filter(|(lookup, _)| lookup.files.is_empty())
        {
            *lookup = more;
        }
    }
    let mut settings = Vec::new();
    for (named, lookup) in named.into_iter().zip(found) {
        let code = code(&named, lookup).map_err(|(what, fix)| {
            Failure::message(
                Kind::Usage,
                what,
                format!("{}, {}", table_path(&named.key), job.place(&named.key)),
                fix,
            )
        })?;
        let Named { key, before, file, line } = named;
        let value = format!("{before}{}", Site::Line { file, line, code }.with_code());
        job.set(&key, &value)?;
        settings.push(format!("{key}={value}"));
    }
    Ok(settings)
}

/// Every source line that the job names and whose code is not known.
fn lines_of(config: &Config) -> Vec<Named> {
    let mut sites: Vec<(String, String, &Site)> = Vec::new();
    if let Marker::Mpi { function, site: Some(site) } = &config.window.marker {
        sites.push(("window.marker".into(), format!("mpi:{function}@"), site));
    }
    for (index, metric) in config.metrics.iter().enumerate() {
        if let Event::Site(site) = &metric.event {
            sites.push((format!("metric.{index}.event"), String::new(), site));
        }
    }
    for (index, policy) in config.sites.iter().enumerate() {
        if let SiteMatch::Site(site) = &policy.matches {
            sites.push((format!("site.{index}.match"), String::new(), site));
        }
    }
    let named = |(key, before, site): (String, String, &Site)| match site {
        Site::Line { file, line, code } if code.is_empty() => {
            Some(Named { key, before, file: file.clone(), line: *line })
        }
        _ => None,
    };
    sites.into_iter().filter_map(named).collect()
}

/// The code of one line, or the fault and its remedy.
fn code(named: &Named, lookup: Lookup) -> Result<Vec<CodeRange>, (String, String)> {
    let Named { file, line, .. } = named;
    if lookup.files.is_empty() {
        let fix = "compile that file with -g, or use MODULE+0xOFFSET".to_owned();
        return Err((format!("no line information for '{file}' in the program or its libraries"), fix));
    }
    if lookup.files.len() > 1 {
        let names = lookup.files.into_iter().collect::<Vec<_>>().join(", ");
        let what = format!("'{file}' is several source files: {names}");
        return Err((what, "add a directory to the name".into()));
    }
    if lookup.code.is_empty() {
        let near = lookup.lines.iter().min_by_key(|have| have.abs_diff(*line));
        let fix = near.map_or_else(String::new, |near| format!("the nearest line that has is {file}:{near}"));
        return Err((format!("'{file}:{line}' has no code of its own"), fix));
    }
    Ok(lookup.code)
}

/// Adds to `found` the code of each of `named` by the line table of `module`; nothing without a table.
fn look_up(module: &Path, named: &[Named], found: &mut [Lookup]) {
    let Ok(loader) = Loader::new(module) else { return };
    let Ok(locations) = loader.find_location_range(0, u64::MAX) else { return };
    let mut ranges = vec![Vec::new(); named.len()];
    for (address, length, location) in locations {
        let (Some(name), Some(at)) = (location.file, location.line) else { continue };
        for (index, wanted) in named.iter().enumerate() {
            if !Path::new(name).ends_with(&wanted.file) {
                continue;
            }
            found[index].files.insert(name.to_owned());
            found[index].lines.insert(at);
            if at == wanted.line && length > 0 {
                ranges[index].push((address, address + length));
            }
        }
    }
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    for (lookup, ranges) in found.iter_mut().zip(ranges) {
        let range = |(low, high)| CodeRange { module: name.clone().into_owned(), low, high: Some(high) };
        lookup.code.extend(merge(ranges).into_iter().map(range));
    }
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
        let named = |file: &str, line| {
            let (key, before) = ("window.marker".to_owned(), String::new());
            Named { key, before, file: file.to_owned(), line }
        };
        let wanted = [
            named("src/marker_site.rs", line),
            named("src/marker_site.rs", 1),
            named("marker_site.rsx", line),
        ];
        let mut found = vec![Lookup::default(); 3];
        look_up(&me, &wanted, &mut found);
        assert_eq!(found[0].files.len(), 1, "{:?}", found[0]);
        assert!(!found[0].code.is_empty() && found[0].lines.contains(&line));
        assert!(found[1].code.is_empty() && !found[1].lines.is_empty());
        assert!(found[2].files.is_empty());
        let advice = |index: usize| code(&wanted[index], found[index].clone()).unwrap_err().1;
        assert!(code(&wanted[0], found[0].clone()).is_ok());
        assert!(advice(1).contains("nearest line"));
        assert!(advice(2).contains("compile that file with -g"));
    }

    #[test]
    fn lines_are_found_wherever_a_job_names_them() {
        let text = "[window]\nmarker = 'mpi:MPI_Send@a.c:1'\n[[site]]\nmatch = 'MPI_Send'\n\
                    [[site]]\nmatch = 'b.c:2'\n[[site]]\nmatch = 'app+0x3'\n\
                    [[site]]\nmatch = 'd.c:4=app+0x3-0x9'\n";
        let (mut config, _) = Config::parse(text).unwrap();
        config.metrics[1].event = Event::Site(Site::parse("c.c:3").unwrap());
        let found = lines_of(&config);
        let keys: Vec<_> = found.iter().map(|named| (named.key.as_str(), named.line)).collect();
        assert_eq!(keys, [("window.marker", 1), ("metric.1.event", 3), ("site.1.match", 2)]);
        assert_eq!(found[0].before, "mpi:MPI_Send@");
    }
}
