//! Keys of `[hooks]`.

use super::forms::{DURATION, PATTERNS, REGIONS};
use super::settings::settings;
use crate::config::RegionFilter;
use crate::config::form::Flag;

settings! {
    [hooks] "Regions that compilers and other tools tell of; all off unless asked for." => pub struct Hooks {
        functions: bool = false, Flag,
            "Whether functions of a program that was compiled with -finstrument-functions are regions.",
            default("false"), examples("true", "\"yes\"");
        kokkos: bool = false, Flag,
            "Whether profile regions and kernels of Kokkos are regions.",
            default("false"), examples("true", "\"yes\"");
        nvtx: bool = false, Flag,
            "Whether ranges that NVTX pushes and pops are regions.",
            default("false"), examples("true", "\"yes\"");
        itt: bool = false, Flag,
            "Whether tasks of Intel's ITT are regions.",
            default("false"), examples("true", "\"yes\"");
        ompt: bool = false, Flag,
            "Whether parallel regions of OpenMP are regions, by OpenMP's interface for tools.",
            default("false"), examples("true", "\"yes\"");
        perfstubs: bool = false, Flag,
            "Whether timers of PerfStubs are regions, and its counters metrics.",
            default("false"), examples("true", "\"yes\"");
        caliper: bool = false, Flag,
            "Whether Caliper's annotations are regions.",
            default("false"), examples("true", "\"yes\"");
        nccl: bool = false, Flag,
            "Whether calls of NCCL or RCCL are regions, as they are enqueued.",
            default("false"), examples("true", "\"yes\"");
        filter: RegionFilter = RegionFilter::default(), REGIONS,
            "Functions that are recorded, by their names in the symbol table of their module.",
            default("\"*\""), range(PATTERNS), examples("\"solve*,!tiny\"", "\"\"");
        floor_ns ("floor"): u64 = 1000, DURATION,
            "As `trace.region_floor`, for these functions.",
            default("\"1us\""), range("a duration with its unit: ns, us, ms or s"), examples("\"5us\"", "\"5\"");
    }
}
