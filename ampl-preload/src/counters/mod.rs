//! Counters of this machine that metrics name: `perf.*` from the kernel, `papi.*` from PAPI.
//!
//! They are opened once, in MPI_Init, and read when windows end. The program's own counters, descriptors and
//! PAPI are left alone.

mod papi;
mod perf;

use ampl_agent::counters::{Counters, counted};
use ampl_core::config::{Quantity, perf as names};
use ampl_core::plan::Plan;
use ampl_core::refusal::Refusal;

use papi::PapiCounters;
use perf::PerfCounters;

/// Something to count, and its place among all counters of the plan.
#[derive(Clone, Copy, Debug)]
struct Asked<T> {
    column: usize,
    what: T,
}

/// Counters opened for a plan.
#[derive(Debug)]
pub struct Opened {
    /// Where to read; `None` where there is nothing to read.
    pub source: Option<Box<dyn Counters>>,
    /// Optional metrics that this machine does not measure: they have no observations.
    pub left_out: Vec<Refusal>,
}

/// Opens the counters of `plan`.
///
/// # Errors
/// The first metric that cannot be measured and is not optional.
pub fn open(plan: &Plan) -> Result<Opened, Refusal> {
    let slots = counted(plan);
    if slots.is_empty() {
        return Ok(Opened { source: None, left_out: Vec::new() });
    }
    let (mut perf, mut papi, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (column, &slot) in slots.iter().enumerate() {
        match &plan.metrics[slot].quantity {
            Quantity::Perf(name) => match names::by_name(name) {
                Some(what) => perf.push(Asked { column, what }),
                None => refused.push(Refusal {
                    metric: format!("perf.{name}"),
                    why: "there is no such counter".into(),
                    instead: String::new(),
                }),
            },
            Quantity::Papi(name) => papi.push(Asked { column, what: name.clone() }),
            _ => {}
        }
    }
    let mut source = Sources::default();
    if !perf.is_empty() {
        let (opened, more) = PerfCounters::open(&perf);
        source.perf = Some(opened);
        refused.extend(more);
    }
    if !papi.is_empty() {
        let (opened, more) = PapiCounters::open(&papi);
        source.papi = opened;
        refused.extend(more);
    }
    let optional = |refusal: &Refusal| {
        let named = |metric: &&ampl_core::config::Metric| metric.name() == refusal.metric;
        plan.metrics.iter().find(named).is_some_and(|metric| metric.optional)
    };
    match refused.iter().find(|refusal| !optional(refusal)) {
        Some(refusal) => Err(refusal.clone()),
        None => Ok(Opened { source: Some(Box::new(source)), left_out: refused }),
    }
}

/// Both kinds of counters.
#[derive(Debug, Default)]
struct Sources {
    perf: Option<PerfCounters>,
    papi: Option<PapiCounters>,
}

impl Counters for Sources {
    fn take(&mut self, into: &mut [Option<f64>]) {
        into.fill(None);
        if let Some(perf) = &mut self.perf {
            perf.take(into);
        }
        if let Some(papi) = &mut self.papi {
            papi.take(into);
        }
    }
}
