//! Call sites as people name them.

use std::collections::HashMap;
use std::path::Path;

use addr2line::Loader;
use ampl_trace::RankTrace;

/// Names call sites; reads a module's line table once, and remembers every answer.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<String, Option<Loader>>,
    names: HashMap<(String, u64), String>,
}

impl Symbols {
    /// `file:line` of the call that returns to `offset` in the module at `path`, where that file is here and
    /// tells; `module+0xoffset` otherwise. Both forms are what `window.marker` takes.
    pub fn name(&mut self, path: &str, offset: u64) -> String {
        let key = (path.to_owned(), offset);
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = self.line(path, offset).unwrap_or_else(|| format!("{}+{offset:#x}", file_name(path)));
        self.names.insert(key, name.clone());
        name
    }

    /// The name of the site of that number of `rank`; `None` where the trace has no such site.
    pub fn site(&mut self, rank: &RankTrace, site: u32) -> Option<String> {
        let site = rank.sites.get(site as usize)?;
        let module = rank.modules.get(site.module as usize).filter(|module| !module.is_empty());
        Some(self.name(module.map_or("?", String::as_str), site.offset))
    }

    fn line(&mut self, path: &str, offset: u64) -> Option<String> {
        let module = self.modules.entry(path.to_owned()).or_insert_with(|| Loader::new(path).ok());
        // The return address may already belong to the next line; the byte before it is the call's own.
        let location = module.as_ref()?.find_location(offset.checked_sub(1)?).ok()??;
        Some(format!("{}:{}", file_name(location.file?), location.line.filter(|&line| line > 0)?))
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::model::Site;

    #[test]
    fn modules_without_lines_give_offsets() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name("/nowhere/app", 0x1f40), "app+0x1f40");
        let rank = RankTrace {
            modules: vec![String::new()],
            sites: vec![Site { module: 0, offset: 0 }, Site { module: 9, offset: 1 }],
            ..RankTrace::default()
        };
        assert_eq!(symbols.site(&rank, 0).as_deref(), Some("?+0x0"));
        assert_eq!(symbols.site(&rank, 1).as_deref(), Some("?+0x1"));
        assert_eq!(symbols.site(&rank, 2), None);
    }

    #[test]
    fn this_program_s_lines_are_found() {
        let me = std::env::current_exe().unwrap();
        let me = me.to_str().unwrap();
        // Some code of this very file, from the program's own line table.
        let loader = Loader::new(me).unwrap();
        let found =
            loader.find_location_range(0, u64::MAX).unwrap().find_map(|(address, length, location)| {
                let ours = location.file?.ends_with("src/symbols.rs") && length > 0;
                ours.then_some((address, location.line?))
            });
        let (address, line) = found.unwrap();
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name(me, address + 1), format!("symbols.rs:{line}"));
        assert_eq!(symbols.name(me, address + 1), format!("symbols.rs:{line}"));
        assert_eq!(symbols.modules.len(), 1);
    }
}
