use super::*;
use crate::topology::{Axis, Graph, Options, Shape, Weight, identify};

/// Edges of a shape, of equal weight, and what is found in them.
fn of(shape: &Shape, number: impl Fn(u32) -> u32) -> (Vec<WeightedEdge>, Vec<Found>) {
    let graph = shape.graph().unwrap();
    let weight = Weight { messages: 10.0, bytes: 8000.0 };
    let ends = |(u, v): (u32, u32)| (number(u).min(number(v)), number(u).max(number(v)), weight);
    let mut edges: Vec<WeightedEdge> = graph.each_edge().map(ends).collect();
    edges.sort_unstable_by_key(|edge| (edge.0, edge.1));
    let plain: Vec<(u32, u32)> = edges.iter().map(|edge| (edge.0, edge.1)).collect();
    let topology = identify(&Graph::from_edges(graph.vertices(), &plain).unwrap(), &Options::default());
    let found = Found { edges: edges.clone(), least: None, topology, places: Vec::new() };
    (edges, vec![found])
}

fn grid(sizes: &[u32], periodic: bool) -> Shape {
    Shape::Lattice(sizes.iter().map(|&size| Axis { size, periodic }).collect())
}

#[test]
fn a_grid_dealt_out_round_robin_gets_its_blocks() {
    for shift in [1, 27] {
        let (edges, found) = of(&grid(&[8, 8], false), |vertex| vertex * shift % 64);
        let given: Vec<u32> = (0..64).map(|rank| rank % 8).collect();
        let placement = place(&edges, &given, &found);
        // Boxes of 2 x 4: 3 cuts of 8 edges across, 1 cut of 8 along.
        assert_eq!(placement.crossing.bytes, 32.0 * 8000.0);
        assert_eq!(sizes(&placement.nodes), [8; 8]);
        // Without the topology as well, within a tenth.
        let blind = place(&edges, &given, &[]);
        assert!(blind.crossing.bytes <= 1.1 * 32.0 * 8000.0, "{:?}", blind.crossing);
    }
}

#[test]
fn sizes_are_kept_and_nothing_gets_dearer() {
    let (edges, found) = of(&grid(&[5, 7], true), |vertex| vertex * 3 % 35);
    let given: Vec<u32> = (0..35).map(|rank| if rank < 3 { 0 } else { 1 + rank % 4 }).collect();
    let before = crossing(&edges, &given);
    let placement = place(&edges, &given, &found);
    let mut was = sizes(&given);
    let mut is = sizes(&placement.nodes);
    assert_eq!(was, is);
    was.sort_unstable();
    is.sort_unstable();
    assert!(placement.crossing.bytes < before.bytes);
    assert_eq!(placement.crossing, crossing(&edges, &placement.nodes));
}

#[test]
fn what_is_best_already_stays() {
    let (edges, found) = of(&grid(&[8], false), |vertex| vertex);
    let given: Vec<u32> = (0..8).map(|rank| rank / 4).collect();
    let placement = place(&edges, &given, &found);
    assert_eq!((placement.nodes, placement.method), (given, Method::Given));
    let alone = place(&[], &[0], &[]);
    assert_eq!((alone.nodes, alone.crossing.bytes), (vec![0], 0.0));
}

#[test]
fn the_busiest_node_counts_what_enters_and_leaves() {
    let weight = |bytes| Weight { messages: 1.0, bytes };
    let edges = [(0, 1, weight(5.0)), (1, 2, weight(7.0)), (0, 3, weight(1.0))];
    let sum = crossing(&edges, &[0, 1, 2, 0]);
    assert_eq!((sum.bytes, sum.messages), (12.0, 2.0));
    assert_eq!((sum.busiest, sum.busiest_bytes, sum.busiest_messages), (1, 12.0, 2.0));
}
