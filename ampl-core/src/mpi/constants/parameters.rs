//! Sets of constants by parameter, and numbers by name.

use super::{AbiFamily, Set};
use crate::mpi::Function;

impl Set {
    /// Constants that the parameter of that name of `function` may be, besides those that every trace has one value for.
    ///
    /// An error code that the program makes up, as for `MPI_Abort`, is no constant.
    pub fn of_parameter(function: Function, param: &str) -> Option<Self> {
        let name = function.name();
        let found = match param {
            "split_type" => Self::SplitType,
            "result" if name.ends_with("_compare") => Self::Comparison,
            "status" if name == "MPI_Topo_test" => Self::Topology,
            "assert" => Self::WindowAssert,
            "amode" => Self::FileMode,
            "whence" => Self::Seek,
            "lock_type" => Self::LockType,
            "combiner" => Self::Combiner,
            "typeclass" => Self::TypeClass,
            "order" => Self::Order,
            "array_of_distribs" | "array_of_dargs" => Self::Distribution,
            "required" | "provided" => Self::ThreadLevel,
            "keyval" | "comm_keyval" | "type_keyval" | "win_keyval" => Self::Keyval,
            "errorclass" | "err" => Self::ErrorClass,
            "errorcode" if name != "MPI_Abort" => Self::ErrorClass,
            "disp" if name.starts_with("MPI_File_") => Self::Special,
            _ => return None,
        };
        Some(found)
    }

    /// Constants that the attribute of the key of that name may be.
    pub fn of_attribute(keyval: &str) -> Option<Self> {
        match keyval {
            "MPI_WIN_CREATE_FLAVOR" => Some(Self::WindowFlavor),
            "MPI_WIN_MODEL" => Some(Self::WindowModel),
            _ => None,
        }
    }

    /// The name of `value` as that parameter: of bits, the names of all joined by `|`. `None` where any of it has no
    /// name.
    pub fn named(self, param: &str, family: AbiFamily, value: i64) -> Option<String> {
        if self.is_bits() {
            return self.joined(family, value);
        }
        let fits = |name: &&str| match (self, param) {
            // A size may have the number of a distribution.
            (Self::Distribution, "array_of_dargs") => *name == "MPI_DISTRIBUTE_DFLT_DARG",
            (Self::Distribution, _) => *name != "MPI_DISTRIBUTE_DFLT_DARG",
            (Self::Special, "disp") => *name == "MPI_DISPLACEMENT_CURRENT",
            _ => true,
        };
        let mut of = self.of(family).filter(|(name, of)| fits(name) && i64::from(*of) == value);
        of.next().map(|(name, _)| name.to_owned())
    }

    fn joined(self, family: AbiFamily, value: i64) -> Option<String> {
        let bits: Vec<_> = self.of(family).filter(|&(_, bit)| value & i64::from(bit) != 0).collect();
        let known = bits.iter().fold(0, |known, &(_, bit)| known | i64::from(bit));
        let names: Vec<&str> = bits.into_iter().map(|(name, _)| name).collect();
        (value != 0 && known == value).then(|| names.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::{FUNCTIONS, Kind};

    fn named(function: &str, param: &str, family: AbiFamily, value: i64) -> Option<String> {
        let function = Function::by_name(function).expect("a function of MPI");
        Set::of_parameter(function, param)?.named(param, family, value)
    }

    #[test]
    fn every_set_has_a_parameter_and_only_numbers_are_named() {
        let mut seen = std::collections::BTreeSet::new();
        for (number, spec) in FUNCTIONS.iter().enumerate() {
            for param in spec.params {
                let Some(set) = Set::of_parameter(Function(number as u16), param.name) else { continue };
                let numbers = matches!(param.kind, Kind::Int | Kind::IntOrUndefined | Kind::Offset);
                assert!(numbers, "{} {}", spec.name, param.name);
                seen.insert(set);
            }
        }
        let of_attributes = ["MPI_WIN_CREATE_FLAVOR", "MPI_WIN_MODEL"].map(Set::of_attribute);
        seen.extend(of_attributes.into_iter().flatten());
        assert_eq!(seen.len(), 17);
    }

    #[test]
    fn bits_are_joined_and_what_is_unknown_stays_a_number() {
        let open = |family, value| named("MPI_File_open", "amode", family, value);
        assert_eq!(open(AbiFamily::OpenMpi, 5).as_deref(), Some("MPI_MODE_CREATE|MPI_MODE_WRONLY"));
        assert_eq!(open(AbiFamily::Standard, 258).as_deref(), Some("MPI_MODE_CREATE|MPI_MODE_WRONLY"));
        assert_eq!(open(AbiFamily::OpenMpi, 2).as_deref(), Some("MPI_MODE_RDONLY"));
        for unknown in [0, 1 << 20, 1 << 20 | 1, -1] {
            assert_eq!(open(AbiFamily::Mpich, unknown), None, "{unknown}");
        }
    }

    #[test]
    fn one_number_means_what_its_parameter_says() {
        let (open, mpich) = (AbiFamily::OpenMpi, AbiFamily::Mpich);
        assert_eq!(named("MPI_Comm_compare", "result", open, 1).as_deref(), Some("MPI_CONGRUENT"));
        assert_eq!(named("MPI_Win_lock", "lock_type", mpich, 235).as_deref(), Some("MPI_LOCK_SHARED"));
        // Of Open MPI 2 is MPI_DISTRIBUTE_NONE, but blocks of two are a number.
        assert_eq!(named("MPI_Type_create_darray", "array_of_dargs", open, 2), None);
        let default = named("MPI_Type_create_darray", "array_of_dargs", open, -1);
        assert_eq!(default.as_deref(), Some("MPI_DISTRIBUTE_DFLT_DARG"));
        assert_eq!(named("MPI_Abort", "errorcode", open, 1), None);
        assert_eq!(named("MPI_Error_class", "errorclass", open, 15).as_deref(), Some("MPI_ERR_TRUNCATE"));
        assert_eq!(named("MPI_Cart_shift", "disp", AbiFamily::Standard, -1), None);
        assert_eq!(named("MPI_Send", "count", open, 1), None);
    }
}
