//! Communication topologies in words: shapes, patterns with pictures, matrices, placements.

pub mod matrix;
pub mod picture;
pub mod placement;

use ampl_analysis::topology::{Axis, Shape};
use ampl_core::units::RankSet;

/// Names of axes.
pub const AXES: [&str; 8] = ["x", "y", "z", "u", "v", "w", "s", "t"];

/// The shape in words.
pub fn describe(shape: &Shape) -> String {
    let by = |axes: &[Axis]| axes.iter().map(|axis| axis.size.to_string()).collect::<Vec<_>>().join(" x ");
    match shape {
        Shape::Line(size) => format!("line of {size}"),
        Shape::Ring(size) => format!("ring of {size}"),
        Shape::Complete(size) => format!("complete graph of {size}"),
        Shape::Star(size) => format!("star of {size}"),
        Shape::CompleteBipartite(a, b) => format!("complete bipartite graph of {a} and {b}"),
        Shape::Lattice(axes) => lattice(axes),
        Shape::Hypercube(bits) => format!("hypercube of {bits} dimensions"),
        Shape::Hamming(sizes) => {
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            format!("{} Hamming graph", sizes.join(" x "))
        }
        Shape::Skewed(axes) => format!("6-point stencil on a {}", lattice(axes)),
        Shape::Moore(axes) => {
            format!("{}-point stencil on a {}", if axes.len() == 2 { 8 } else { 26 }, lattice(axes))
        }
        Shape::Tree { vertices, arity } => format!("tree of {vertices}, {arity} children each"),
        Shape::BinomialTree { vertices, .. } => format!("binomial tree of {vertices}"),
        Shape::Cg { .. } => format!("{} exchange of conjugate gradients (NPB CG)", by(&shape.axes())),
        Shape::Butterfly(bits) => format!("butterfly of {} levels, {} each", bits + 1, 1_u64 << bits),
        Shape::Product(shapes) => {
            shapes.iter().map(|shape| format!("({})", describe(shape))).collect::<Vec<_>>().join(" x ")
        }
        other => format!("{} ({})", other.name(), by(&other.axes())),
    }
}

fn lattice(axes: &[Axis]) -> String {
    let sizes = axes.iter().map(|axis| axis.size.to_string()).collect::<Vec<_>>().join(" x ");
    let periodic: Vec<&str> =
        axes.iter().zip(AXES).filter(|(axis, _)| axis.periodic).map(|(_, name)| name).collect();
    let open = axes.iter().any(|axis| !axis.periodic && axis.size > 2);
    match (periodic.is_empty(), open) {
        (true, _) => format!("{sizes} grid"),
        (false, false) => format!("{sizes} torus"),
        (false, true) => format!("{sizes} torus, periodic in {} only", periodic.join(" and ")),
    }
}

/// `0-3,8`: `ranks`, which ascend.
pub fn rank_set(ranks: impl IntoIterator<Item = u32>) -> String {
    ranks.into_iter().collect::<RankSet>().to_string()
}
