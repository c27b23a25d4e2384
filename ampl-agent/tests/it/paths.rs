//! Call paths from the call to the trace: they distinguish sites, and are found by their innermost frame.

use ampl_agent::{CallEnd, Thread};
use ampl_core::mpi::{Function, ids};
use ampl_trace::decode::Calls;
use ampl_trace::from_journal::Compacted;
use ampl_trace::model::call_path;
use ampl_trace::record::CALL_NO_ARGS;

use crate::common::{Job, leave};

/// A thread and its clock.
struct Caller {
    job: Job,
    thread: Thread,
    now: u64,
}

/// Addresses from 0x1000 on are a library's.
fn resolve(address: u64) -> (String, u64) {
    if address < 0x1000 { ("/bin/app".into(), address) } else { ("/lib/libx.so".into(), address - 0x1000) }
}

impl Caller {
    fn new(config: &str) -> Self {
        let job = Job::resolving(config, 1, resolve);
        let thread = job.thread(0);
        Self { job, thread, now: 0 }
    }

    fn call(&mut self, function: Function, frames: &[u64]) {
        let address = if self.thread.path_frames() > 1 { self.thread.path(frames) } else { frames[0] };
        self.now += 10;
        self.thread.enter(function, address, self.now);
        let (start, end, flags) = (self.now, self.now + 1, CALL_NO_ARGS);
        let (sent, received, terminal, timed) = (0, 0, None, true);
        let call =
            CallEnd { function, address, start, end, sent, received, flags, terminal, timed, apart: false };
        leave(&mut self.thread, call, &[]);
    }
}

/// The modules and offsets on the way to every call, from the call outwards.
fn paths(found: &Compacted) -> Vec<Vec<(&str, u64)>> {
    let structure = &found.structure;
    let calls = Calls::new(structure, &found.rank).map(|call| call.expect("a call").site.expect("a site"));
    let frames = |site| call_path(&structure.sites, site);
    calls
        .map(|site| {
            frames(site).map(|site| (&*structure.modules[site.module as usize], site.offset)).collect()
        })
        .collect()
}

const WAYS: [&[u64]; 4] = [&[0x40, 0x1050, 0x60], &[0x40, 0x1070, 0x60], &[0x40], &[0x40, 0x1050, 0x60]];

#[test]
fn a_call_on_two_ways_is_two_sites() {
    let mut caller = Caller::new("[trace]\ncall_path_depth = 3\n");
    assert_eq!(caller.thread.path_frames(), 3);
    WAYS.iter().for_each(|way| caller.call(ids::MPI_BARRIER, way));
    let found = caller.job.read();
    let (app, library) = ("/bin/app", "/lib/libx.so");
    let expected = [
        vec![(app, 0x40), (library, 0x50), (app, 0x60)],
        vec![(app, 0x40), (library, 0x70), (app, 0x60)],
        vec![(app, 0x40)],
    ];
    let told = paths(&found);
    assert_eq!(told[..3], expected);
    assert_eq!(told[3], expected[0]);
    let calls: Vec<_> = found.aggregates.iter().map(|entry| (entry.site, entry.calls)).collect();
    assert!(calls.contains(&(Some(0), 2)) && calls.contains(&(Some(1), 1)), "{calls:?}");
    assert_eq!(found.structure.threads[0].signatures.len(), 3, "the path is part of what a call says");
}

/// Calls of one site are told apart by their ways in the sequence, and nowhere else.
#[test]
fn ways_to_a_site_are_paths_of_signatures() {
    let mut caller = Caller::new("");
    assert!(caller.thread.tells_ways());
    let ways: [&[u64]; 3] = [&[0x1050, 0x60], &[0x1070, 0x60], &[0x1050, 0x60]];
    for (way, callers) in [0, 1, 0].into_iter().zip(ways) {
        caller.thread.know(ids::MPI_BARRIER, 0x40);
        caller.thread.new_way(ids::MPI_BARRIER, 0x40, way, callers, &[0x1000 + u64::from(way), 0x20]);
        caller.thread.come_by(way);
        caller.call(ids::MPI_BARRIER, &[0x40]);
    }
    let found = caller.job.read();
    assert_eq!(paths(&found), vec![vec![("/bin/app", 0x40)]; 3]);
    assert_eq!(found.aggregates.iter().map(|entry| entry.calls).collect::<Vec<_>>(), [3]);
    let structure = &found.structure;
    let signatures = &structure.threads[0].signatures;
    assert_eq!(signatures.len(), 2);
    assert_eq!(signatures[0].site, signatures[1].site);
    for (signature, library) in signatures.iter().zip([0x50, 0x70]) {
        let path: Vec<u64> =
            call_path(&structure.sites, signature.path - 1).map(|frame| frame.offset).collect();
        assert_eq!(path, [0x40, library, 0x60]);
    }
    let (_, _, common) = &found.ways[0];
    assert_eq!((common.functions.len(), common.several), (0, true), "the callers differ at once");
}

#[test]
fn what_names_a_site_names_its_innermost_frame() {
    let policy = "[trace]\ncall_path_depth = 3\n[[site]]\nmatch = \"app+0x40\"\ntrace = \"off\"\n\
                  [window]\nmarker = \"mpi:MPI_Barrier@app+0x44\"\n";
    let mut caller = Caller::new(policy);
    WAYS.iter().for_each(|way| caller.call(ids::MPI_SEND, way));
    caller.call(ids::MPI_SEND, &[0x42, 0x1050, 0x40]);
    for way in [[0x44, 0x1050], [0x44, 0x1070], [0x48, 0x44]] {
        caller.call(ids::MPI_BARRIER, &way);
    }
    let found = caller.job.read();
    let stored: Vec<u64> = found.structure.threads[0].signatures.iter().map(|one| one.site.into()).collect();
    assert_eq!(stored.iter().filter(|&&site| site != 0).count(), 4, "{stored:?}");
    assert_eq!(found.rank.windows.entries().len(), 2, "two barriers are the marker's");
}

#[test]
fn paths_tell_nothing_where_sites_are_not_told_apart() {
    let caller = Caller::new("[trace]\ncall_path_depth = 3\ncall_sites = false\n");
    assert_eq!(caller.thread.path_frames(), 1);
}
