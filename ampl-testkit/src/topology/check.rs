//! A checker of claims: is a graph what it is said to be, with these coordinates?

use std::collections::BTreeSet;

/// Claim about a connected graph, in the names and fields of `ampl topology --json`.
#[derive(Clone, Debug, Default)]
pub struct Claim<'a> {
    /// The topology's name.
    pub name: &'a str,
    /// Sizes of the axes.
    pub dims: Vec<u32>,
    /// Dimensions that close.
    pub periodic: Vec<bool>,
    /// Most children of a vertex, of a tree.
    pub arity: Option<u32>,
    /// Of a binomial tree, the bit that a parent has not: `lowest` or `highest`.
    pub cleared_bit: Option<&'a str>,
    /// For each vertex its coordinates.
    pub coordinates: Vec<Vec<u32>>,
}

/// Checks `claim` of the graph of `edges`: coordinates lie in the box, each once, and of all pairs of vertices exactly
/// those are edges that the definition says.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(claim: &Claim<'_>, vertices: u32, edges: &[(u32, u32)]) -> Result<(), String> {
    let places = &claim.coordinates;
    if places.len() != vertices as usize {
        return Err(format!("{} coordinates of {vertices} vertices", places.len()));
    }
    if places.iter().collect::<BTreeSet<_>>().len() != places.len() {
        return Err("coordinates are repeated".into());
    }
    for place in places {
        if !inside(claim, place) {
            return Err(format!("{place:?} lies outside {:?}", claim.dims));
        }
    }
    let count = match claim.name {
        "complete-bipartite" => claim.dims.iter().sum::<u32>(),
        _ => claim.dims.iter().product(),
    };
    if count != vertices {
        return Err(format!("{:?} are not {vertices} vertices", claim.dims));
    }
    let edges: BTreeSet<(u32, u32)> =
        edges.iter().filter(|(u, v)| u != v).map(|&(u, v)| (u.min(v), u.max(v))).collect();
    for u in 0..vertices {
        for v in u + 1..vertices {
            let (a, b) = (&places[u as usize], &places[v as usize]);
            let expected = joined(claim, a, b)?;
            if expected != edges.contains(&(u, v)) {
                return Err(format!("{u}-{v} at {a:?} and {b:?}: an edge is {expected} by definition"));
            }
        }
    }
    Ok(())
}

fn inside(claim: &Claim<'_>, place: &[u32]) -> bool {
    if claim.name == "complete-bipartite" {
        return place.len() == 2 && place[0] < 2 && place[1] < claim.dims[place[0] as usize];
    }
    place.len() == claim.dims.len() && place.iter().zip(&claim.dims).all(|(own, size)| own < size)
}

/// True if vertices at `a` and `b`, which differ, are neighbours.
fn joined(claim: &Claim<'_>, a: &[u32], b: &[u32]) -> Result<bool, String> {
    // Along one axis: steps that lead from a to b, of -1, 0 and 1.
    let steps = |axis: usize| -> Vec<i64> {
        let (from, to, size) = (i64::from(a[axis]), i64::from(b[axis]), i64::from(claim.dims[axis]));
        let around = claim.periodic.get(axis).copied().unwrap_or(false);
        let leads = |by: &i64| from + by == to || around && (from + by).rem_euclid(size) == to;
        [-1, 0, 1].into_iter().filter(leads).collect()
    };
    let differing = a.iter().zip(b).filter(|(a, b)| a != b).count();
    Ok(match claim.name {
        "line" | "ring" | "grid" | "torus" | "hypercube" => {
            differing == 1 && (0..a.len()).all(|axis| !steps(axis).is_empty())
        }
        "stencil8" | "stencil26" => (0..a.len()).all(|axis| !steps(axis).is_empty()),
        "stencil6" => steps(0).iter().any(|&x| steps(1).iter().any(|&y| x != y)),
        "complete" => true,
        "hamming" => differing == 1,
        "star" => a[0] == 0 || b[0] == 0,
        "complete-bipartite" => a[0] != b[0],
        "tree" => {
            let arity = claim.arity.ok_or("a tree without arity")?;
            let parent = |child: u32, parent: u32| child > 0 && (child - 1) / arity == parent;
            parent(a[0], b[0]) || parent(b[0], a[0])
        }
        "binomial-tree" => {
            let (low, high) = (a[0].min(b[0]), a[0].max(b[0]));
            let missing = low ^ high;
            let below = missing.is_power_of_two() && high & missing != 0;
            match claim.cleared_bit {
                Some("lowest") => below && high % missing == 0,
                Some("highest") => below && high < 2 * missing,
                other => return Err(format!("a binomial tree without {other:?}")),
            }
        }
        "cg" => {
            let same_copy = a.get(2) == b.get(2);
            let in_row = same_copy && a[0] == b[0] && (a[1] ^ b[1]).is_power_of_two();
            let transposed = same_copy && a[0] == b[1] && a[1] == b[0];
            in_row || transposed || !same_copy && a[..2] == b[..2]
        }
        "butterfly" => {
            let (low, high) = if a[0] < b[0] { (a, b) } else { (b, a) };
            high[0] == low[0] + 1 && (high[1] == low[1] || high[1] ^ low[1] == 1 << low[0])
        }
        other => return Err(format!("no such topology: {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_hold_for_the_very_graph_only() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 0)];
        let claim = |order: [u32; 4]| Claim {
            name: "ring",
            dims: vec![4],
            periodic: vec![true],
            coordinates: order.map(|place| vec![place]).to_vec(),
            ..Claim::default()
        };
        assert_eq!(check(&claim([0, 1, 2, 3]), 4, &edges), Ok(()));
        assert!(check(&claim([0, 2, 1, 3]), 4, &edges).is_err());
        assert!(check(&claim([0, 1, 2, 2]), 4, &edges).is_err());
        assert!(check(&claim([0, 1, 2, 4]), 4, &edges).is_err());
        assert!(check(&claim([0, 1, 2, 3]), 4, &edges[..3]).is_err());
        assert!(check(&Claim { name: "knot", ..claim([0, 1, 2, 3]) }, 4, &edges).is_err());
    }
}
