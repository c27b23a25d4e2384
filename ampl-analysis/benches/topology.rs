//! Topologies of graphs whose vertices are numbered at random: how long it takes to name them, or to name none.
//!
//! Names are asserted, times are printed: medians and minima of the calls, without reading or building the graph.
#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]

use std::time::Instant;

use ampl_analysis::topology::{Graph, Options, identify};
use ampl_testkit::topology::Family::{self, *};
use ampl_testkit::topology::{Edges, random_regular, shuffled, switched, twisted_torus};

/// A graph's edges, made when they are wanted.
type Generate = Box<dyn Fn() -> Edges>;

fn main() {
    let largest = std::env::args().skip_while(|word| word != "--vertices").nth(1);
    let largest: u32 = largest.and_then(|number| number.parse().ok()).unwrap_or(1_100_000);
    println!(
        "{:>34} {:>10} {:>10} {:>12} {:>10} {:>10}",
        "graph", "vertices", "edges", "name", "median ms", "least ms"
    );
    let only = std::env::args().skip_while(|word| word != "--only").nth(1).unwrap_or_default();
    for (about, name, graph) in graphs(largest).filter(|(about, ..)| about.contains(&only)) {
        let graph = shuffled(&graph(), 1);
        let (vertices, edges) = (graph.0, graph.1.len());
        let built = Graph::from_edges(vertices, &graph.1).expect("the graph is small enough");
        drop(graph);
        let rounds = if edges < 100_000 { 21 } else { 3 };
        let mut times: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                let topology = identify(&built, &Options::default());
                let time = start.elapsed().as_secs_f64() * 1e3;
                let found = topology.patterns.first().map_or("none", |pattern| pattern.shape.name());
                assert_eq!(found, name, "{about}");
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{about:>34} {vertices:>10} {edges:>10} {name:>12} {:>10.2} {:>10.2}",
            times[times.len() / 2],
            times[0]
        );
    }
}

/// Graphs of at most `largest` vertices: a description, the name, and the graph as its definition numbers it.
fn graphs(largest: u32) -> impl Iterator<Item = (String, &'static str, Generate)> {
    let torus = |sizes: &[u32]| Lattice(sizes.to_vec(), vec![true; sizes.len()]);
    let grid = |sizes: &[u32]| Lattice(sizes.to_vec(), vec![false; sizes.len()]);
    let families = [
        ("stencil6", SixPoints([23, 23], [true; 2])),
        ("line", grid(&[100_000])),
        ("grid", grid(&[317, 317])),
        ("torus", torus(&[46, 46, 47])),
        ("torus", torus(&[10, 10, 10, 10, 10])),
        ("stencil6", SixPoints([317, 317], [true; 2])),
        ("stencil6", SixPoints([3, 33_333], [true; 2])),
        ("stencil8", Moore(vec![317, 317], vec![false; 2])),
        ("stencil26", Moore(vec![46, 46, 46], vec![true; 3])),
        ("hypercube", Hypercube(17)),
        ("star", Star(100_000)),
        ("complete", Complete(1500)),
        ("complete-bipartite", Bipartite(1000, 1500)),
        ("hamming", Hamming(vec![20, 10, 10])),
        ("tree", Tree(100_000, 2)),
        ("tree", Tree(100_000, 7)),
        ("binomial-tree", Halving(131_072)),
        ("binomial-tree", Doubling(100_000)),
        ("cg", Cg(65_536)),
        ("cg", Cg(131_072)),
        ("butterfly", Butterfly(13)),
        ("grid", grid(&[1000, 1000])),
        ("torus", torus(&[1000, 1000])),
        ("torus", torus(&[100, 100, 100])),
        ("torus", torus(&[10, 10, 10, 10, 10, 10])),
        ("hypercube", Hypercube(20)),
        ("cg", Cg(1 << 20)),
        ("stencil26", Moore(vec![100, 100, 100], vec![false; 3])),
    ];
    let named = families.into_iter().map(|(name, family)| (about(&family), name, family));
    let named = named.filter(move |(_, _, family)| size(family) <= largest);
    let lattice = || Lattice(vec![317, 317], vec![true; 2]);
    let none: [(&str, Generate); 7] = [
        ("random, 4 neighbours", Box::new(|| random_regular(100_000, 4, 1))),
        ("random, 26 neighbours", Box::new(|| random_regular(100_000, 26, 1))),
        ("torus 317x317, twisted by 5", Box::new(|| twisted_torus(317, 317, 5))),
        ("torus 317x317, two edges switched", Box::new(move || switch(&lattice()))),
        ("6 points 317x317, two switched", Box::new(|| switch(&SixPoints([317, 317], [true; 2])))),
        ("26 points 46x46x46, two switched", Box::new(|| switch(&Moore(vec![46; 3], vec![true; 3])))),
        ("hypercube 17, two switched", Box::new(|| switch(&Hypercube(17)))),
    ];
    let none = none.into_iter().filter(move |_| largest >= 100_000);
    named
        .map(|(about, name, family)| -> (String, &str, Generate) {
            (about, name, Box::new(move || family.edges()))
        })
        .chain(none.map(|(about, graph)| (about.to_owned(), "none", graph)))
}

fn switch(family: &Family) -> Edges {
    switched(&family.edges(), 1).expect("two edges can be switched")
}

fn about(family: &Family) -> String {
    let text = format!("{family:?}");
    text.replace("true, ", "").replace("false, ", "").replace("vec!", "")
}

/// Vertices of `family`, or near enough.
fn size(family: &Family) -> u32 {
    match family {
        Lattice(sizes, _) | Moore(sizes, _) | Hamming(sizes) => sizes.iter().product(),
        SixPoints(sizes, _) => sizes.iter().product(),
        Hypercube(bits) => 1 << bits,
        Complete(size) | Star(size) | Halving(size) | Doubling(size) | Cg(size) | Tree(size, _) => *size,
        Bipartite(a, b) => a + b,
        Butterfly(bits) => (bits + 1) << bits,
    }
}
