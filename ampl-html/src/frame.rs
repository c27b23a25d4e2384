//! The frame of every page: its policy, style, data and script.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, context};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

const FRAME: &str = include_str!("../page/frame.html");
const STYLE: [&str; 2] = [include_str!("../vendor/uplot/uPlot.min.css"), include_str!("../page/style.css")];

/// The page of `template`, which extends `frame.html`: `values` are shown, the parts of `script` draw `data`.
///
/// # Errors
/// A fault in the template.
pub fn rendered(
    template: &str,
    script: &[&str],
    data: &impl Serialize,
    values: Value,
) -> Result<String, Error> {
    let (script, style) = (script.join("\n"), STYLE.join("\n"));
    let policy = policy(&script, &style);
    let values = context! {
        data => Value::from_safe_string(embedded(data)),
        script => Value::from_safe_string(script),
        style => Value::from_safe_string(style),
        policy,
        ..values
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("frame.html", FRAME)?;
    environment.add_template("page.html", template)?;
    environment.get_template("page.html")?.render(values)
}

/// JSON that no text in it can end: in a page, `<` begins a tag.
fn embedded(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("numbers and names are JSON");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The page's policy: nothing is loaded, and only this script and this style apply.
fn policy(script: &str, style: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}
