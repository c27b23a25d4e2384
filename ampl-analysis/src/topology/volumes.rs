//! Topologies of edges with volumes: where all edges together are none, those of high volume may be one.

use super::graph::{Graph, TooLarge};
use super::identify::{Options, Topology, identify};

/// Volumes below this share of the largest are first left out.
///
/// # Source
/// Q. Xu, J. Subhlok, R. Zheng, S. Voss, *Logicalization of communication traces from parallel execution* (2009).
const SHARE: f64 = 0.05;

/// Least ratio between neighbouring volumes that counts as a gap.
const GAP: f64 = 2.0;

/// Most layers.
const MOST_LAYERS: usize = 8;

/// Edges of similar volume, and the topology of these alone.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its edges with their volumes.
    pub edges: Vec<(u32, u32, f64)>,
    /// Volume below which edges were left to the next layers; `None` in the last.
    pub least: Option<f64>,
    /// Topology of its edges.
    pub topology: Topology,
}

/// Topology of the `edges` among `vertices`, each edge once, with its volume.
///
/// Where components of all edges together are none of the shapes, edges below a twentieth of the largest volume are set
/// apart, or those below the largest gap between volumes; if then all components are named, what was set apart is
/// looked at by itself.
///
/// # Errors
/// [`TooLarge`] from 2^31 edges on.
pub fn layers(
    vertices: u32,
    mut edges: Vec<(u32, u32, f64)>,
    options: &Options<'_>,
) -> Result<Vec<Layer>, TooLarge> {
    let mut layers: Vec<Layer> = Vec::new();
    loop {
        let topology = identify(&graph(vertices, &edges)?, options);
        let mut cut = None;
        if !topology.unknown.is_empty() && layers.len() + 1 < MOST_LAYERS {
            for least in thresholds(&edges) {
                let (high, low) =
                    edges.iter().copied().partition::<Vec<_>, _>(|&(_, _, volume)| volume >= least);
                let above = identify(&graph(vertices, &high)?, options);
                if above.unknown.is_empty() {
                    cut = Some((least, high, low, above));
                    break;
                }
            }
        }
        let Some((least, high, low, above)) = cut else {
            layers.push(Layer { edges, least: None, topology });
            return Ok(layers);
        };
        layers.push(Layer { edges: high, least: Some(least), topology: above });
        edges = low;
    }
}

fn graph(vertices: u32, edges: &[(u32, u32, f64)]) -> Result<Graph, TooLarge> {
    let plain: Vec<(u32, u32)> = edges.iter().map(|&(u, v, _)| (u, v)).collect();
    Graph::from_edges(vertices, &plain)
}

/// Volumes to cut at: some edges are at least as large, and some less.
fn thresholds(edges: &[(u32, u32, f64)]) -> Vec<f64> {
    let mut volumes: Vec<f64> = edges.iter().map(|&(_, _, volume)| volume).collect();
    volumes.sort_by(f64::total_cmp);
    volumes.dedup();
    let Some(&largest) = volumes.last() else { return Vec::new() };
    let share = volumes.iter().copied().find(|&volume| volume >= SHARE * largest);
    let ratio = |pair: &&[f64]| pair[1] / pair[0].max(f64::MIN_POSITIVE);
    let gap = volumes.windows(2).max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let gap = gap.filter(|pair| ratio(pair) >= GAP).map(|pair| pair[1]);
    let mut found: Vec<f64> = share.into_iter().chain(gap).filter(|&least| least > volumes[0]).collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_is_found_under_what_little_else_was_sent() {
        // MG on 16 ranks: a hypercube, and four pairs with half a percent of its volume.
        let mut edges = Vec::new();
        for rank in 0..16_u32 {
            edges.extend((0..4).map(|bit| (rank, rank ^ 1 << bit, 90.0)).filter(|&(u, v, _)| u < v));
        }
        edges.extend((4..8).map(|rank| (rank, rank + 7, 0.46)));
        let layers = layers(16, edges, &Options::default()).unwrap();
        let names: Vec<&str> = layers.iter().map(|layer| layer.topology.patterns[0].shape.name()).collect();
        assert_eq!(names, ["hypercube", "line"]);
        assert_eq!(layers[1].topology.patterns[0].copies.len(), 4);
        assert_eq!(layers[0].least, Some(90.0));
    }

    #[test]
    fn without_a_gap_nothing_is_cut() {
        let edges = vec![(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (2, 3, 1.0)];
        let layers = layers(4, edges, &Options::default()).unwrap();
        assert_eq!(layers.len(), 1);
        assert_eq!(layers[0].topology.unknown, [[0, 1, 2, 3]]);
    }
}
