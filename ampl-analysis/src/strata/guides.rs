//! Guides that ranks are told apart by.

use ampl_core::config::{Config, Metric};

/// Metrics that were measured: name and event.
pub type Known = [(String, String)];

/// Reason why ranks cannot be told apart by the guides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingGuide {
    /// No guide was measured, but these metrics, `NAME` or `NAME@EVENT`.
    None(Vec<String>),
    /// The metric that is named was not measured, but these.
    Unknown(String, Vec<String>),
}

/// The configuration for metrics without one: the defaults, or with the only metric as its guide.
pub fn usual(known: &Known) -> Config {
    let mut config = Config::default();
    let usual = config.metrics.iter().any(|metric| is_known(known, metric));
    if let ([only], false) = (known, usual)
        && let Some(metric) = declared(&only.0, &only.1)
    {
        config.metrics = vec![metric];
    }
    config
}

/// `config` with the guides that ranks are clustered by: those in `named`, or its own as far as they were measured.
///
/// # Errors
/// A guide that was not measured.
pub fn guided(mut config: Config, named: &[String], known: &Known) -> Result<Config, MissingGuide> {
    let list = || {
        let name = |(name, event): &(String, String)| match event.as_str() {
            "*" => name.clone(),
            _ => format!("{name}@{event}"),
        };
        known.iter().map(name).collect::<Vec<_>>()
    };
    if named.is_empty() {
        // Without guides that the machine could not measure, or that the file does not have.
        config.metrics.retain(|metric| metric.guide && is_known(known, metric));
        return if config.metrics.is_empty() { Err(MissingGuide::None(list())) } else { Ok(config) };
    }
    config.metrics.clear();
    for name in named {
        let (metric, event) = name.split_once('@').unwrap_or((name, "*"));
        let found = declared(metric, event).filter(|metric| is_known(known, metric));
        config.metrics.push(found.ok_or_else(|| MissingGuide::Unknown(name.clone(), list()))?);
    }
    Ok(config)
}

fn is_known(known: &Known, metric: &Metric) -> bool {
    known.iter().any(|(name, event)| *name == metric.name() && *event == metric.event.name())
}

/// A guide of that name, if the job file could name it.
fn declared(name: &str, event: &str) -> Option<Metric> {
    let quoted = |text: &str| format!("{text:?}");
    // As a job file, so that names mean what they mean there. A period makes windows as long as each other.
    let text = format!(
        "[window]\nmarker = \"pcontrol\"\n[[metric]]\nname = {}\nevent = {}\nrole = \"guide\"\n",
        quoted(name),
        quoted(event)
    );
    Config::parse(&text).ok()?.0.metrics.pop()
}
