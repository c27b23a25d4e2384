//! Requests handed from thread to thread, in every order that the steps of the threads can have, and with every value
//! that a processor may let them see.
//!
//! Handles change hands inside of MPI and in the program, which order what happens before and after: here by atomics
//! of the test's own.

#[path = "../src/node.rs"]
#[allow(dead_code)]
mod node;
#[path = "../src/request_table.rs"]
#[allow(dead_code)]
mod request_table;

/// Atomics and sizes of the table, under loom.
mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// Few nodes, and few lists, so that they share them.
    pub const FIRST: usize = 2;
    pub const LISTS: usize = 2;
}

use std::sync::Arc;

use loom::thread;
use request_table::{Owner, RequestTable, Visit};
use sync::{AtomicU32, Ordering};

/// Fact 0 is the name.
fn put(owner: &mut Owner, handle: u64, name: u64) -> u32 {
    owner.put(handle, [name, 0, 0, 0]).0
}

/// Where a request is that a thread was handed.
fn find(table: &RequestTable, handle: u64) -> (u32, u16) {
    loop {
        match table.visit(handle, true) {
            Visit::Found(at, times) => return (at, times),
            Visit::None => panic!("it was handed over"),
            Visit::Unsure => thread::yield_now(),
        }
    }
}

/// Completes a request that the thread was handed; returns its name.
fn complete(table: &RequestTable, handle: u64) -> u64 {
    let (at, times) = find(table, handle);
    let name = table.node(at).fact(0);
    assert!(table.complete(at, times));
    name
}

fn bury(owner: &mut Owner) -> Vec<u64> {
    let mut gone = Vec::new();
    owner.bury(0, |name| gone.push(name));
    gone
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// While its maker ends another and makes one, a request is found where it is, and taken out once.
#[test]
fn a_request_is_completed_by_whom_it_was_handed_to() {
    // Some of these are in one list, before it or behind it, and then in the other.
    for (before, after) in [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (4, 6)] {
        model(move || {
            let mut owner = Owner::default();
            let first = put(&mut owner, before, 10);
            put(&mut owner, 7, 70);
            let table = owner.table().clone();
            let other = thread::spawn(move || complete(&table, 7));
            assert_eq!(owner.take(first, 0), Some(10));
            // The same node.
            assert_eq!(put(&mut owner, after, 20), first);
            let early = if owner.has_dead() { bury(&mut owner) } else { Vec::new() };
            assert_eq!(other.join().unwrap(), 70);
            assert_eq!([early, bury(&mut owner)].concat(), [70]);
            assert_eq!(owner.len(), 1);
        });
    }
}

/// A handle that MPI gives out again before the end of its last request is noted does not stand for that any more.
#[test]
fn a_handle_that_is_used_again_is_its_new_owners() {
    model(|| {
        let mut one = Owner::default();
        let first = one.table().clone();
        put(&mut one, 7, 70);
        // Whether MPI has the handle back.
        let given_up = Arc::new(AtomicU32::new(0));
        let free = given_up.clone();
        let other = thread::spawn(move || {
            if free.load(Ordering::Acquire) == 0 {
                return false;
            }
            let mut two = Owner::default();
            put(&mut two, 7, 71);
            // As a third thread does that is handed the request.
            assert!(!matches!(first.visit(7, true), Visit::Found(..)), "it was given up");
            assert_eq!(complete(two.table(), 7), 71);
            assert_eq!((bury(&mut two), two.len()), (vec![71], 0));
            true
        });
        let (at, _) = one.finder().claim(7, &mut (0, 0)).expect("its own");
        given_up.store(1, Ordering::Release);
        assert_eq!(one.take(at, 0), Some(70));
        MET.fetch_or(u32::from(other.join().unwrap()), std::sync::atomic::Ordering::Relaxed);
        assert_eq!(one.len(), 0);
    });
    // Otherwise nothing was tried.
    assert_eq!(MET.load(std::sync::atomic::Ordering::Relaxed), 1);
}

static MET: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Two threads that were handed requests with one handle take one each.
#[test]
fn no_request_is_taken_twice() {
    model(|| {
        let mut owner = Owner::default();
        put(&mut owner, 7, 70);
        put(&mut owner, 7, 71);
        let tables = [owner.table().clone(), owner.table().clone()];
        let others = tables.map(|table| thread::spawn(move || complete(&table, 7)));
        let mut names = others.map(|other| other.join().unwrap());
        names.sort_unstable();
        assert_eq!(names, [70, 71]);
        let mut gone = bury(&mut owner);
        gone.sort_unstable();
        assert_eq!((gone, owner.len()), (vec![70, 71], 0));
    });
}

/// Lists made anew meanwhile do not mislead a visitor.
#[test]
fn a_request_is_found_while_the_table_grows() {
    for (first, handed) in [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5)] {
        model(move || {
            let mut owner = Owner::default();
            put(&mut owner, first, 10);
            put(&mut owner, handed, 20);
            let table = owner.table().clone();
            let other = thread::spawn(move || complete(&table, handed));
            put(&mut owner, 7, 70);
            assert_eq!(other.join().unwrap(), 20);
            assert_eq!(bury(&mut owner), [20]);
            assert!(owner.finder().find(7).is_some_and(|(_, node)| node.fact(0) == 70));
        });
    }
}
