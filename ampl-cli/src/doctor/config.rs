//! `ampl doctor --config`: every setting of a job started here, and the layer that it comes from.

use std::fmt::Write;

use ampl_core::config::keys::KEYS;
use ampl_launch::job::{Job, Layer, Site};
use serde::Serialize;

use super::Args;
use crate::job_args::JobArgs;
use crate::output;

#[derive(Debug, Serialize)]
struct Row {
    /// As `--set` takes it.
    key: String,
    /// As TOML; null where it is not set and has no default.
    value: Option<String>,
    layer: Layer,
    /// File, or the `--set`; null for what is built in.
    place: Option<String>,
    /// True where the site locks it.
    locked: bool,
}

/// Prints the settings.
///
/// # Errors
/// Errors of [`Job::load`].
pub fn print(args: &Args) -> anyhow::Result<()> {
    let (config, set, hooks) = (args.job_file.clone(), args.set.clone(), args.hooks.clone());
    let job = Job::load(&JobArgs { config, output: None, set, hooks }.request(), true, Site::Checked)?;
    let default = |path: &str| KEYS.iter().find(|key| key.path() == path).map(|key| key.default);
    let rows: Vec<Row> = (job.config.settings().into_iter())
        .map(|setting| {
            let (layer, place) = job.layer(&setting);
            let path = setting.path();
            let locked = job.site().is_some_and(|site| site.locks(&path));
            let value = match setting.value.as_str() {
                "" => default(&path).filter(|default| !default.is_empty()).map(str::to_owned),
                value => Some(value.to_owned()),
            };
            Row { key: setting.address(), value, layer, place, locked }
        })
        .collect();
    if args.json {
        return output::json(&rows);
    }
    let text = lines(&rows)?;
    output::print(|out| std::io::Write::write_all(out, text.as_bytes()))
}

fn lines(rows: &[Row]) -> Result<String, std::fmt::Error> {
    let value = |row: &Row| row.value.clone().unwrap_or_else(|| "not set".into());
    let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0).min(40);
    let keys = widest(&mut rows.iter().map(|row| row.key.chars().count()));
    let values = widest(&mut rows.iter().map(|row| value(row).chars().count()));
    let mut out = String::new();
    for row in rows {
        let place = row.place.as_deref().unwrap_or("built in");
        let locked = if row.locked { " (locked)" } else { "" };
        writeln!(out, "{:<keys$}  {:<values$}  {place}{locked}", row.key, value(row))?;
    }
    Ok(out)
}
