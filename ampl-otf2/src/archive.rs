//! Numbers of definitions: texts, regions, communicators.

use std::collections::HashMap;
use std::io;

use ampl_analysis::messages::Comm;
use ampl_core::mpi::Function;
use ampl_trace::communicators::Communicators;

use crate::library::{Definition, Definitions, MPI, UNDEFINED};
use crate::operations::role;

/// `OTF2_GROUP_TYPE_COMM_LOCATIONS`, of the threads that are the ranks of the world.
const WORLD_LOCATIONS: u8 = 4;
/// `OTF2_GROUP_TYPE_COMM_GROUP`, of places in that group.
const MEMBERS: u8 = 5;

/// Definitions that events refer to, with the numbers they have.
#[derive(Debug, Default)]
pub struct Names {
    texts: HashMap<String, u32>,
    regions: HashMap<String, u32>,
    region_list: Vec<(u32, u8)>,
    comms: HashMap<(Comm, u32), u32>,
    /// Name and members of each.
    comm_list: Vec<(u32, Vec<u64>)>,
    /// Places of members in each.
    places: Vec<HashMap<u64, u32>>,
}

impl Names {
    /// Number of a text.
    pub fn text(&mut self, text: &str) -> u32 {
        let next = self.texts.len() as u32;
        match self.texts.get(text) {
            Some(&number) => number,
            None => *self.texts.entry(text.to_owned()).or_insert(next),
        }
    }

    /// Number of the region of an MPI function.
    pub fn function(&mut self, function: Function) -> u32 {
        let name = function.name();
        if let Some(&region) = self.regions.get(name) {
            return region;
        }
        let region = self.region_list.len() as u32;
        let name_number = self.text(name);
        self.region_list.push((name_number, role(function)));
        self.regions.insert(name.to_owned(), region);
        region
    }

    /// Number of a communicator; `None` where its members are not known, and of one that joins two groups.
    pub fn comm(&mut self, comm: Comm, own: u32, ranks: u32, all: &Communicators) -> Option<u32> {
        let key = (comm, if comm == Comm::Itself { own } else { 0 });
        if let Some(&number) = self.comms.get(&key) {
            return Some(number);
        }
        let (name, members) = match comm {
            Comm::World => ("MPI_COMM_WORLD".to_owned(), (0..u64::from(ranks)).collect()),
            Comm::Itself => (format!("MPI_COMM_SELF {own}"), vec![u64::from(own)]),
            Comm::Made(made) => {
                let found = all.iter().find(|each| each.name == made).filter(|each| each.remote.is_none())?;
                (made.to_string(), found.ranks.as_ref().map(|ranks| ranks.iter().map(u64::from).collect())?)
            }
        };
        let number = self.comm_list.len() as u32;
        let name = self.text(&name);
        self.places.push(members.iter().copied().zip(0..).collect());
        self.comm_list.push((name, members));
        self.comms.insert(key, number);
        Some(number)
    }

    /// Place of a rank of the world in a communicator.
    pub fn place(&self, comm: u32, world: u32) -> Option<u32> {
        self.places.get(comm as usize)?.get(&u64::from(world)).copied()
    }

    /// Writes the texts; all other definitions refer to them. Later texts get no number that is written.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn write_texts(&self, to: &mut Definitions<'_>) -> io::Result<()> {
        let mut texts: Vec<(&String, u32)> =
            self.texts.iter().map(|(text, &number)| (text, number)).collect();
        texts.sort_unstable_by_key(|&(_, number)| number);
        texts.into_iter().try_for_each(|(text, number)| to.write(number, &Definition::Text(text)))
    }

    /// Writes regions, and communicators over `locations`, the first threads of the ranks of the world, behind the
    /// definitions of these. `mpi` and `ranks` are numbers of texts.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn write(&self, to: &mut Definitions<'_>, locations: &[u64], mpi: u32, ranks: u32) -> io::Result<()> {
        to.write(0, &Definition::Mpi(mpi))?;
        for (number, &(name, role)) in (0..).zip(&self.region_list) {
            to.write(number, &Definition::Region(name, role, MPI))?;
        }
        to.write(0, &Definition::Group(ranks, WORLD_LOCATIONS, locations))?;
        for (number, (name, members)) in (0..).zip(&self.comm_list) {
            to.write(number + 1, &Definition::Group(*name, MEMBERS, members))?;
            to.write(number, &Definition::Comm(*name, number + 1, UNDEFINED))?;
        }
        Ok(())
    }
}
