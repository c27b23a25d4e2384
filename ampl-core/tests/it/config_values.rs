//! The small languages inside values: markers, metrics and events.

use ampl_core::config::site::Site;
use ampl_core::config::*;

use crate::common::{accepted, one_error};

#[test]
fn markers_are_checked() {
    let marker = |text: &str| format!("[window]\nmarker = \"{text}\"\n");
    one_error(&marker("mpi:MPI_Alreduce"), "2:10", "MPI_Alreduce", "\"MPI_Allreduce\"");
    one_error(&marker("mpi:"), "2:10", "names no MPI function", "C name");
    one_error(&marker("mpi:MPI_Send@"), "2:10", "call site", "FILE:LINE");
    one_error(&marker("mpi:MPI_Send@file.c"), "2:10", "call site", "FILE:LINE");
    for period in ["period:0ms", "period:", "period:250", "period:-1s", "period:1h"] {
        one_error(&marker(period), "2:10", period, "period:250ms");
    }
    one_error(&marker("perod:1s"), "2:10", "perod:1s", "period:250ms");
    one_error(&marker("sometimes"), "2:10", "sometimes", "region:NAME or pcontrol or auto");
    one_error(&marker("pcontrl"), "2:10", "pcontrl", "\"pcontrol\"");
    one_error(&marker("regoin:STEP"), "2:10", "regoin:STEP", "\"region:NAME\"");
    one_error(&marker("pcontrol:2"), "2:10", "pcontrol:2", "\"pcontrol\"");
    one_error(&marker("region:"), "2:10", "region:", "region:TIMESTEP");
    let read = |text| accepted(&marker(text)).0.window.marker;
    assert_eq!(read("region:TIME STEP"), Marker::Region("TIME STEP".into()));
    assert_eq!(read("pcontrol"), Marker::Pcontrol);
    let site = |text| match accepted(&marker(text)).0.window.marker {
        Marker::Mpi { site, .. } => site,
        other => panic!("{other:?}"),
    };
    assert_eq!(site("mpi:MPI_Send@app+0x1f"), Site::parse("app+0x1f"));
    assert_eq!(site("mpi:MPI_SEND"), None);
}

#[test]
fn metrics_are_ampls_counters_or_the_programs() {
    let metric = |name: &str| format!("[[metric]]\nname = '{name}'\nrole = 'guide'\n");
    let read = |name: &str| accepted(&metric(name)).0.metrics[0].quantity.clone();
    assert_eq!(read("perf.page-faults"), Quantity::Perf("page-faults".into()));
    assert_eq!(read("papi.PAPI_FP_INS"), Quantity::Papi("PAPI_FP_INS".into()));
    assert_eq!(read("papi.skx::RESOURCE_STALLS:ANY"), Quantity::Papi("skx::RESOURCE_STALLS:ANY".into()));
    for own in ["residual", "cells", "my.time", "io.time", "energy:total", "_x"] {
        assert_eq!(read(own), Quantity::User(own.into()));
    }
    one_error(&metric("perf.cycels"), "2:8", "\"perf.cycels\"", "\"perf.cycles\"");
    one_error(&metric("perf.flops"), "2:8", "\"perf.flops\"", "perf.cpu-migrations");
    one_error(&(metric("perf.flops") + "optional = true"), "2:8", "\"perf.flops\"", "perf.cycles or");
    for (slip, meant) in [
        ("cals", "calls"),
        ("Wall", "wall"),
        ("walls", "wall"),
        ("mpi_time", "mpi.time"),
        ("bytes.recieved", "bytes.received"),
        ("pref.cycles", "perf.cycles"),
        ("PAPI_FP_INS", "papi.NAME"),
    ] {
        one_error(&metric(slip), "2:8", slip, &format!("\"{meant}\""));
    }
    one_error(&metric("mpi.x"), "2:8", "mpi.x", "papi.NAME or a metric that the program declares");
    for no_name in ["", "two words", "1st", "papi.", "perf."] {
        one_error(&metric(no_name), "2:8", "'metric.name'", "perf.");
    }
}

#[test]
fn events_are_functions_regions_and_paths() {
    let event = |text: &str| format!("[[metric]]\nname = 'calls'\nevent = '{text}'\nrole = 'guide'\n");
    let read = |text: &str| accepted(&event(text)).0.metrics[0].event.clone();
    assert_eq!(read("region:TIMESTEP"), Event::Region("TIMESTEP".into()));
    assert_eq!(read("TIMESTEP"), Event::Region("TIMESTEP".into()));
    assert_eq!(read("path:A>B"), Event::Path(vec!["A".into(), "B".into()]));
    one_error(&event("MPI_Isnd"), "3:9", "MPI_Isnd", "MPI_Isend");
    one_error(&event("path:A>>B"), "3:9", "path:A>>B", "path:SOLVE>HALO");
    one_error(&event("regoin:A"), "3:9", "regoin:A", "region:NAME");
    let counter = event("region:A").replace("calls", "perf.cycles");
    one_error(&counter, "3:9", "a counter and an event", "event = \"*\"");
    let own = event("MPI_Send").replace("calls", "residual");
    one_error(&own, "3:9", "the program's own metric", "region:NAME");
    // A call is inside of MPI from its beginning to its end, so this would be 0 of every one.
    for call in ["MPI_Send", "solve.c:12", "app+0x1f"] {
        let between = event(call).replace("calls", "compute.time");
        one_error(&between, "3:9", "'metric.event': compute.time and an MPI call", "mpi.time");
        one_error(
            &between.replace("role = 'guide'\n", ""),
            "3:9",
            "compute.time and an MPI call",
            "region:NAME",
        );
    }
    for event in ["region:A", "path:A>B", "*"] {
        accepted(&format!("[[metric]]\nname = 'compute.time'\nevent = '{event}'\nrole = 'guide'\n"));
    }
}

#[test]
fn wall_of_a_window_cannot_guide_under_a_period() {
    let guide = "[[metric]]\nname = 'wall'\nrole = 'guide'\n";
    one_error(guide, "2:8", "'wall'", "mpi.time");
    one_error(&format!("[window]\nmarker = 'period:1s'\n{guide}"), "4:8", "'wall'", "mpi:");
    accepted(&format!("[window]\nmarker = 'mpi:MPI_Barrier'\n{guide}"));
    accepted(&format!("{guide}event = 'MPI_Send'\n"));
    one_error(
        &format!("[window]\nmarker = 'mpi:MPI_Bariere'\n{guide}"),
        "2:10",
        "MPI_Bariere",
        "MPI_Barrier",
    );
}
