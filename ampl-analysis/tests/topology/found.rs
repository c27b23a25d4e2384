//! Topologies that are identified, against definitions written apart from the code.

use crate::common::{claims, identified, whole};
use ampl_testkit::topology::Family::{self, *};
use ampl_testkit::topology::{copies, shuffled};

/// Checks that `family`, in its own numbering and in others, is found under `name` with these sizes, or as an alias.
fn found(family: &Family, name: &str, dims: &[u32], periodic: &[bool]) {
    let natural = family.edges();
    for graph in [natural.clone(), shuffled(&natural, 1), shuffled(&natural, 2)] {
        let claim = whole(&graph).unwrap_or_else(|| panic!("{family:?} is not found"));
        assert!(claim.is(name, dims, periodic), "{family:?} is {:?}, not {name} {dims:?}", claim.names);
    }
}

fn sorted(sizes: &[u32], periodic: &[bool]) -> (Vec<u32>, Vec<bool>) {
    let mut axes: Vec<(u32, bool)> =
        sizes.iter().zip(periodic).map(|(&size, &periodic)| (size, periodic && size > 2)).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(axis));
    axes.into_iter().unzip()
}

fn lattice(sizes: &[u32], periodic: &[bool]) {
    let (dims, closed) = sorted(sizes, periodic);
    let name = match (sizes.len(), closed.contains(&true)) {
        (1, false) => "line",
        (1, true) => "ring",
        (_, false) => "grid",
        (_, true) => "torus",
    };
    found(&Lattice(sizes.to_vec(), periodic.to_vec()), name, &dims, &closed);
}

#[test]
fn grids_and_tori_of_one_to_six_dimensions() {
    let sizes: [&[u32]; 19] = [
        &[2],
        &[3],
        &[17],
        &[2, 2],
        &[4, 4],
        &[23, 23],
        &[7, 13],
        &[2, 31],
        &[3, 3],
        &[8, 3, 5],
        &[4, 4, 4],
        &[2, 7, 2],
        &[6, 6, 6],
        &[5, 3, 2, 7],
        &[4, 4, 3, 3],
        &[2, 2, 5, 2, 3],
        &[4, 3, 4, 3, 4],
        &[3, 2, 3, 2, 3, 2],
        &[2, 3, 2, 4, 2, 5],
    ];
    for sizes in sizes {
        let all = sizes.len();
        let mut kinds = vec![vec![false; all], vec![true; all]];
        kinds.push((0..all).map(|axis| axis % 2 == 0).collect());
        kinds.push((0..all).map(|axis| axis % 2 == 1).collect());
        kinds.dedup();
        for periodic in kinds {
            lattice(sizes, &periodic);
        }
    }
}

#[test]
fn six_point_stencils() {
    for sizes in [
        [2, 2],
        [2, 5],
        [3, 3],
        [4, 4],
        [3, 4],
        [5, 5],
        [6, 6],
        [8, 8],
        [7, 4],
        [3, 11],
        [2, 40],
        [3, 40],
        [4, 30],
        [11, 11],
        [23, 23],
    ] {
        for periodic in [[false, false], [true, true], [true, false], [false, true]] {
            let mut axes = [(sizes[0], periodic[0]), (sizes[1], periodic[1])];
            axes.sort_by_key(|&axis| std::cmp::Reverse(axis));
            let [(p, around), (q, other)] = axes;
            found(&SixPoints(sizes, periodic), "stencil6", &[p, q], &[around, other]);
        }
    }
}

#[test]
fn stencils_of_8_and_26_points() {
    let sizes: [&[u32]; 16] = [
        &[2, 2],
        &[3, 3],
        &[4, 4],
        &[5, 5],
        &[2, 9],
        &[3, 9],
        &[4, 9],
        &[13, 11],
        &[20, 30],
        &[3, 3, 3],
        &[4, 4, 4],
        &[5, 5, 5],
        &[2, 3, 4],
        &[2, 2, 7],
        &[3, 3, 7],
        &[6, 7, 8],
    ];
    for sizes in sizes {
        for mask in 0..1_u32 << sizes.len() {
            let periodic: Vec<bool> = (0..sizes.len()).map(|axis| mask >> axis & 1 == 1).collect();
            let (dims, closed) = sorted(sizes, &periodic);
            let name = if sizes.len() == 2 { "stencil8" } else { "stencil26" };
            found(&Moore(sizes.to_vec(), periodic), name, &dims, &closed);
        }
    }
}

#[test]
fn hypercubes_complete_graphs_stars_and_products_of_complete_graphs() {
    for bits in 1..=10 {
        found(&Hypercube(bits), "hypercube", &vec![2; bits as usize], &vec![false; bits as usize]);
    }
    for size in [2, 3, 4, 5, 16, 100] {
        found(&Complete(size), "complete", &[size], &[false]);
    }
    for size in [3, 4, 5, 16, 300] {
        found(&Star(size), "star", &[size], &[false]);
    }
    for (a, b) in [(1, 2), (2, 2), (2, 3), (3, 3), (4, 4), (5, 17), (30, 30)] {
        found(&Bipartite(a, b), "complete-bipartite", &[a, b], &[false; 2]);
    }
    let sizes: [&[u32]; 7] = [&[4, 2], &[4, 3], &[5, 5], &[4, 4, 4], &[7, 3, 2], &[20, 20], &[6, 5, 4, 3]];
    for sizes in sizes {
        found(&Hamming(sizes.to_vec()), "hamming", sizes, &vec![false; sizes.len()]);
    }
}

#[test]
fn trees() {
    for arity in 2..=5 {
        for size in [3, 4, 5, 7, 8, 15, 16, 31, 40, 100, 341] {
            if size > arity + 1 {
                let natural = Tree(size, arity).edges();
                for graph in [natural.clone(), shuffled(&natural, 1)] {
                    let claim = whole(&graph).unwrap_or_else(|| panic!("tree of {size} by {arity}"));
                    let names = ["tree", "line"];
                    assert!(names.iter().any(|name| claim.is(name, &[size], &[false])), "{:?}", claim.names);
                }
            }
        }
    }
    for size in [2, 3, 4, 6, 8, 11, 16, 32, 57, 64, 100, 256] {
        for family in [Halving(size), Doubling(size)] {
            let names = ["binomial-tree", "tree", "star", "line"];
            let claim = whole(&shuffled(&family.edges(), 3)).unwrap_or_else(|| panic!("{family:?}"));
            assert!(
                names.iter().any(|name| claim.is(name, &[size], &[false])),
                "{family:?} {:?}",
                claim.names
            );
            if size >= 16 {
                assert_eq!(claim.names[0].0, "binomial-tree", "{family:?}");
            }
        }
    }
}

#[test]
fn conjugate_gradients() {
    found(&Cg(8), "grid", &[4, 2], &[false; 2]);
    found(&Cg(16), "cg", &[4, 4], &[false; 2]);
    found(&Cg(32), "cg", &[4, 4, 2], &[false; 3]);
    found(&Cg(64), "cg", &[8, 8], &[false; 2]);
    found(&Cg(128), "cg", &[8, 8, 2], &[false; 3]);
    found(&Cg(256), "cg", &[16, 16], &[false; 2]);
    found(&Cg(512), "cg", &[16, 16, 2], &[false; 3]);
    found(&Cg(1024), "cg", &[32, 32], &[false; 2]);
}

#[test]
fn butterflies() {
    for bits in 2..=6 {
        found(&Butterfly(bits), "butterfly", &[bits + 1, 1 << bits], &[false; 2]);
    }
}

#[test]
fn copies_are_counted_and_kinds_told_apart() {
    let families = [
        (4, Lattice(vec![8, 8], vec![true; 2])),
        (3, Lattice(vec![5, 2], vec![false; 2])),
        (2, SixPoints([5, 5], [true; 2])),
        (5, Cg(16)),
        (2, Star(9)),
        (6, Complete(2)),
    ];
    let mut all = (0, Vec::new());
    for (count, family) in &families {
        let (vertices, edges) = copies(&family.edges(), *count);
        let shift = all.0;
        all.0 += vertices;
        all.1.extend(edges.iter().map(|&(u, v)| (u + shift, v + shift)));
    }
    // Three ranks that talk to nobody.
    all.0 += 3;
    for graph in [all.clone(), shuffled(&all, 4)] {
        let topology = identified(&graph);
        assert_eq!((topology.isolated.len(), topology.unknown.len()), (3, 0));
        let mut counts: Vec<usize> = topology.patterns.iter().map(|pattern| pattern.copies.len()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [2, 2, 3, 4, 5, 6]);
        claims(&graph, &topology);
    }
}

#[test]
fn ranks_in_their_own_order_choose_the_name() {
    let square = whole(&Lattice(vec![4, 4], vec![true; 2]).edges()).unwrap();
    assert_eq!(square.names[0], ("torus".into(), vec![4, 4], vec![true; 2]));
    let cube = whole(&Hypercube(4).edges()).unwrap();
    assert_eq!(cube.names[0].0, "hypercube");
    // A two is no ring: with fours alone beside it, it makes a cube.
    let torus = ("torus".to_owned(), vec![4, 4, 2], vec![true, true, false]);
    let cube = whole(&Lattice(torus.1.clone(), torus.2.clone()).edges()).unwrap();
    assert_eq!(cube.names[0], ("hypercube".into(), vec![2; 5], vec![false; 5]));
    assert_eq!(cube.names[1], torus);
    let mixed = whole(&Lattice(vec![4, 5], vec![true, false]).edges()).unwrap();
    assert_eq!(mixed.names[0], ("torus".into(), vec![5, 4], vec![false, true]));
}
