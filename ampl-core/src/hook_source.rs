//! Sources of regions besides the program itself: interfaces of other tools that `[hooks]` asks for.

use crate::config::Hooks;

/// Variable by which `ampl exec` tells the library of the sources that the job asks for, with commas between them.
pub const HOOKS_VARIABLE: &str = "AMPL_EXEC_HOOKS";

/// An interface by which a program, or a library of its, tells tools of its regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookSource {
    /// Kokkos Tools.
    Kokkos,
    /// NVTX, version 3.
    Nvtx,
    /// Intel's ITT.
    Itt,
    /// OpenMP's interface for tools.
    Ompt,
    /// PerfStubs.
    PerfStubs,
    /// Caliper's annotations.
    Caliper,
    /// Calls of NCCL or RCCL.
    Nccl,
}

impl HookSource {
    /// Every source.
    pub const ALL: [Self; 7] =
        [Self::Kokkos, Self::Nvtx, Self::Itt, Self::Ompt, Self::PerfStubs, Self::Caliper, Self::Nccl];

    /// Name of the key in `[hooks]`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kokkos => "kokkos",
            Self::Nvtx => "nvtx",
            Self::Itt => "itt",
            Self::Ompt => "ompt",
            Self::PerfStubs => "perfstubs",
            Self::Caliper => "caliper",
            Self::Nccl => "nccl",
        }
    }

    /// Variable that names the tool's library to the program, if the interface has one.
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Kokkos => Some("KOKKOS_TOOLS_LIBS"),
            Self::Nvtx => Some("NVTX_INJECTION64_PATH"),
            Self::Itt => Some("INTEL_LIBITTNOTIFY64"),
            Self::Ompt => Some("OMP_TOOL_LIBRARIES"),
            Self::PerfStubs | Self::Caliper | Self::Nccl => None,
        }
    }

    /// True where `hooks` asks for it.
    pub const fn is_wanted(self, hooks: &Hooks) -> bool {
        match self {
            Self::Kokkos => hooks.kokkos,
            Self::Nvtx => hooks.nvtx,
            Self::Itt => hooks.itt,
            Self::Ompt => hooks.ompt,
            Self::PerfStubs => hooks.perfstubs,
            Self::Caliper => hooks.caliper,
            Self::Nccl => hooks.nccl,
        }
    }

    /// Bit in a set of sources.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The sources that a value of [`HOOKS_VARIABLE`] names, as [bits](HookSource::bit).
pub fn parse(value: &str) -> u32 {
    let named =
        value.split(',').filter_map(|name| HookSource::ALL.into_iter().find(|own| own.name() == name));
    named.fold(0, |bits, source| bits | source.bit())
}

/// The value of [`HOOKS_VARIABLE`] for `sources`.
pub fn write(sources: &[HookSource]) -> String {
    sources.iter().map(|source| source.name()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_sources_survive_their_text() {
        for bits in 0..1 << HookSource::ALL.len() {
            let set: Vec<_> = HookSource::ALL.into_iter().filter(|source| bits & source.bit() != 0).collect();
            assert_eq!(parse(&write(&set)), bits, "{set:?}");
        }
        assert_eq!(parse("unknown,,itt, nvtx"), HookSource::Itt.bit());
    }

    #[test]
    fn every_source_is_a_key_of_its_own() {
        for source in HookSource::ALL {
            let text = format!("[hooks]\n{} = true\n", source.name());
            let (config, _) = crate::config::Config::parse(&text).unwrap();
            let wanted: Vec<_> =
                HookSource::ALL.into_iter().filter(|other| other.is_wanted(&config.hooks)).collect();
            assert_eq!(wanted, [source]);
        }
    }
}
