//! Readings of a run under way.

use std::path::{Path, PathBuf};

use ampl_analysis::live::Live;
use ampl_core::units::Rank;
use ampl_reader::directory::{self, nodes};
use ampl_reader::{OpenError, Symbols};
use ampl_report::live::View;
use ampl_report::summary::library;

/// A run that is read again and again.
pub struct Reader {
    run: PathBuf,
    symbols: Symbols,
}

/// One reading.
#[derive(Debug)]
pub struct Reading {
    /// The run.
    pub live: Live,
    facts: Vec<(&'static str, String)>,
    elsewhere: Vec<(String, String)>,
    damage: Vec<String>,
}

impl Reader {
    /// A reader of `run`.
    pub fn new(run: &Path) -> Self {
        Self { run: run.to_owned(), symbols: Symbols::default() }
    }

    /// The run as it is now.
    ///
    /// # Errors
    /// Errors of opening it.
    pub fn read(&mut self) -> Result<Reading, OpenError> {
        let trace = directory::read(&self.run)?;
        let live = Live::of(&trace, &mut self.symbols);
        let is_here = |rank: u32| !live.absent.contains(Rank(rank));
        let others = nodes::elsewhere(&self.run, &directory::host(), is_here);
        let library = library(&trace.run.mpi_library);
        Ok(Reading {
            facts: vec![("program", trace.run.command.join(" ")), ("MPI library", library)]
                .into_iter()
                .filter(|(_, text)| !text.is_empty() && text != "not known")
                .collect(),
            elsewhere: others.into_iter().map(|(host, ranks)| (host, ranks.to_string())).collect(),
            damage: trace.damage.iter().map(|damage| damage.what.clone()).collect(),
            live,
        })
    }
}

impl Reading {
    /// The reading as it is drawn, with a remark.
    pub fn view<'a>(&'a self, run: &'a Path, note: Option<&'a str>) -> View<'a> {
        let Self { live, facts, elsewhere, damage } = self;
        View { live, facts, run, elsewhere, damage, note }
    }
}
