//! Call sites as people name them.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use addr2line::Loader;
use ampl_trace::RankTrace;
use ampl_trace::model::{Site, call_path};
use ampl_trace::regions::Region;
use cpp_demangle::{DemangleOptions, Symbol};
use serde::Serialize;

/// A function of a call path, and the site from which it calls the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Name in the source; `None` where no symbol covers it.
    pub function: Option<String>,
    /// Call site, as [`Symbols::name`] names it.
    pub site: String,
}

/// Names call sites; reads a module's line table once, and remembers every answer.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<String, Option<Loader>>,
    names: HashMap<(String, u64), String>,
    paths: HashMap<(u32, u32), Rc<[Frame]>>,
    /// Names of functions by module and first byte.
    entries: HashMap<(String, u64), Arc<str>>,
}

/// The function that a call is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name in the source, with scopes and template arguments, without parameters.
    pub name: String,
    /// Bytes from the start of its code, or of the code it was inlined into, to where the call returns; `None` where
    /// no symbol covers it.
    pub offset: Option<u64>,
}

impl Symbols {
    /// `file:line` of the call that returns to `offset` in the module at `path`, where that file is here and has line
    /// information; `module+0xoffset` otherwise. Both forms are what `window.marker` takes.
    pub fn name(&mut self, path: &str, offset: u64) -> String {
        let key = (path.to_owned(), offset);
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = self.line(path, offset).unwrap_or_else(|| format!("{}+{offset:#x}", file_name(path)));
        self.names.insert(key, name.clone());
        name
    }

    /// Name of the site of that number of `rank`; `None` where the trace has no such site.
    pub fn site(&mut self, rank: &RankTrace, site: u32) -> Option<String> {
        let site = rank.sites.get(site as usize)?;
        let module = rank.modules.get(site.module as usize).filter(|module| !module.is_empty());
        // Where sites are not distinguished there is one of each function, without a place.
        let known = module.is_some() || site.offset > 0;
        known.then(|| self.name(module.map_or("?", String::as_str), site.offset))
    }

    /// Forgets the paths of the ranks that are read: there may be many ranks, of code that is the same.
    pub fn next_rank(&mut self) {
        self.paths.clear();
    }

    /// The functions on the way to the site of that number of `rank`, from `main` to the call; none where paths are
    /// not distinguished.
    pub fn path(&mut self, rank: &RankTrace, site: u32) -> Rc<[Frame]> {
        if rank.sites.get(site as usize).is_none_or(|site| site.caller == 0) {
            return Rc::new([]);
        }
        let key = (rank.process.rank, site);
        if let Some(path) = self.paths.get(&key) {
            return path.clone();
        }
        let mut path = Vec::new();
        for site in call_path(&rank.sites, site) {
            let module = rank.modules.get(site.module as usize).map_or("?", String::as_str);
            let function = self.function(module, site.offset).map(|function| function.name);
            path.push(Frame { function, site: self.name(module, site.offset) });
            // Outside of it is what starts programs, the same for all.
            if path.last().is_some_and(Frame::is_main) {
                break;
            }
        }
        // Without symbols, start-up code is recognized by the C library's file name.
        while path.len() > 1 && path.last().is_some_and(Frame::is_start) {
            path.pop();
        }
        path.reverse();
        let path: Rc<[Frame]> = path.into();
        self.paths.insert(key, path.clone());
        path
    }

    /// `file:line` of the call that returns to `offset` in the module at `path`; `None` without line information.
    pub fn line(&mut self, path: &str, offset: u64) -> Option<String> {
        // The return address may already belong to the next line; the byte before it is the call's own.
        let location = self.module(path)?.find_location(offset.checked_sub(1)?).ok()??;
        Some(format!("{}:{}", file_name(location.file?), location.line.filter(|&line| line > 0)?))
    }

    /// The function whose source makes the call that returns to `offset` in the module at `path`: the innermost of
    /// inlined ones by debug information, else what .symtab, or where that is stripped .dynsym, names there.
    /// `None` if neither covers the address.
    pub fn function(&mut self, path: &str, offset: u64) -> Option<Function> {
        let call = offset.checked_sub(1)?;
        let module = self.module(path)?;
        let symbol = module.find_symbol_info(call);
        let innermost = module.find_frames(call).ok().and_then(|mut frames| frames.next().ok()?);
        let inlined = innermost.and_then(|frame| Some(frame.function?.raw_name().ok()?.into_owned()));
        let raw = inlined.or_else(|| symbol.as_ref().map(|symbol| symbol.name().to_owned()))?;
        let offset = symbol.and_then(|symbol| offset.checked_sub(symbol.address()));
        Some(Function { name: as_written(&raw), offset })
    }

    /// Name of a region of `rank`: the program's own, or that of the function; `module+0xoffset` where no symbol covers
    /// it.
    pub fn region(&mut self, rank: &RankTrace, region: &Region) -> Arc<str> {
        let site = match region {
            Region::Named(name) => return name.clone(),
            Region::Function(site) => *site,
        };
        let Some(&Site { module, offset, .. }) = rank.sites.get(site as usize) else { return "?".into() };
        self.entry(rank.modules.get(module as usize).map_or("?", String::as_str), offset)
    }

    /// Name of the function whose code begins at `offset` in the module at `path`; `module+0xoffset` where no symbol
    /// covers it.
    pub fn entry(&mut self, path: &str, offset: u64) -> Arc<str> {
        let key = (path.to_owned(), offset);
        if let Some(name) = self.entries.get(&key) {
            return name.clone();
        }
        let symbol = self.module(path).and_then(|module| Some(as_written(module.find_symbol(offset)?)));
        let name: Arc<str> = symbol.unwrap_or_else(|| format!("{}+{offset:#x}", file_name(path))).into();
        self.entries.insert(key, name.clone());
        name
    }

    fn module(&mut self, path: &str) -> Option<&Loader> {
        self.modules.entry(path.to_owned()).or_insert_with(|| Loader::new(path).ok()).as_ref()
    }
}

impl Frame {
    fn is_main(&self) -> bool {
        matches!(self.function.as_deref(), Some("main"))
    }

    /// True where it is the C library's start-up code, on the way to `main`.
    fn is_start(&self) -> bool {
        match self.function.as_deref() {
            Some(name) => name == "_start" || name.starts_with("__libc_start"),
            None => self.site.starts_with("libc.so"),
        }
    }

    /// The function, or else the place.
    pub fn label(&self) -> &str {
        self.function.as_deref().unwrap_or(&self.site)
    }
}

/// Suffixes that compilers append to the name of a part or a copy of a function.
const SUFFIXES: [&str; 7] = [".cold", ".part.", ".isra.", ".constprop.", "._omp_fn.", ".lto_priv.", ".llvm."];

/// The name that the source has for the symbol `raw`, of C, C++, Rust or gfortran.
pub fn as_written(raw: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        return format!("{rust:#}");
    }
    let end = SUFFIXES.iter().filter_map(|suffix| raw.find(suffix)).filter(|&at| at > 0).min();
    let raw = &raw[..end.unwrap_or(raw.len())];
    if let Some((module, procedure)) = raw.strip_prefix("__").and_then(|name| name.split_once("_MOD_")) {
        return format!("{module}::{procedure}");
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let cpp = Symbol::new(raw).ok().filter(|_| raw.starts_with("_Z"));
    let name = cpp.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    // The name of a lambda ends in ` const` even without its parameters.
    name.map_or_else(|| raw.to_owned(), |name| name.trim_end_matches(" const").to_owned())
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_testkit::symbols::{atoi, loaded};

    #[test]
    fn modules_without_lines_give_offsets() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name("/nowhere/app", 0x1f40), "app+0x1f40");
        let rank = RankTrace {
            modules: vec![String::new()].into(),
            sites: vec![Site::default(), Site { module: 9, offset: 1, caller: 0 }].into(),
            ..RankTrace::default()
        };
        assert_eq!(symbols.site(&rank, 0), None, "sites were not told apart");
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
                let ours = location.file?.ends_with("src/sites.rs") && length > 0;
                ours.then_some((address, location.line?))
            });
        let (address, line) = found.unwrap();
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name(me, address + 1), format!("sites.rs:{line}"));
        assert_eq!(symbols.name(me, address + 1), format!("sites.rs:{line}"));
        assert_eq!(symbols.modules.len(), 1);
        assert_eq!(symbols.line(me, address + 1).unwrap(), format!("sites.rs:{line}"));
        assert_eq!(symbols.line("/nowhere/app", 1), None);
    }

    #[test]
    fn functions_are_found_with_and_without_debug_information() {
        let mut symbols = Symbols::default();
        let me = std::env::current_exe().unwrap();
        let (me, base) = loaded(me.to_str().unwrap());
        let start = loaded as fn(&'static str) -> (String, u64) as usize as u64 - base;
        let function = symbols.function(&me, start + 3).unwrap();
        assert!(function.name.ends_with("loaded"), "{function:?}");
        assert_eq!(function.offset, Some(3));

        let (libc, atoi, size) = atoi();
        let expected = |offset| Some(Function { name: "atoi".into(), offset: Some(offset) });
        // A call that ends the function returns behind it.
        for offset in [1, size] {
            assert_eq!(symbols.function(&libc, atoi + offset), expected(offset));
        }
        assert_ne!(symbols.function(&libc, atoi).map(|found| found.name), Some("atoi".into()));
        // The file's header is no function.
        assert_eq!((symbols.function(&libc, 2), symbols.function(&libc, 0)), (None, None));
        assert_eq!(symbols.function("/nowhere/app", 3), None);
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (raw, name) in [
            ("exchange", "exchange"),
            ("exchange.constprop.0", "exchange"),
            ("exchange.part.0.cold", "exchange"),
            ("_ZN9LAMMPS_NS9CommBrick12forward_commEi", "LAMMPS_NS::CommBrick::forward_comm"),
            ("_ZN9LAMMPS_NS9CommBrick12forward_commEi.cold", "LAMMPS_NS::CommBrick::forward_comm"),
            ("_Z4sendIdEiPKT_i", "send<double>"),
            ("_ZNK3Box4sizeEv", "Box::size"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"),
            ("__solver_MOD_exchange", "solver::exchange"),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(as_written(raw), name, "{raw}");
        }
    }
}
