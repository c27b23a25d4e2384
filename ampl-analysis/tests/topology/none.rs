//! Graphs that must not be claimed: disturbed and random graphs, each claim compared with nauty's canonical forms.

use std::collections::BTreeSet;

use crate::common::{claims, identified, whole};
use ampl_testkit::topology::Family::{self, *};
use ampl_testkit::topology::canonical::{all_connected, forms};
use ampl_testkit::topology::{
    Edges, random_regular, shuffled, switched, twisted_torus, with_edge, without_edge,
};
use proptest::prelude::*;

/// Factors from 2 with that product, in descending order.
fn factorisations(product: u32, most: u32) -> Vec<Vec<u32>> {
    if product == 1 {
        return vec![Vec::new()];
    }
    let firsts = (2..=most).filter(|first| product.is_multiple_of(*first));
    let with = |first: u32| {
        let rest = factorisations(product / first, first);
        rest.into_iter().map(move |rest| [&[first][..], &rest].concat())
    };
    firsts.flat_map(with).collect()
}

/// Every family with so many vertices.
fn families(size: u32) -> Vec<Family> {
    let mut families = vec![Complete(size), Star(size), Halving(size), Doubling(size)];
    families.extend((1..size).map(|side| Bipartite(side, size - side)));
    families.extend((2..size).map(|arity| Tree(size, arity)));
    for sizes in factorisations(size, size) {
        for mask in 0..1_u32 << sizes.len() {
            let periodic: Vec<bool> = (0..sizes.len()).map(|axis| mask >> axis & 1 == 1).collect();
            if let [a, b] = sizes[..] {
                families.push(SixPoints([a, b], [periodic[0], periodic[1]]));
            }
            if (2..4).contains(&sizes.len()) {
                families.push(Moore(sizes.clone(), periodic.clone()));
            }
            families.push(Lattice(sizes.clone(), periodic));
        }
        families.push(Hamming(sizes));
    }
    if size.is_power_of_two() && size > 2 {
        families.push(Cg(size));
    }
    families.extend((1..4).filter(|bits| (bits + 1) << bits == size).map(Butterfly));
    families
}

/// Checks that of `graphs`, connected or not and of at most 62 vertices, exactly those are named that are of a family.
fn exact(graphs: &[Edges]) {
    let Some(canonical) = forms(graphs) else { return };
    let mut known: Vec<(u32, BTreeSet<String>)> = Vec::new();
    for (graph, form) in graphs.iter().zip(canonical) {
        let topology = identified(graph);
        let named = topology.patterns.iter().any(|pattern| pattern.copies[0].ranks.len() == graph.0 as usize);
        if !known.iter().any(|(size, _)| *size == graph.0) {
            let all: Vec<Edges> = families(graph.0).iter().map(Family::edges).collect();
            known.push((graph.0, forms(&all).unwrap().into_iter().collect()));
        }
        let (_, family) = known.iter().find(|(size, _)| *size == graph.0).unwrap();
        if family.contains(&form) {
            assert!(named, "{graph:?} is of a family");
            claims(graph, &topology);
        } else if named {
            // Products of other shapes are no family of the checker's.
            let shape = &topology.patterns[0].shape;
            assert_eq!(shape.name(), "product", "{graph:?} is no {shape:?}");
            let other: Vec<(u32, u32)> = shape.graph().unwrap().each_edge().collect();
            assert_eq!(forms(&[(graph.0, other)]).unwrap()[0], form);
        }
    }
}

#[test]
fn every_connected_graph_of_up_to_seven_vertices() {
    for vertices in 2..=7 {
        let Some(graphs) = all_connected(vertices) else { return };
        exact(&graphs);
    }
}

#[test]
fn an_edge_less_an_edge_more_and_two_edges_switched() {
    let families = [
        Lattice(vec![5, 5], vec![false; 2]),
        Lattice(vec![6, 4], vec![true; 2]),
        Lattice(vec![7, 3], vec![true, false]),
        Lattice(vec![3, 3, 4], vec![true, false, true]),
        Lattice(vec![2, 3, 2, 3], vec![true; 4]),
        Lattice(vec![2, 2, 2, 2, 3], vec![false; 5]),
        Lattice(vec![13], vec![true]),
        Lattice(vec![14], vec![false]),
        SixPoints([4, 4], [true; 2]),
        SixPoints([6, 6], [true; 2]),
        SixPoints([3, 3], [true; 2]),
        SixPoints([5, 4], [false; 2]),
        Moore(vec![5, 6], vec![false; 2]),
        Moore(vec![5, 4], vec![true; 2]),
        Moore(vec![3, 4, 3], vec![false; 3]),
        Moore(vec![3, 4, 5], vec![true; 3]),
        Hypercube(3),
        Hypercube(4),
        Hypercube(5),
        Complete(9),
        Star(9),
        Bipartite(4, 5),
        Hamming(vec![5, 4]),
        Tree(15, 2),
        Tree(21, 4),
        Halving(16),
        Doubling(22),
        Cg(8),
        Cg(16),
        Cg(32),
        Butterfly(3),
    ];
    let mut graphs = Vec::new();
    for family in families {
        let natural = family.edges();
        for seed in 0..3 {
            let disturbed =
                [Some(without_edge(&natural, seed)), with_edge(&natural, seed), switched(&natural, seed)];
            graphs.extend(disturbed.into_iter().flatten().map(|graph| shuffled(&graph, seed)));
        }
    }
    exact(&graphs);
}

#[test]
fn random_regular_graphs_and_twisted_tori() {
    let mut graphs = Vec::new();
    for (size, degree) in [(12, 3), (16, 4), (25, 4), (27, 6), (36, 6), (32, 5), (49, 4), (60, 8)] {
        graphs.extend((0..3).map(|seed| random_regular(size, degree, seed)));
    }
    for (rows, columns) in [(4, 4), (5, 5), (3, 6), (6, 5), (4, 8), (7, 7), (8, 6)] {
        graphs.extend((1..columns).map(|twist| shuffled(&twisted_torus(rows, columns, twist), 1)));
    }
    exact(&graphs);
}

#[test]
fn large_ones_are_none_as_well() {
    for (size, degree) in [(1000, 4), (1024, 10), (729, 6), (512, 26), (1000, 8)] {
        assert!(whole(&random_regular(size, degree, 1)).is_none());
    }
    assert!(whole(&twisted_torus(23, 31, 5)).is_none());
    for family in [
        Lattice(vec![23, 23], vec![true; 2]),
        SixPoints([23, 23], [true; 2]),
        Moore(vec![8, 8, 8], vec![true; 3]),
        Hypercube(9),
        Cg(256),
        Complete(40),
    ] {
        let natural = family.edges();
        let disturbed = [Some(without_edge(&natural, 1)), with_edge(&natural, 1), switched(&natural, 1)];
        for graph in disturbed.into_iter().flatten() {
            assert!(whole(&shuffled(&graph, 1)).is_none(), "{family:?}");
        }
    }
}

fn any_family() -> impl Strategy<Value = Family> {
    let axes = |count: std::ops::Range<usize>, most: u32| {
        prop::collection::vec((2..=most, any::<bool>()), count).prop_map(|axes| axes.into_iter().unzip())
    };
    prop_oneof![
        axes(1..3, 20).prop_map(|(sizes, periodic)| Lattice(sizes, periodic)),
        axes(3..7, 4).prop_map(|(sizes, periodic)| Lattice(sizes, periodic)),
        (2..14_u32, 2..14_u32, any::<[bool; 2]>()).prop_map(|(p, q, periodic)| SixPoints([p, q], periodic)),
        axes(2..3, 12).prop_map(|(sizes, periodic)| Moore(sizes, periodic)),
        axes(3..4, 6).prop_map(|(sizes, periodic)| Moore(sizes, periodic)),
        (1..9_u32).prop_map(Hypercube),
        (2..40_u32).prop_map(Complete),
        (2..40_u32).prop_map(Star),
        (1..12_u32, 1..12_u32).prop_map(|(a, b)| Bipartite(a, b)),
        prop::collection::vec(2..6_u32, 2..4).prop_map(Hamming),
        (2..200_u32, 2..7_u32).prop_map(|(size, arity)| Tree(size, arity)),
        (2..200_u32).prop_map(Halving),
        (2..200_u32).prop_map(Doubling),
        (2..9_u32).prop_map(|bits| Cg(1 << bits)),
        (1..6_u32).prop_map(Butterfly),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_family_in_any_numbering_is_found(family in any_family(), seed: u64) {
        let natural = family.edges();
        prop_assert!(whole(&shuffled(&natural, seed)).is_some());
        prop_assert!(whole(&natural).is_some());
    }

    #[test]
    fn whatever_is_claimed_holds(family in any_family(), seed: u64, count in 1..4) {
        let mut graph = family.edges();
        for step in 0..count as u64 {
            let disturbed = match (seed ^ step) % 3 {
                0 if graph.1.len() > 1 => Some(without_edge(&graph, seed)),
                1 => with_edge(&graph, seed),
                _ if graph.1.len() > 1 => switched(&graph, seed),
                _ => None,
            };
            graph = disturbed.unwrap_or(graph);
        }
        claims(&graph, &identified(&graph));
    }
}
