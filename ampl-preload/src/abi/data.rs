//! Differences between MPI implementations, as data: one [`Abi`] per implementation family.

use ampl_core::mpi::Kind;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::value::ObjectKind;

/// Binary interface of one family of MPI libraries.
#[derive(Debug)]
pub struct Abi {
    /// The family.
    pub family: AbiFamily,
    /// Bytes of a handle in memory; `MPI_File` has 8 everywhere.
    pub handle_bytes: usize,
    /// Bytes of an `MPI_Status`.
    pub status_bytes: usize,
    /// Offset of `MPI_SOURCE`, an `int`.
    pub status_source_offset: usize,
    /// Offset of `MPI_TAG`, an `int`.
    pub status_tag_offset: usize,
    /// Offset of `MPI_ERROR`, an `int`.
    pub status_error_offset: usize,
    /// `MPI_ANY_SOURCE`
    pub any_source: i32,
    /// `MPI_ANY_TAG`
    pub any_tag: i32,
    /// `MPI_PROC_NULL`
    pub proc_null: i32,
    /// `MPI_ROOT`
    pub root: i32,
    /// `MPI_UNDEFINED`
    pub undefined: i32,
    /// `MPI_CART`
    pub cart: i32,
    /// `MPI_GRAPH`
    pub graph: i32,
    /// `MPI_DIST_GRAPH`
    pub dist_graph: i32,
    /// `MPI_THREAD_SERIALIZED`; levels ascend.
    pub thread_serialized: i32,
    /// `MPI_ERR_TRUNCATE`
    pub error_truncate: i32,
    /// `MPI_ERR_IN_STATUS`
    pub error_in_status: i32,
    /// `MPI_ERR_PENDING`
    pub error_pending: i32,
    /// The bits of an error code that are its class.
    pub error_class_mask: i32,
    /// Keys of MPI's own attributes that C gets as the address of a number, and the number's kind.
    pub number_keys: &'static [(i32, Kind)],
    /// `MPI_IN_PLACE`, as an address.
    pub in_place: usize,
    /// `MPI_BOTTOM`
    pub bottom: usize,
    /// `MPI_STATUS_IGNORE`
    pub status_ignore: usize,
    /// `MPI_STATUSES_IGNORE`
    pub statuses_ignore: usize,
    /// `MPI_ERRCODES_IGNORE`
    pub errcodes_ignore: usize,
    /// `MPI_BUFFER_AUTOMATIC`, where known.
    pub buffer_automatic: Option<usize>,
    /// `MPI_UNWEIGHTED`
    pub unweighted: Sentinel,
    /// `MPI_WEIGHTS_EMPTY`
    pub weights_empty: Sentinel,
    /// The Fortran interface's own special addresses; several may have one meaning.
    /// Symbols are missing where no Fortran library is loaded.
    pub fortran: &'static [(FortranSentinel, Sentinel)],
    /// Every predefined handle, sorted by kind and name; of synonyms only one.
    pub predefined: &'static [(ObjectKind, &'static str, Predefined)],
}

/// Where the value of a predefined handle comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predefined {
    /// The handle itself. The upper half of a 4-byte handle's register is undefined: compare the lower.
    Word(u64),
    /// The address of that symbol; the handle does not exist where the library lacks the symbol.
    Symbol(&'static str),
}

/// Where a special address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sentinel {
    /// The address itself.
    Word(usize),
    /// The address of that symbol.
    AddressOf(&'static str),
    /// The value of the pointer variable of that name, once MPI is initialised.
    ValueOf(&'static str),
}

/// Meanings of the Fortran interface's special addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FortranSentinel {
    /// `MPI_IN_PLACE`
    InPlace,
    /// `MPI_BOTTOM`
    Bottom,
    /// `MPI_STATUS_IGNORE`
    StatusIgnore,
    /// `MPI_STATUSES_IGNORE`
    StatusesIgnore,
    /// `MPI_ERRCODES_IGNORE`
    ErrcodesIgnore,
    /// `MPI_UNWEIGHTED`
    Unweighted,
    /// `MPI_WEIGHTS_EMPTY`
    WeightsEmpty,
    /// `MPI_ARGV_NULL`
    ArgvNull,
    /// `MPI_ARGVS_NULL`
    ArgvsNull,
}

impl Abi {
    /// Where the value of the predefined handle `name` comes from.
    pub fn find(&self, kind: ObjectKind, name: &str) -> Option<Predefined> {
        self.predefined
            .binary_search_by(|(other, candidate, _)| (*other as u8, *candidate).cmp(&(kind as u8, name)))
            .ok()
            .map(|index| self.predefined[index].2)
    }
}

/// Asserts the invariants of every table.
#[cfg(test)]
pub(super) fn check(abi: &Abi) {
    use ampl_core::mpi::constants;
    use ampl_core::mpi::predefined_index;
    use std::collections::HashSet;

    let keys: Vec<(u8, &str)> = abi.predefined.iter().map(|(kind, name, _)| (*kind as u8, *name)).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "sorted, no name twice");
    let mut values = HashSet::new();
    for (kind, name, value) in abi.predefined {
        assert!(values.insert((*kind as u8, *value)), "{name} has another name's value");
        assert!(predefined_index(*kind, name).is_some(), "{name} is not in ampl-core's list");
        if let Predefined::Word(word) = value {
            let bytes = if *kind == ObjectKind::File { 8 } else { abi.handle_bytes };
            assert!(bytes == 8 || u32::try_from(*word).is_ok(), "{name} is wider than a handle");
        }
    }
    let wildcards = [abi.any_source, abi.proc_null, abi.root, abi.undefined];
    assert_eq!(wildcards.iter().collect::<HashSet<_>>().len(), wildcards.len());
    assert!(wildcards.iter().all(|value| *value < 0) && abi.any_tag < 0);
    for offset in [abi.status_source_offset, abi.status_tag_offset, abi.status_error_offset] {
        assert!(offset % 4 == 0 && offset + 4 <= abi.status_bytes);
    }
    for error in [abi.error_truncate, abi.error_in_status, abi.error_pending] {
        assert_eq!(abi.error_class(error), error);
    }
    for (name, value) in [
        ("MPI_ANY_SOURCE", abi.any_source),
        ("MPI_ANY_TAG", abi.any_tag),
        ("MPI_PROC_NULL", abi.proc_null),
        ("MPI_ROOT", abi.root),
        ("MPI_UNDEFINED", abi.undefined),
        ("MPI_CART", abi.cart),
        ("MPI_GRAPH", abi.graph),
        ("MPI_DIST_GRAPH", abi.dist_graph),
        ("MPI_THREAD_SERIALIZED", abi.thread_serialized),
        ("MPI_ERR_TRUNCATE", abi.error_truncate),
        ("MPI_ERR_IN_STATUS", abi.error_in_status),
        ("MPI_ERR_PENDING", abi.error_pending),
    ] {
        assert_eq!(constants::value(abi.family, name), Some(value), "{name}");
    }
    for &(key, _) in abi.number_keys {
        assert!(constants::Set::Keyval.name(abi.family, key.into()).is_some(), "{key:#x}");
    }
    assert_ne!(abi.in_place, abi.bottom);
    let places: HashSet<Sentinel> = abi.fortran.iter().map(|(_, place)| *place).collect();
    assert_eq!(places.len(), abi.fortran.len(), "one symbol, one meaning");
}

#[cfg(test)]
mod tests {
    use super::super::{mpich, openmpi, standard};
    use ampl_core::mpi::PREDEFINED;

    #[test]
    fn every_listed_name_belongs_to_an_implementation() {
        for (kind, name) in PREDEFINED {
            let known = [&openmpi::ABI, &mpich::ABI, &standard::ABI]
                .iter()
                .any(|abi| abi.find(*kind, name).is_some());
            assert!(known, "{name}");
        }
    }
}
