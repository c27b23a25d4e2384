//! Bytes as a file of topology patterns: refused with a reason, or patterns whose graphs are graphs.

use ampl_analysis::topology::pattern::parse;

/// Vertices of the graphs, which several sizes of up to three axes have.
const VERTICES: u32 = 12;
/// Numbers of edges: of a path, a ring, a torus, and more.
const EDGES: [u64; 6] = [1, 11, 12, 17, 24, 66];

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let patterns = match parse(&text) {
        Ok(patterns) => patterns,
        Err(fault) => return assert!(!fault.to_string().is_empty()),
    };
    for (pattern, edges) in patterns.iter().flat_map(|pattern| EDGES.map(|edges| (pattern, edges))) {
        for graph in pattern.graphs(VERTICES, edges) {
            let rows = &graph.neighbours;
            assert_eq!(rows.len(), VERTICES as usize);
            assert_eq!(rows.iter().map(Vec::len).sum::<usize>() as u64, 2 * edges);
            for (vertex, row) in (0..).zip(rows) {
                assert!(row.is_sorted_by(|one, next| one < next) && !row.contains(&vertex), "{rows:?}");
                assert!(row.iter().all(|&other| rows[other as usize].contains(&vertex)), "{rows:?}");
            }
        }
    }
}
