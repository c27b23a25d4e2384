use super::*;
use ampl_trace::request::UNSEEN;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MAKER: Option<u32> = Some(4);
const FIRST: u64 = 5 << 20;
const NULL: (u64, u64) = (0, 99);

fn threads<const COUNT: usize>() -> [Requests; COUNT] {
    let tables = Arc::new(RequestTables::new(true));
    std::array::from_fn(|number| Requests::new(tables.clone(), number as u32))
}

/// Completes the requests of `handles` in one call; returns their names.
fn complete(requests: &mut Requests, handles: &[u64]) -> Vec<u64> {
    let mut named = CallRequests::default();
    requests.name(handles, NULL, true, &mut named);
    for (&place, &handle) in named.places().iter().zip(handles) {
        requests.end(place, handle);
    }
    requests.give_back(&mut named);
    named.words().to_vec()
}

/// Names the requests of `handles` for a call that completes none.
fn look(requests: &mut Requests, handles: &[u64]) -> Vec<u64> {
    let mut named = CallRequests::default();
    requests.name(handles, NULL, true, &mut named);
    requests.give_back(&mut named);
    named.words().to_vec()
}

#[test]
fn numbers_tell_who_made_a_request() {
    let [mut requests] = threads();
    assert_eq!(requests.make(7, Request::default(), MAKER), FIRST);
    assert_eq!(requests.make(8, Request::default(), MAKER), FIRST + 1);
    assert_eq!(look(&mut requests, &[7, 0, 8]), [FIRST, 99, FIRST + 1]);
    complete(&mut requests, &[7]);
    let sends = Request { sent: 8, active: true, ..Request::default() };
    assert_eq!(requests.make(9, sends, MAKER), FIRST);
    let mut named = CallRequests::default();
    requests.name(&[8, 9], NULL, true, &mut named);
    assert_eq!((named.words(), named.marks()[1] & SILENT), (&[FIRST + 1, FIRST][..], SILENT));
    assert_eq!(requests.bytes(named.places()[1]), (8, 0));
    assert_eq!(complete(&mut requests, &[8, 9]), [UNSEEN | 1, UNSEEN | 2], "another call has them");
    requests.give_back(&mut named);
    complete(&mut requests, &[8, 9]);
    assert!(requests.is_empty());
    assert_eq!(look(&mut requests, &[9]), [UNSEEN | 1]);
}

#[test]
fn a_handle_given_again_is_not_that_of_a_receive_before() {
    let [mut requests] = threads();
    let receive = Request { receives: true, active: true, alone: true, ..Request::default() };
    requests.make(5, receive, MAKER);
    // The first has ended unseen.
    assert_eq!(requests.make(5, receive, MAKER), FIRST + 1);
    assert_eq!(look(&mut requests, &[5]), [FIRST + 1]);
    assert_eq!(requests.make(6, receive, MAKER), FIRST);
    complete(&mut requests, &[5, 6]);
    assert!(requests.is_empty());
    // Requests that a call is about to complete are left to it.
    let mut named = CallRequests::default();
    requests.make(7, receive, MAKER);
    requests.name(&[7], NULL, true, &mut named);
    requests.make(7, receive, MAKER);
    requests.end(named.places()[0], 7);
    assert_eq!(look(&mut requests, &[7]), [FIRST + 1]);
}

#[test]
fn a_program_may_name_one_request_twice() {
    let [mut makes, mut other] = threads();
    let inactive = Request { persistent: true, alone: true, ..Request::default() };
    makes.make(5, inactive, MAKER);
    for requests in [&mut makes, &mut other] {
        for _ in 0..2 {
            assert_eq!(look(requests, &[5, 0, 5, 5]), [FIRST, 99, FIRST, FIRST]);
        }
    }
    complete(&mut makes, &[5]);
    makes.make(5, inactive, Some(9));
    assert_eq!(complete(&mut makes, &[5]), [10 << 20]);
    assert!(makes.is_empty());
}

#[test]
fn one_handle_may_stand_for_several_in_turn() {
    let [mut requests] = threads();
    for slot in 0..3 {
        assert_eq!(requests.make(5, Request::default(), MAKER), FIRST + slot);
    }
    requests.make(6, Request::default(), Some(9));
    for _ in 0..2 {
        assert_eq!(look(&mut requests, &[5, 0, 5, 6, 5]), [FIRST, 99, FIRST + 1, 10 << 20, FIRST + 2]);
    }
    assert_eq!(complete(&mut requests, &[5]), [FIRST]);
    assert_eq!(complete(&mut requests, &[5, 5]), [FIRST + 1, FIRST + 2]);
    complete(&mut requests, &[6]);
    assert!(requests.is_empty());
}

#[test]
fn where_threads_take_turns_a_shared_handle_is_noticed_all_the_same() {
    let mut requests = Requests::new(Arc::new(RequestTables::new(false)), 0);
    requests.make(5, Request::default(), MAKER);
    assert_eq!(look(&mut requests, &[5]), [FIRST]);
    requests.make(5, Request::default(), MAKER);
    assert_eq!(complete(&mut requests, &[5, 5]), [FIRST, FIRST + 1]);
}

#[test]
fn what_is_forgotten_gives_its_number_back() {
    let [mut requests, mut other] = threads();
    requests.make(5, Request { persistent: true, active: true, ..Request::default() }, MAKER);
    requests.make(6, Request::default(), MAKER);
    requests.make(6, Request::default(), MAKER);
    other.forget_passing();
    assert_eq!(look(&mut other, &[6]), [UNSEEN | 1 << 40 | 1], "what others do not know to be forgotten");
    assert_eq!(requests.make(7, Request::default(), MAKER), FIRST + 1);
    assert_eq!(requests.make(7, Request::default(), MAKER), FIRST + 2);
    let mut named = CallRequests::default();
    requests.name(&[5], NULL, false, &mut named);
    assert_eq!((named.words(), named.marks()[0] & STARTED), (&[FIRST][..], 0));
}

#[test]
fn a_request_may_be_handed_to_another_thread() {
    let [mut one, mut two, mut three] = threads();
    let persistent = Request { persistent: true, ..Request::default() };
    one.make(5, Request { peer: Peer::Any(3), active: true, receives: true, ..Request::default() }, MAKER);
    one.make(6, persistent, MAKER);
    let mut named = CallRequests::default();
    two.name(&[6, 5], NULL, true, &mut named);
    assert_eq!(named.words(), [FIRST + 1, FIRST]);
    assert!(named.any(NAMES_PARTNER) && named.any(TELLS));
    assert_eq!(two.peer(named.places()[1]), (Peer::Any(3), true));
    two.set_active(named.places()[0], true);
    two.end(named.places()[1], 5);
    two.give_back(&mut named);
    // The handle is another request's now: that of thread 3.
    three.make(5, Request::default(), MAKER);
    assert_eq!(look(&mut two, &[5]), [2 << 48 | FIRST]);
    assert_eq!(look(&mut one, &[5, 6]), [2 << 48 | FIRST, FIRST + 1]);
    one.name(&[6], NULL, true, &mut named);
    assert!(named.any(STARTED));
    one.give_back(&mut named);
    assert_eq!(one.make(7, Request::default(), MAKER), FIRST, "what another thread has completed is gone");
}

#[test]
fn a_handle_may_be_used_again_before_the_end_of_its_request_is_noted() {
    let [mut one, mut two, mut three] = threads();
    let mut named = CallRequests::default();
    one.make(5, Request::default(), MAKER);
    one.name(&[5], NULL, true, &mut named);
    // Inside of MPI the request is gone, and thread 2 gets its handle.
    two.make(5, Request::default(), MAKER);
    assert_eq!(look(&mut three, &[5]), [1 << 48 | FIRST]);
    assert_eq!(complete(&mut two, &[5]), [1 << 48 | FIRST]);
    one.end(named.places()[0], 5);
    one.give_back(&mut named);
    assert!(one.is_empty() && two.is_empty());
}

#[test]
fn other_calls_may_be_about_what_one_is_completing() {
    let [mut one, mut two] = threads();
    let (mut waited, mut other) = (CallRequests::default(), CallRequests::default());
    one.make(5, Request::default(), MAKER);
    two.name(&[5], NULL, true, &mut waited);
    for requests in [&mut one, &mut two] {
        requests.name(&[5], NULL, false, &mut other);
        assert_eq!(other.words(), [FIRST]);
        requests.give_back(&mut other);
    }
    two.end(waited.places()[0], 5);
    assert!(one.is_empty());
}

#[test]
fn two_threads_that_were_told_of_the_same_request_end_two() {
    let [mut one, mut two, mut three] = threads();
    // Both sends are done: MPICH has one handle for that.
    one.make(5, Request::default(), MAKER);
    three.make(5, Request::default(), MAKER);
    let (mut first, mut second) = (CallRequests::default(), CallRequests::default());
    two.name(&[5], NULL, true, &mut first);
    // As if thread 1 had searched just before that claim.
    one.mine.release(first.places()[0].at());
    one.name(&[5], NULL, true, &mut second);
    assert_eq!((first.words(), second.words()), (&[FIRST][..], &[FIRST][..]));
    one.end(second.places()[0], 5);
    two.end(first.places()[0], 5);
    assert!(one.is_empty() && two.is_empty() && three.is_empty());
}

proptest! {
    /// Whatever is made, passed on and completed, in any order: a request's name lasts from its making to its end.
    #[test]
    fn agrees_with_a_map(steps in prop::collection::vec((0usize..3, 0u64..40, 0u8..4), 0..1500)) {
        let mut threads = threads::<3>();
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        for (thread, handle, step) in steps {
            let handle = 1000 + handle * 64;
            let requests = &mut threads[thread];
            match (step, live.get(&handle).copied()) {
                (0 | 1, None) => {
                    let number = requests.make(handle, Request::default(), MAKER);
                    prop_assert!(live.values().all(|&live| live != number));
                    live.insert(handle, number);
                }
                (2, Some(number)) => prop_assert_eq!(look(requests, &[handle, 0, handle + 1])[0], number),
                (_, Some(number)) => {
                    prop_assert_eq!(complete(requests, &[handle]), [number]);
                    live.remove(&handle);
                }
                (_, None) => {}
            }
        }
        let handles: Vec<u64> = live.keys().copied().collect();
        let numbers: Vec<u64> = live.into_values().collect();
        prop_assert_eq!(complete(&mut threads[0], &handles), numbers);
    }
}

/// More than there is room for at first: lists are made anew, and each finds its own.
#[test]
fn as_many_as_there_are_have_names() {
    let [mut one, mut two] = threads();
    let handles: Vec<u64> = (1..5000).map(|handle| handle * 400).collect();
    let numbers: Vec<u64> =
        handles.iter().map(|&handle| one.make(handle, Request::default(), MAKER)).collect();
    assert_eq!(look(&mut one, &handles), numbers);
    assert_eq!(look(&mut two, &handles), numbers);
    let backwards: Vec<u64> = handles.iter().rev().copied().collect();
    assert!(complete(&mut two, &backwards).iter().rev().eq(&numbers));
    assert!(one.is_empty());
    assert_eq!(one.make(1, Request::default(), MAKER), FIRST);
}
