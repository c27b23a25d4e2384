//! MPI's integer constants: each implementation gives them values of its own.
//!
//! Arguments are recorded as the program passed them, but for wildcards, `MPI_PROC_NULL`, `MPI_ROOT` and `MPI_UNDEFINED`,
//! which have one value in every trace ([`crate::value`]). A reader names the others by the trace's [`AbiFamily`].

mod parameters;
mod table;

use serde::{Deserialize, Serialize};

use table::TABLE;

/// A family of MPI libraries that share one binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AbiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH and its relatives: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// The ABI of MPI-5.0, whichever library implements it.
    Standard,
}

impl AbiFamily {
    /// Every family, in the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::OpenMpi, Self::Mpich, Self::Standard];

    /// The family whose own `mpi.h` a library has that describes itself so. A trace names its own family: one library may
    /// implement its own interface and the standard's.
    pub fn of_library(description: &str) -> Option<Self> {
        const RELATIVES: [&str; 4] = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
        if description.starts_with("Open MPI") {
            Some(Self::OpenMpi)
        } else if RELATIVES.iter().any(|name| description.starts_with(name)) {
            Some(Self::Mpich)
        } else {
            None
        }
    }
}

/// Constants that one argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Set {
    /// `split_type` of `MPI_Comm_split_type`.
    SplitType,
    /// `result` of the functions that compare.
    Comparison,
    /// `status` of `MPI_Topo_test`.
    Topology,
    /// `assert` of one-sided synchronisation: bits.
    WindowAssert,
    /// `amode` of `MPI_File_open`: bits.
    FileMode,
    /// `whence` of `MPI_File_seek`.
    Seek,
    /// `lock_type` of `MPI_Win_lock`.
    LockType,
    /// `combiner` of `MPI_Type_get_envelope`.
    Combiner,
    /// `typeclass` of `MPI_Type_match_size`.
    TypeClass,
    /// `order` of subarrays.
    Order,
    /// `array_of_distribs` and `array_of_dargs` of `MPI_Type_create_darray`.
    Distribution,
    /// Levels of thread support, which ascend.
    ThreadLevel,
    /// Value of the attribute `MPI_WIN_CREATE_FLAVOR`.
    WindowFlavor,
    /// Value of the attribute `MPI_WIN_MODEL`.
    WindowModel,
    /// Keys of MPI's own attributes.
    Keyval,
    /// Classes of errors.
    ErrorClass,
    /// Numbers that stand for no number.
    Special,
}

impl Set {
    /// True where several constants of it may be joined by `or`.
    pub fn is_bits(self) -> bool {
        matches!(self, Self::WindowAssert | Self::FileMode)
    }

    /// Names of its constants under `family`, each with its value.
    pub fn of(self, family: AbiFamily) -> impl Iterator<Item = (&'static str, i32)> {
        let rows = TABLE.iter().filter(move |(set, ..)| *set == self);
        rows.filter_map(move |&(_, name, values)| Some((name, values[family as usize]?)))
    }

    /// The name of the constant of that value under `family`.
    pub fn name(self, family: AbiFamily, value: i64) -> Option<&'static str> {
        self.of(family).find(|&(_, of)| i64::from(of) == value).map(|(name, _)| name)
    }
}

/// The value of the constant of that name under `family`; `None` where the family has none.
pub fn value(family: AbiFamily, name: &str) -> Option<i32> {
    TABLE.iter().find(|&&(_, of, _)| of == name).and_then(|(.., values)| values[family as usize])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_value_has_one_name() {
        let mut names = HashSet::new();
        assert!(TABLE.iter().all(|(_, name, _)| names.insert(*name)), "one row a constant");
        for family in AbiFamily::ALL {
            let mut values = HashSet::new();
            let rows = TABLE.iter().filter(|(set, ..)| *set != Set::Special);
            for &(set, name, of) in rows {
                let Some(value) = of[family as usize] else { continue };
                assert!(values.insert((set, value)), "{name}");
                assert_eq!(set.name(family, value.into()), Some(name));
                assert!(!set.is_bits() || value.count_ones() == 1, "{name}");
            }
        }
    }

    #[test]
    fn libraries_are_known_by_what_they_call_themselves() {
        let of = AbiFamily::of_library;
        assert_eq!(of("Open MPI v4.1.4, package: Debian OpenMPI"), Some(AbiFamily::OpenMpi));
        assert_eq!(of("MPICH Version: 4.0.2"), Some(AbiFamily::Mpich));
        assert_eq!(of("Intel(R) MPI Library 2021.9 for Linux* OS"), Some(AbiFamily::Mpich));
        assert_eq!(of("another"), None);
        let shared = |family| value(family, "MPI_COMM_TYPE_SHARED");
        assert_eq!(AbiFamily::ALL.map(shared), [Some(0), Some(1), Some(221)]);
    }
}
