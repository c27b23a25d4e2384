//! `[[site]]`: which calls are stored, and which only added up or counted.

use ampl_core::config::site::CodeRange;
use ampl_core::config::{SiteMatch, SiteTrace};
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;

use crate::window::holds;

/// The policies of a job, as a new call site needs them.
#[derive(Debug, Default)]
pub struct Policies {
    functions: Vec<(Function, SiteTrace)>,
    sites: Vec<(Vec<CodeRange>, SiteTrace)>,
}

impl Policies {
    /// The policies of `plan`. Source lines without their code hold no call: `ampl exec` resolves them before.
    pub fn new(plan: &Plan) -> Self {
        let mut all = Self::default();
        for policy in &plan.config.sites {
            match &policy.matches {
                SiteMatch::Function(name) => {
                    all.functions.extend(Function::by_name(name).map(|function| (function, policy.trace)));
                }
                SiteMatch::Site(site) => all.sites.push((site.code().to_vec(), policy.trace)),
            }
        }
        all
    }

    /// True where all calls are treated alike.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.sites.is_empty()
    }

    /// Policy for calls of `function` that return to `offset` of the module at `path`: the first for the site, or else
    /// the first for the function.
    pub fn of(&self, function: Function, path: &str, offset: u64) -> SiteTrace {
        let site = self.sites.iter().find(|(ranges, _)| holds(ranges, path, offset)).map(|&(_, trace)| trace);
        let by_name = || self.functions.iter().find(|(name, _)| *name == function).map(|&(_, trace)| trace);
        site.or_else(by_name).unwrap_or(SiteTrace::On)
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::config::Config;
    use ampl_core::mpi::ids;

    use super::*;

    #[test]
    fn a_site_goes_before_its_function() {
        let text = "[[site]]\nmatch = \"MPI_Send\"\ntrace = \"off\"\n\
                    [[site]]\nmatch = \"app+0x40\"\ntrace = \"aggregate\"\n";
        let (config, _) = Config::parse(text).unwrap();
        let policies = Policies::new(&Plan::new(config, 2).unwrap());
        let of = |function, offset| policies.of(function, "/some/app", offset);
        assert_eq!(of(ids::MPI_SEND, 0x40), SiteTrace::Aggregate);
        assert_eq!(of(ids::MPI_SEND, 0x50), SiteTrace::Off);
        assert_eq!(of(ids::MPI_RECV, 0x50), SiteTrace::On);
        assert!(!policies.is_empty() && Policies::default().is_empty());
    }
}
