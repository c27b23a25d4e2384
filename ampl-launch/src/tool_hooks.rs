//! Variables by which other tools' interfaces find `libampl.so`, where `[hooks]` asks for them.

use std::ffi::OsString;
use std::path::Path;

use ampl_core::config::Hooks;
use ampl_core::hook_source::{HOOKS_VARIABLE, HookSource, write};

use crate::environment;

/// The variables for `hooks`, and what is to be said: a variable that the user has set stays as it is.
pub fn variables(hooks: &Hooks, library: &Path) -> (Vec<(&'static str, OsString)>, Vec<String>) {
    by(hooks, library, &environment::tool_library)
}

fn by(
    hooks: &Hooks,
    library: &Path,
    set: &dyn Fn(&str) -> Option<OsString>,
) -> (Vec<(&'static str, OsString)>, Vec<String>) {
    let (mut variables, mut said, mut on) = (Vec::new(), Vec::new(), Vec::new());
    for source in HookSource::ALL.into_iter().filter(|source| source.is_wanted(hooks)) {
        let theirs = source.variable().and_then(|name| Some((name, set(name)?)));
        match theirs.filter(|(_, value)| value.as_os_str() != library.as_os_str()) {
            Some((name, value)) => said.push(format!(
                "ampl: {name} names another tool ({}): it gets the regions, not ampl; unset {name}",
                value.display()
            )),
            None => {
                on.push(source);
                // OpenMP asks libraries that are loaded, without a variable.
                if let Some(name) = source.variable().filter(|_| source != HookSource::Ompt) {
                    variables.push((name, library.as_os_str().to_owned()));
                }
            }
        }
    }
    if !on.is_empty() {
        variables.push((HOOKS_VARIABLE, write(&on).into()));
    }
    (variables, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_tool_keeps_its_place() {
        let library = Path::new("/opt/ampl/lib/libampl.so");
        let hooks = Hooks { kokkos: true, nvtx: true, ompt: true, perfstubs: true, ..Hooks::default() };
        let set = |name: &str| match name {
            "NVTX_INJECTION64_PATH" => Some("/opt/nsys/libToolsInjection64.so".into()),
            "KOKKOS_TOOLS_LIBS" => Some(library.into()),
            _ => None,
        };
        let (variables, said) = by(&hooks, library, &set);
        let expected: Vec<(&str, OsString)> =
            vec![("KOKKOS_TOOLS_LIBS", library.into()), ("AMPL_EXEC_HOOKS", "kokkos,ompt,perfstubs".into())];
        assert_eq!(variables, expected);
        let [said] = &said[..] else { panic!("{said:?}") };
        assert!(said.contains("NVTX_INJECTION64_PATH") && said.contains("/opt/nsys/libTools"), "{said}");
        assert_eq!(by(&Hooks::default(), library, &set), (Vec::new(), Vec::new()));
    }
}
