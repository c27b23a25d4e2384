//! Regions of interfaces that other tools have: what a program tells them, it tells ampl.
//!
//! Each interface is on only where `[hooks]` asks for it, which `ampl exec` passes on before the program starts. The
//! functions of the others are hidden from the dynamic linker when this library is loaded: some programs change their
//! ways, or print a line, because a tool's function exists.

mod caliper;
mod interposed;
mod itt;
mod kokkos;
mod nccl;
mod numbered;
mod nvtx;
mod ompt;
mod open_regions;
mod perfstubs;

use std::sync::atomic::{AtomicU32, Ordering};

use ampl_core::hook_source::HookSource;
use ampl_trace::metadata::DeviceCalls;

use crate::contain::contained;
use crate::environment;
use crate::exports::Exports;

/// Calls of NCCL, by function; `None` where the job does not ask for them.
pub fn device_calls() -> Option<Vec<DeviceCalls>> {
    is_wanted(HookSource::Nccl).then(nccl::totals)
}

/// [Bits](HookSource::bit) of the sources that the job asks for.
static WANTED: AtomicU32 = AtomicU32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Runs when this library is loaded, before the program.
extern "C" fn at_load() {
    contained(|| {
        let wanted = environment::hook_sources();
        WANTED.store(wanted, Ordering::Relaxed);
        let mut shown = wanted;
        if shown & HookSource::Nccl.bit() != 0 && !nccl::is_there() {
            shown &= !HookSource::Nccl.bit();
        }
        let hidden = |name: &[u8]| source_of(name).is_some_and(|source| shown & source.bit() == 0);
        if let Some(exports) = Exports::find(hidden) {
            exports.show(|_| false);
        }
    });
}

/// The source that a function of that name belongs to.
fn source_of(name: &[u8]) -> Option<HookSource> {
    const NAMES: [(&[u8], HookSource); 8] = [
        (b"kokkosp_", HookSource::Kokkos),
        (b"InitializeInjectionNvtx2", HookSource::Nvtx),
        (b"__itt_api_init", HookSource::Itt),
        (b"ompt_start_tool", HookSource::Ompt),
        (b"ps_tool_", HookSource::PerfStubs),
        (b"cali_", HookSource::Caliper),
        (b"_ZN4cali", HookSource::Caliper),
        (b"nccl", HookSource::Nccl),
    ];
    NAMES.into_iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, source)| source)
}

/// True where the job asks for `source`.
#[inline]
fn is_wanted(source: HookSource) -> bool {
    WANTED.load(Ordering::Relaxed) & source.bit() != 0
}
