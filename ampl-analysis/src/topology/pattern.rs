//! Patterns of a user's own: graphs by their edges, or by formulas on coordinates.

use std::fmt;
use std::sync::Arc;

use evalexpr::{
    ContextWithMutableFunctions as _, ContextWithMutableVariables as _, EvalexprError, EvalexprResult,
    Function, HashMapContext, Node, Value, build_operator_tree,
};
use toml_edit::{DocumentMut, Item, Table};

use super::{Axis, NamedGraph};

/// Names of the coordinates; of sizes with an `n` before.
const NAMES: [&str; 6] = ["x", "y", "z", "u", "v", "w"];

/// Most neighbours that are computed to see if one size of a pattern fits.
const MOST_STEPS: u64 = 20_000_000;

/// Most bytes of a formula: it is evaluated as deeply as it is nested.
const LONGEST: usize = 1000;

/// One pattern of a file.
#[derive(Debug)]
pub struct Pattern {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Edges(u32, Vec<(u32, u32)>),
    /// Formulas on coordinates; a size of `None` is any.
    Formula {
        sizes: Vec<Option<u32>>,
        periodic: Vec<bool>,
        neighbours: Vec<Node>,
    },
}

/// Fault of a file of patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// Patterns of a file with this text.
///
/// # Errors
/// The first fault in it.
pub fn parse(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| PatternError(error.message().to_owned()))?;
    let tables = document.get("pattern").and_then(Item::as_array_of_tables);
    let tables = tables.ok_or_else(|| PatternError("there is no [[pattern]]".into()))?;
    if let Some((other, _)) = document.iter().find(|(key, _)| *key != "pattern") {
        return Err(PatternError(format!("unknown key '{other}'")));
    }
    tables.iter().map(one).collect::<Result<_, String>>().map_err(PatternError)
}

fn one(table: &Table) -> Result<Pattern, String> {
    let name = table.get("name").and_then(Item::as_str).ok_or("a pattern has no name")?.to_owned();
    if name.chars().any(char::is_control) {
        return Err(format!("name {name:?}: a name has no control characters"));
    }
    let wrong = |what: String| format!("pattern '{name}': {what}");
    if let Some((other, _)) =
        table.iter().find(|(key, _)| !["name", "edges", "dims", "periodic", "neighbours"].contains(key))
    {
        return Err(wrong(format!("unknown key '{other}'")));
    }
    let kind = match (table.get("edges"), table.get("neighbours")) {
        (Some(edges), None) => given(edges),
        (None, Some(_)) => formula(table),
        _ => Err("it needs 'edges', or 'dims' and 'neighbours'".into()),
    };
    Ok(Pattern { kind: kind.map_err(wrong)?, name })
}

fn given(edges: &Item) -> Result<Kind, String> {
    const WRONG: &str = "edges are pairs of vertices: [[0, 1], [1, 2]]";
    let pair = |value: &toml_edit::Value| {
        let pair = value.as_array()?;
        let vertex =
            |at: usize| u32::try_from(pair.get(at)?.as_integer()?).ok().filter(|&vertex| vertex < 1 << 24);
        (pair.len() == 2).then_some((vertex(0)?, vertex(1)?))
    };
    let pairs = edges.as_array().ok_or(WRONG)?.iter().map(pair).collect::<Option<Vec<_>>>().ok_or(WRONG)?;
    let highest = pairs.iter().map(|&(u, v)| u.max(v)).max().ok_or("there are no edges")?;
    Ok(Kind::Edges(highest + 1, pairs))
}

fn formula(table: &Table) -> Result<Kind, String> {
    const SIZES: &str = "dims are one to six sizes from 1, or \"any\": [8, \"any\"]";
    let size = |value: &toml_edit::Value| match (value.as_integer(), value.as_str()) {
        (Some(size), _) => u32::try_from(size).ok().filter(|&size| size > 0).map(Some),
        (None, Some("any")) => Some(None),
        _ => None,
    };
    let sizes = table.get("dims").and_then(Item::as_array).ok_or(SIZES)?;
    let sizes: Vec<Option<u32>> = sizes.iter().map(size).collect::<Option<_>>().ok_or(SIZES)?;
    if sizes.is_empty() || sizes.len() > NAMES.len() {
        return Err(SIZES.into());
    }
    const PERIODIC: &str = "periodic is true, false, or one of these for each axis";
    let periodic = match table.get("periodic") {
        None => vec![false; sizes.len()],
        Some(item) => match (item.as_bool(), item.as_array()) {
            (Some(all), _) => vec![all; sizes.len()],
            (None, Some(each)) => {
                let each = each.iter().map(toml_edit::Value::as_bool).collect::<Option<Vec<bool>>>();
                each.filter(|each| each.len() == sizes.len()).ok_or(PERIODIC)?
            }
            _ => return Err(PERIODIC.into()),
        },
    };
    let texts =
        table.get("neighbours").and_then(Item::as_array).ok_or("neighbours are a list of formulas")?;
    let mut neighbours = Vec::new();
    for text in texts {
        let text = text.as_str().ok_or("a formula is a text: \"x + 1, y\"")?;
        if text.len() > LONGEST {
            return Err(format!("a formula has {} bytes: {LONGEST} at most", text.len()));
        }
        let node = build_operator_tree(text).map_err(|error| format!("formula \"{text}\": {error}"))?;
        // Evaluated once with all ones: it shows unknown names, and the number of coordinates.
        let found = evaluated(&node, &vec![1; sizes.len()], &vec![2; sizes.len()])
            .map_err(|error| format!("formula \"{text}\": {error}"))?;
        if found.len() != sizes.len() {
            return Err(format!("formula \"{text}\": {} coordinates of {} axes", found.len(), sizes.len()));
        }
        neighbours.push(node);
    }
    Ok(Kind::Formula { sizes, periodic, neighbours })
}

/// Functions whose own definition overflows for some numbers.
fn checked_functions() -> [(&'static str, Function); 3] {
    fn of_two(value: &Value, of: fn(i64, u32) -> Option<i64>) -> EvalexprResult<Value> {
        let numbers = value.as_fixed_len_tuple(2)?;
        let (number, by) = (numbers[0].as_int()?, numbers[1].as_int()?);
        let result = u32::try_from(by).ok().and_then(|by| of(number, by));
        result
            .map(Value::Int)
            .ok_or_else(|| EvalexprError::CustomMessage(format!("{by} is no number of bits")))
    }
    let absolute = |value: &Value| match value {
        Value::Float(number) => Ok(Value::Float(number.abs())),
        value => {
            let number = value.as_int()?;
            let too_large = || EvalexprError::CustomMessage(format!("{number} has no positive counterpart"));
            number.checked_abs().map(Value::Int).ok_or_else(too_large)
        }
    };
    [
        ("shl", Function::new(|value| of_two(value, i64::checked_shl))),
        ("shr", Function::new(|value| of_two(value, i64::checked_shr))),
        ("math::abs", Function::new(absolute)),
    ]
}

/// Coordinates that `node` gives at `place`.
fn evaluated(node: &Node, place: &[u32], sizes: &[u32]) -> Result<Vec<i64>, String> {
    let mut context = HashMapContext::new();
    for (name, function) in checked_functions() {
        context.set_function(name.into(), function).map_err(|error| error.to_string())?;
    }
    for ((name, &own), &size) in NAMES.iter().zip(place).zip(sizes) {
        for (name, value) in [((*name).to_owned(), own), (format!("n{name}"), size)] {
            context.set_value(name, Value::Int(value.into())).map_err(|error| error.to_string())?;
        }
    }
    let whole = |value: Value| match value {
        Value::Int(number) => Ok(number),
        other => Err(format!("{other} is no whole number")),
    };
    match node.eval_with_context(&context).map_err(|error| error.to_string())? {
        Value::Tuple(values) => values.into_iter().map(whole).collect(),
        value => Ok(vec![whole(value)?]),
    }
}

impl Pattern {
    /// Graphs of the pattern with so many vertices and edges.
    pub fn graphs(&self, vertices: u32, edges: u64) -> Vec<Arc<NamedGraph>> {
        let candidates: Vec<(Vec<Axis>, Vec<Vec<u32>>)> = match &self.kind {
            Kind::Edges(size, pairs) if *size == vertices => {
                let axes = vec![Axis { size: *size, periodic: false }];
                vec![(axes, symmetric(*size, pairs.iter().copied()))]
            }
            Kind::Edges(..) => Vec::new(),
            Kind::Formula { sizes, periodic, neighbours } => {
                let mut steps = MOST_STEPS;
                fitting(sizes, vertices)
                    .into_iter()
                    .map_while(|sizes| {
                        steps = steps.checked_sub(u64::from(vertices) * neighbours.len() as u64)?;
                        let pairs = pairs(&sizes, periodic, neighbours);
                        let axis = |(&size, &periodic): (&u32, &bool)| Axis { size, periodic };
                        let axes = sizes.iter().zip(periodic).map(axis).collect();
                        Some((axes, symmetric(vertices, pairs.into_iter())))
                    })
                    .collect()
            }
        };
        let ends = |rows: &[Vec<u32>]| rows.iter().map(|row| row.len() as u64).sum::<u64>();
        candidates
            .into_iter()
            .filter(|(_, rows)| ends(rows) == 2 * edges)
            .map(|(axes, neighbours)| Arc::new(NamedGraph { name: self.name.clone(), axes, neighbours }))
            .collect()
    }
}

/// Sizes whose product is `vertices`; `None` stands for any from 2.
fn fitting(sizes: &[Option<u32>], vertices: u32) -> Vec<Vec<u32>> {
    let Some((first, rest)) = sizes.split_first() else {
        return if vertices == 1 { vec![Vec::new()] } else { Vec::new() };
    };
    let firsts: Vec<u32> = match first {
        Some(size) => vec![*size],
        None => (2..=vertices).filter(|size| vertices.is_multiple_of(*size)).collect(),
    };
    let firsts = firsts.into_iter().filter(|&size| vertices.is_multiple_of(size));
    let with =
        |size: u32| fitting(rest, vertices / size).into_iter().map(move |rest| [&[size][..], &rest].concat());
    firsts.flat_map(with).collect()
}

/// Pairs of places and their neighbours by the formulas, as numbers, the last coordinate fastest.
fn pairs(sizes: &[u32], periodic: &[bool], neighbours: &[Node]) -> Vec<(u32, u32)> {
    let count: u32 = sizes.iter().product();
    let mut pairs = Vec::new();
    for from in 0..count {
        let mut place = vec![0; sizes.len()];
        let mut left = from;
        for (own, size) in place.iter_mut().zip(sizes).rev() {
            *own = left % size;
            left /= size;
        }
        for node in neighbours {
            let Ok(to) = evaluated(node, &place, sizes) else { continue };
            let mut axes = to.iter().zip(sizes.iter().zip(periodic));
            let number = axes.try_fold(0_u32, |number, (&own, (&size, &periodic))| {
                let own = if periodic { own.rem_euclid(size.into()) } else { own };
                let own = u32::try_from(own).ok().filter(|&own| own < size)?;
                Some(number * size + own)
            });
            pairs.extend(number.map(|to| (from, to)));
        }
    }
    pairs
}

/// Neighbours of every vertex, ascending, each once, both ways.
fn symmetric(vertices: u32, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); vertices as usize];
    for (u, v) in pairs.filter(|(u, v)| u != v) {
        rows[u as usize].push(v);
        rows[v as usize].push(u);
    }
    for row in &mut rows {
        row.sort_unstable();
        row.dedup();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_and_edges_become_graphs() {
        let text = r#"
            [[pattern]]
            name = "knights"
            dims = ["any", 4]
            neighbours = ["x + 1, y + 2", "x + 2, y + 1", "x + 1, y - 2", "x + 2, y - 1"]
            [[pattern]]
            name = "circulant"
            dims = [13]
            periodic = true
            neighbours = ["x + 1", "x + 5"]
            [[pattern]]
            name = "kite"
            edges = [[0, 1], [1, 2], [2, 0], [2, 3]]
        "#;
        let patterns = parse(text).unwrap();
        assert_eq!(patterns[0].graphs(12, 14).len(), 1);
        assert_eq!(patterns[0].graphs(12, 15).len(), 0);
        assert_eq!(patterns[1].graphs(13, 26)[0].neighbours[0], [1, 5, 8, 12]);
        assert_eq!(patterns[2].graphs(4, 4)[0].neighbours[2], [0, 1, 3]);
    }

    #[test]
    fn faults_are_named() {
        let pattern =
            |rest: &str| parse(&format!("[[pattern]]\nname = \"p\"\n{rest}")).unwrap_err().to_string();
        assert!(pattern("dims = [3]\nneighbours = [\"x + 1, y\"]").contains("\"x + 1, y\""));
        assert!(pattern("dims = [3, 3]\nneighbours = [\"x + 1\"]").contains("1 coordinates of 2"));
        assert!(pattern("dims = [0]\nneighbours = [\"x\"]").contains("dims"));
        assert!(pattern("dims = [3]\nneighbours = [\"x +\"]").contains("\"x +\""));
        assert!(pattern("edges = [[1]]").contains("pairs"));
        assert!(pattern("colour = 1\nedges = [[0, 1]]").contains("colour"));
        assert!(parse("name = 1").is_err() && parse("[[").is_err());
        assert!(parse("[[pattern]]\nname = \"a\\u001b[31m\"\nedges = [[0, 1]]").is_err());
    }

    #[test]
    fn hostile_formulas_are_faults() {
        let formula = |text: &str| {
            let text = format!("[[pattern]]\nname = \"p\"\ndims = [3]\nneighbours = [\"{text}\"]");
            parse(&text).map(|_| ()).map_err(|fault| fault.to_string())
        };
        assert_eq!(formula("shl(x, 2) + shr(8, x) + math::abs(0 - x)"), Ok(()));
        for (text, expected) in [
            ("shl(1, 1000)", "1000 is no number of bits"),
            ("shr(1, 0 - 1)", "-1 is no number of bits"),
            ("math::abs(0 - 9223372036854775807 - 1)", "positive"),
            ("(0 - 9223372036854775807 - 1) % (0 - 1)", "Error"),
            ("(0 - 9223372036854775807 - 1) / (0 - 1)", "Error"),
            ("0.0 / 0.0", "no whole number"),
            ("x(x)", "formula"),
        ] {
            let fault = formula(text).unwrap_err();
            assert!(fault.contains(expected), "{text}: {fault}");
        }
        // Nested more deeply than a stack is deep.
        for text in ["-".repeat(200_000) + "x", "x + ".repeat(100_000) + "x", "(".repeat(100_000)] {
            assert!(formula(&text).unwrap_err().contains("bytes"));
        }
        assert!(formula(&("-".repeat(990) + "x")).is_ok());
    }
}
