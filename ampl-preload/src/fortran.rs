//! Fortran's handles and special addresses, as C would have them: for the record only.

use ampl_core::mpi::Kind;

use crate::abi::{Abi, FortranSentinel, Sentinel};
use crate::symbol::next_definition;

/// How to read the arguments of Fortran calls.
#[derive(Debug)]
pub struct Fortran {
    /// Conversions from integers to handles; null where handles are integers already.
    to_c: Vec<(Kind, *const ())>,
    /// Fortran's own special buffer addresses, and C's for the same meaning.
    buffers: Vec<(usize, usize)>,
    /// Addresses that stand for no array in C.
    sentinels: [usize; 3],
}

impl Fortran {
    /// What the loaded library has; after `MPI_Init`, because some of it is set there.
    pub fn new(abi: &Abi) -> Self {
        const CONVERSIONS: [(Kind, &str); 3] = [
            (Kind::Comm, "PMPI_Comm_f2c\0"),
            (Kind::Datatype, "PMPI_Type_f2c\0"),
            (Kind::Op, "PMPI_Op_f2c\0"),
        ];
        let to_c = if abi.handle_bytes == 4 {
            Vec::new()
        } else {
            CONVERSIONS.iter().map(|&(kind, name)| (kind, next_definition(name))).collect()
        };
        let buffers = abi
            .fortran
            .iter()
            .filter_map(|&(meaning, sentinel)| {
                let in_c = match meaning {
                    FortranSentinel::InPlace => abi.in_place,
                    FortranSentinel::Bottom => abi.bottom,
                    _ => return None,
                };
                Some((Abi::address(sentinel), in_c))
            })
            .filter(|&(address, _)| address != 0)
            .collect();
        let weights = [abi.unweighted, abi.weights_empty].map(|sentinel: Sentinel| Abi::address(sentinel));
        Self { to_c, buffers, sentinels: [weights[0], weights[1], abi.in_place] }
    }

    /// The C handle of a Fortran integer.
    pub fn handle(&self, kind: Kind, integer: i32) -> usize {
        match self.to_c.iter().find(|(of, function)| *of == kind && !function.is_null()) {
            Some(&(_, function)) => {
                // SAFETY: the standard's conversion for that kind: an int in, a handle out.
                let convert: unsafe extern "C" fn(i32) -> usize = unsafe { std::mem::transmute(function) };
                // SAFETY: conversions accept any integer.
                unsafe { convert(integer) }
            }
            None => integer as u32 as usize,
        }
    }

    /// A Fortran buffer address as C would pass it.
    pub fn buffer(&self, address: usize) -> usize {
        self.buffers.iter().find(|(fortran, _)| *fortran == address).map_or(address, |&(_, c)| c)
    }

    /// Whether `address` stands for no array.
    pub fn is_sentinel(&self, address: usize) -> bool {
        address == 0 || self.sentinels.contains(&address)
    }
}
