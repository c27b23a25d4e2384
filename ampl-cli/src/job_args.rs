//! The job on the command line: its configuration and its run directory.

use std::ffi::OsString;
use std::path::PathBuf;

use ampl_launch::job::Request;

/// Options that `run` and `exec` share.
#[derive(clap::Args, Debug)]
pub struct JobArgs {
    /// Job file, or the name of a recipe of the installation; without it AMPL_CONFIG, and without that the defaults
    #[arg(short = 'c', long = "config", value_name = "JOB.toml")]
    pub config: Option<OsString>,
    /// Run directory; must not exist yet
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Set one key of the job file, as in --set sampling.seed=7 or --set group.NAME.error=0.05
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Record regions of these sources, as in --hooks functions: the same as --set hooks.functions=true
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub hooks: Vec<String>,
}

impl JobArgs {
    /// Every setting of the command line, `KEY=VALUE`.
    pub fn settings(&self) -> Vec<String> {
        let hooks = self.hooks.iter().map(|name| format!("hooks.{name}=true"));
        hooks.chain(self.set.iter().cloned()).collect()
    }

    /// The configuration that these ask for.
    pub fn request(&self) -> Request {
        Request { config: self.config.clone(), output: self.output.clone(), settings: self.settings() }
    }
}
