//! Random sequences of calls for tests: loops in loops whose trip counts differ, and odd calls between.

use std::ops::Range;

use proptest::prelude::*;

/// Sequences of loops over calls below `calls`, each at most `times` long, with a call below `odd` behind each.
pub fn loops(calls: Range<u32>, times: Range<usize>, odd: Range<u32>) -> impl Strategy<Value = Vec<u32>> {
    let inner = (prop::collection::vec(calls, 1..4), prop::collection::vec(0usize..4, 1..4));
    let part = (prop::collection::vec(inner, 1..4), times, odd);
    prop::collection::vec(part, 1..5).prop_map(|parts| {
        let mut calls = Vec::new();
        for (body, times, odd) in parts {
            for step in 0..times {
                for (inner, trips) in &body {
                    (0..trips[step % trips.len()]).for_each(|_| calls.extend(inner));
                }
            }
            calls.push(odd);
        }
        calls
    })
}
