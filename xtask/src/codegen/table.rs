//! The table of MPI functions, read and checked.

use anyhow::{Context, bail, ensure};
use std::collections::HashSet;
use toml_edit::{DocumentMut, Table as Toml};

/// All functions, sorted by name.
pub struct Table {
    pub functions: Vec<Function>,
}

/// One function of the C binding and its Fortran forms.
pub struct Function {
    pub name: String,
    pub params: Vec<Param>,
    /// Variant names of ampl-core's `Returns`, `Traffic` and `Class`.
    pub returns: String,
    pub traffic: String,
    pub class: String,
    pub fortran: Fortran,
}

/// One parameter; `kind` and `direction` are variant names of ampl-core's enums.
#[derive(PartialEq, Eq, Hash)]
pub struct Param {
    pub name: String,
    pub kind: String,
    pub direction: String,
    /// A `Length` expression without the enum's name, `Param(2)`.
    pub length: String,
}

/// Fortran symbols that exist, and the number of words that they take.
pub struct Fortran {
    /// `mpif.h` and the `mpi` module.
    pub f90: bool,
    /// The `mpi_f08` module.
    pub f08: bool,
    /// Its variant with buffers passed by descriptor.
    pub f08ts: bool,
    /// A second interface for `TYPE(C_PTR)` arguments.
    pub cptr: bool,
    /// Arguments, `ierror` and the hidden lengths of character arguments.
    pub words: usize,
}

impl Table {
    /// The table in `text`.
    ///
    /// # Errors
    /// If it is not TOML, or a function is malformed or appears twice.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let document: DocumentMut = text.parse()?;
        let entries =
            document.get("function").and_then(|item| item.as_array_of_tables()).context("no [[function]]")?;
        let mut functions = Vec::new();
        for entry in entries {
            let name = string(entry, "name")?.context("a function without a name")?;
            functions.push(Function::parse(&name, entry).with_context(|| name.clone())?);
        }
        // Byte order: `Function::by_name` searches by it.
        functions.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in functions.windows(2) {
            ensure!(pair[0].name != pair[1].name, "{} appears twice", pair[0].name);
        }
        Ok(Self { functions })
    }
}

impl Function {
    fn parse(name: &str, entry: &Toml) -> anyhow::Result<Self> {
        const KEYS: [&str; 10] = [
            "name",
            "params",
            "class",
            "returns",
            "traffic",
            "fortran",
            "fortran_omits",
            "fortran_characters",
            "fortran_ierror",
            "fortran_cptr",
        ];
        if let Some((key, _)) = entry.iter().find(|(key, _)| !KEYS.contains(key)) {
            bail!("unknown key {key}");
        }
        let fields = strings(entry, "params")?;
        let names: Vec<&str> = fields.iter().map(|field| field.split(':').next().unwrap_or("")).collect();
        ensure!(names.iter().collect::<HashSet<_>>().len() == names.len(), "a parameter appears twice");
        let params = fields
            .iter()
            .map(|field| Param::parse(field, &names).with_context(|| field.clone()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let variant = |key: &str, default: &str| -> anyhow::Result<String> {
            Ok(camel(&string(entry, key)?.unwrap_or_else(|| default.to_owned())))
        };
        Ok(Self {
            name: name.to_owned(),
            fortran: Fortran::parse(entry, &names)?,
            params,
            returns: variant("returns", "error-code")?,
            traffic: variant("traffic", "none")?,
            class: camel(&string(entry, "class")?.context("no class")?),
        })
    }
}

impl Param {
    /// `name:kind:direction` and optionally `:length`.
    fn parse(field: &str, names: &[&str]) -> anyhow::Result<Self> {
        let parts: Vec<&str> = field.split(':').collect();
        let (name, kind, direction, length) = match parts[..] {
            [name, kind, direction] => (name, kind, direction, "one"),
            [name, kind, direction, length] => (name, kind, direction, length),
            _ => bail!("expected name:kind:direction[:length]"),
        };
        Ok(Self {
            name: name.to_owned(),
            kind: camel(kind),
            direction: match direction {
                "inout" => "InOut".to_owned(),
                other => camel(other),
            },
            length: length_expression(length, names)?,
        })
    }
}

impl Fortran {
    fn parse(entry: &Toml, names: &[&str]) -> anyhow::Result<Self> {
        let forms = string(entry, "fortran")?.unwrap_or_default();
        let forms: Vec<&str> = forms.split_whitespace().collect();
        if let Some(form) = forms.iter().find(|form| !["f90", "f08", "f08ts"].contains(form)) {
            bail!("unknown Fortran form {form}");
        }
        let omitted = strings(entry, "fortran_omits")?;
        for name in &omitted {
            ensure!(names.contains(&name.as_str()), "omits {name}, which is no parameter");
        }
        let flag = |key: &str, default: bool| -> anyhow::Result<bool> {
            match entry.get(key) {
                None => Ok(default),
                Some(item) => item.as_bool().with_context(|| format!("{key} is no boolean")),
            }
        };
        let characters = match entry.get("fortran_characters") {
            None => 0,
            Some(item) => item.as_integer().context("fortran_characters is no integer")? as usize,
        };
        let ierror = usize::from(flag("fortran_ierror", true)?);
        Ok(Self {
            f90: forms.contains(&"f90"),
            f08: forms.contains(&"f08"),
            f08ts: forms.contains(&"f08ts"),
            cptr: flag("fortran_cptr", false)?,
            words: names.len() - omitted.len() + ierror + characters,
        })
    }
}

/// The `Length` variant that `text` stands for, parameter names replaced by their indices.
fn length_expression(text: &str, names: &[&str]) -> anyhow::Result<String> {
    let index = |name: &str| {
        names.iter().position(|candidate| *candidate == name).with_context(|| format!("no parameter {name}"))
    };
    let Some((function, arguments)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return Ok(match text {
            "one" => "One".to_owned(),
            "unknown" => "Unknown".to_owned(),
            name => format!("Param({})", index(name)?),
        });
    };
    let arguments: Vec<&str> = arguments.split(',').collect();
    Ok(match (function, &arguments[..]) {
        ("commsize", [comm]) => format!("CommSize({})", index(comm)?),
        ("commsize_at_root", [comm, root]) => {
            format!("CommSizeAtRoot({}, {})", index(comm)?, index(root)?)
        }
        ("indegree", [comm]) => format!("InDegree({})", index(comm)?),
        ("outdegree", [comm]) => format!("OutDegree({})", index(comm)?),
        ("cartdims", [comm]) => format!("CartDims({})", index(comm)?),
        ("sum", [counts]) => format!("Sum({})", index(counts)?),
        ("last", [ends]) => format!("Last({})", index(ends)?),
        ("outcount", [count]) => format!("OutCount({})", index(count)?),
        ("ifflag", [count, flag]) => format!("IfFlag({}, {})", index(count)?, index(flag)?),
        ("times", [count, factor]) => {
            format!("Times({}, {})", index(count)?, factor.parse::<u8>()?)
        }
        _ => bail!("unknown length {text}"),
    })
}

fn camel(text: &str) -> String {
    text.split('-')
        .map(|word| {
            let mut chars = word.chars();
            chars
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
                .unwrap_or_default()
        })
        .collect()
}

fn string(entry: &Toml, key: &str) -> anyhow::Result<Option<String>> {
    entry
        .get(key)
        .map(|item| item.as_str().map(str::to_owned).with_context(|| format!("{key} is no string")))
        .transpose()
}

fn strings(entry: &Toml, key: &str) -> anyhow::Result<Vec<String>> {
    let Some(item) = entry.get(key) else {
        return Ok(Vec::new());
    };
    let array = item.as_array().with_context(|| format!("{key} is no array"))?;
    array
        .iter()
        .map(|value| value.as_str().map(str::to_owned).with_context(|| format!("{key} holds no strings")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(body: &str) -> anyhow::Result<Function> {
        let text = format!("[[function]]\nname = \"MPI_X\"\nclass = \"ordinary\"\n{body}\n");
        Ok(Table::parse(&text)?.functions.remove(0))
    }

    #[test]
    fn lengths_name_parameters_by_index() {
        let function = parse_one(
            r#"params = ["n:int:in", "flag:logical:out", "a:rank:in:times(n,3)", "b:status:out:ifflag(n,flag)", "c:request:inout:n"]"#,
        )
        .unwrap();
        let lengths: Vec<&str> = function.params.iter().map(|param| param.length.as_str()).collect();
        assert_eq!(lengths, ["One", "One", "Times(0, 3)", "IfFlag(0, 1)", "Param(0)"]);
        assert_eq!(function.params[4].direction, "InOut");
    }

    #[test]
    fn fortran_words_leave_out_and_add() {
        let function = parse_one(
            "params = [\"argc:address:in\", \"name:string:in\"]\nfortran = \"f90\"\nfortran_omits = [\"argc\"]\nfortran_characters = 1",
        )
        .unwrap();
        // name, ierror, the length of name
        assert_eq!(function.fortran.words, 3);
        assert!(function.fortran.f90 && !function.fortran.f08);
    }

    #[test]
    fn contradictions_are_refused() {
        for body in [
            r#"params = ["a:int:in", "a:int:in"]"#,
            r#"params = ["a:int:in:n"]"#,
            r#"params = ["a:int"]"#,
            r#"parms = []"#,
            r#"fortran = "f77""#,
        ] {
            assert!(parse_one(body).is_err(), "{body}");
        }
    }
}
