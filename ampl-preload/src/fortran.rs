//! Fortran's handles and special addresses, as C would have them: for the record only.

use ampl_core::mpi::Kind;

use crate::abi::{Abi, FortranSentinel};
use crate::symbol::next_definition;

/// A conversion of the standard, `MPI_Comm_f2c`: an INTEGER in, a handle out.
type FromInteger = unsafe extern "C" fn(i32) -> usize;

/// How to read the arguments of Fortran calls.
#[derive(Debug)]
pub struct Fortran {
    /// Conversions of handles by kind; none where the integer is the handle.
    to_c: [Option<FromInteger>; Kind::COUNT],
    /// Fortran's own special buffer addresses, and C's for the same meaning.
    buffers: Vec<(usize, usize)>,
    /// Addresses that stand for no array, status or weights.
    absent: Vec<(FortranSentinel, usize)>,
    /// C's addresses that stand for no array: some are known only once MPI is initialised.
    absent_in_c: [usize; 3],
    /// True where `mpi_f08` numbers completed requests from 0, an error of MPICH 4.0 (its issue 6270).
    pub f08_indices_from_zero: bool,
}

impl Fortran {
    /// Conversions and addresses of the loaded library, which calls itself `version`; after `MPI_Init`, because some of
    /// it is set there.
    pub fn new(abi: &Abi, version: &str) -> Self {
        const CONVERSIONS: [(Kind, &str); 11] = [
            (Kind::Comm, "PMPI_Comm_f2c\0"),
            (Kind::Datatype, "PMPI_Type_f2c\0"),
            (Kind::Op, "PMPI_Op_f2c\0"),
            (Kind::Group, "PMPI_Group_f2c\0"),
            (Kind::Info, "PMPI_Info_f2c\0"),
            (Kind::Errhandler, "PMPI_Errhandler_f2c\0"),
            (Kind::File, "PMPI_File_f2c\0"),
            (Kind::Win, "PMPI_Win_f2c\0"),
            (Kind::Message, "PMPI_Message_f2c\0"),
            (Kind::Session, "PMPI_Session_f2c\0"),
            (Kind::Request, "PMPI_Request_f2c\0"),
        ];
        let mut to_c = [None; Kind::COUNT];
        for (kind, name) in CONVERSIONS.into_iter().filter(|&(kind, _)| abi.handle_width(kind) == 8) {
            let function = next_definition(name);
            // SAFETY: null is `None`; anything else is the standard's function of that name.
            to_c[kind as usize] = unsafe { std::mem::transmute::<*const (), Option<FromInteger>>(function) };
        }
        let places: Vec<(FortranSentinel, usize)> = abi
            .fortran
            .iter()
            .map(|&(meaning, sentinel)| (meaning, Abi::address(sentinel)))
            .filter(|&(_, address)| address != 0)
            .collect();
        let in_c = |meaning| match meaning {
            FortranSentinel::InPlace => Some(abi.in_place),
            FortranSentinel::Bottom => Some(abi.bottom),
            _ => None,
        };
        let buffers =
            places.iter().filter_map(|&(meaning, address)| Some((address, in_c(meaning)?))).collect();
        let absent_in_c = [Abi::address(abi.unweighted), Abi::address(abi.weights_empty), abi.in_place];
        let f08_indices_from_zero = version.starts_with("MPICH Version: 4.0");
        Self { to_c, buffers, absent: places, absent_in_c, f08_indices_from_zero }
    }

    /// The C handle of a Fortran integer.
    pub fn handle(&self, kind: Kind, integer: i32) -> u64 {
        match self.to_c[kind as usize] {
            // SAFETY: conversions accept any integer.
            Some(convert) => unsafe { convert(integer) as u64 },
            None => u64::from(integer as u32),
        }
    }

    /// A Fortran buffer address as C would pass it.
    pub fn buffer(&self, address: usize) -> usize {
        self.buffers.iter().find(|(fortran, _)| *fortran == address).map_or(address, |&(_, c)| c)
    }

    /// True where `address` stands for an ignored status.
    pub fn is_status_ignore(&self, address: usize) -> bool {
        use FortranSentinel::{StatusIgnore, StatusesIgnore};
        self.absent.contains(&(StatusIgnore, address)) || self.absent.contains(&(StatusesIgnore, address))
    }

    /// True where `address` is one of Fortran's constants that stand for no array.
    pub fn is_no_array(&self, address: usize) -> bool {
        self.absent.iter().any(|&(_, place)| place == address)
    }

    /// True where `address` is one of C's constants that stand for no array.
    pub fn is_no_array_in_c(&self, address: usize) -> bool {
        self.absent_in_c.contains(&address)
    }
}
