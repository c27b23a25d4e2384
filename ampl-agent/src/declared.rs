//! Regions, paths and metrics that the configuration names, and irregular uses of them.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::config::{Event, Marker, Quantity};
use ampl_core::plan::Plan;

/// Regions, paths and metrics of the program that the configuration names.
#[derive(Debug, Default)]
pub struct Declared {
    /// Regions that matter, by index.
    pub(crate) regions: Vec<String>,
    /// Paths to watch, as indices of regions.
    pub(crate) paths: Vec<Vec<u16>>,
    /// Per region: the paths that it is part of.
    pub(crate) paths_of: Vec<Vec<u16>>,
    /// The path whose end is the window's marker.
    pub(crate) marker: Option<u16>,
    /// Metrics of the program.
    pub(crate) users: Vec<String>,
}

impl Declared {
    /// Regions, paths and metrics that `plan` names.
    pub fn new(plan: &Plan) -> Self {
        let mut declared = Self::default();
        if let Marker::Region(name) = &plan.config.window.marker {
            declared.marker = Some(declared.path(std::slice::from_ref(name)));
        }
        for metric in &plan.metrics {
            if let Some(names) = path_names(&metric.event) {
                declared.path(names);
            }
            if let Quantity::User(name) = &metric.quantity
                && declared.user(name).is_none()
            {
                declared.users.push(name.clone());
            }
        }
        declared.paths_of = (0..declared.regions.len() as u16)
            .map(|region| {
                let holds = |path: &u16| declared.paths[usize::from(*path)].contains(&region);
                (0..declared.paths.len() as u16).filter(holds).collect()
            })
            .collect();
        declared
    }

    fn path(&mut self, names: &[String]) -> u16 {
        let mut path = Vec::new();
        for name in names {
            path.push(self.region(name).unwrap_or_else(|| {
                self.regions.push(name.clone());
                self.regions.len() as u16 - 1
            }));
        }
        let known = self.paths.iter().position(|known| *known == path);
        known.unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        }) as u16
    }

    /// Index of the region of that name, if it matters.
    pub fn region(&self, name: &str) -> Option<u16> {
        self.regions.iter().position(|known| known == name).map(|index| index as u16)
    }

    /// Index of the program's metric of that name, if it is measured.
    pub fn user(&self, name: &str) -> Option<u16> {
        self.users.iter().position(|known| known == name).map(|index| index as u16)
    }

    /// Number of the program's metrics.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// The path that `event` observes.
    pub fn path_of(&self, event: &Event) -> Option<u16> {
        let names = path_names(event)?;
        let path: Vec<u16> = names.iter().map(|name| self.region(name)).collect::<Option<_>>()?;
        self.paths.iter().position(|known| *known == path).map(|index| index as u16)
    }

    /// The path whose end is the window's marker.
    pub fn marker(&self) -> Option<u16> {
        self.marker
    }
}

fn path_names(event: &Event) -> Option<&[String]> {
    match event {
        Event::Region(name) => Some(std::slice::from_ref(name)),
        Event::Path(names) => Some(names),
        _ => None,
    }
}

/// Irregular uses of regions by the program, for its author.
#[derive(Debug, Default)]
pub struct Irregularities {
    /// Exits without entries, entries without exits.
    pub unbalanced: AtomicU64,
    /// Ends of the marker's region on threads that make no MPI calls, which end no window.
    pub elsewhere: AtomicU64,
}

impl Irregularities {
    /// Counts one more of `what`.
    pub fn count(what: &AtomicU64) {
        what.fetch_add(1, Ordering::Relaxed);
    }
}
