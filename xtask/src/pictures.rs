//! `cargo xtask pictures`: the guide's pictures, anew.

use anyhow::{Result, bail};

use crate::shell::{cargo, root, run as run_command};
use crate::{demo, setup};

/// Runs the demonstration and writes pictures of its report to `docs/guide/pictures`.
///
/// # Errors
/// When the demonstration fails, or there is no browser.
pub fn run() -> Result<()> {
    let missing = setup::run()?;
    if missing.iter().any(|name| name == "a headless browser") {
        bail!("pictures need a headless browser; install it as said above and try again");
    }
    let page = demo::record()?.page;
    let pictures = root().join("docs/guide/pictures");
    std::fs::create_dir_all(&pictures)?;
    let words = ["run", "--quiet", "-p", "ampl-tests", "--example", "pictures", "--"];
    run_command(cargo().args(words).arg(page).arg(pictures))
}
