//! Names of the handles that MPI itself defines.

use super::ObjectKind::{self, *};

/// Index of a predefined handle in [`PREDEFINED`], `None` if MPI defines no such handle.
///
/// `name` is the one name that every implementation's table uses: of synonyms the first in
/// `MPI_LONG_LONG`, `MPI_C_FLOAT_COMPLEX`, `MPI_CXX_FLOAT_COMPLEX`.
pub fn predefined_index(kind: ObjectKind, name: &str) -> Option<u16> {
    PREDEFINED
        .binary_search_by(|(other, candidate)| (*other as u8, *candidate).cmp(&(kind as u8, name)))
        .ok()
        .map(|index| index as u16)
}

/// Every predefined handle of any known implementation, null handles included, sorted by kind
/// and name.
pub static PREDEFINED: &[(ObjectKind, &str)] = &[
    (Comm, "MPI_COMM_NULL"),
    (Comm, "MPI_COMM_SELF"),
    (Comm, "MPI_COMM_WORLD"),
    (Type, "MPIX_BFLOAT16"),
    (Type, "MPIX_C_FLOAT16"),
    (Type, "MPI_2COMPLEX"),
    (Type, "MPI_2DOUBLE_COMPLEX"),
    (Type, "MPI_2DOUBLE_PRECISION"),
    (Type, "MPI_2INT"),
    (Type, "MPI_2INTEGER"),
    (Type, "MPI_2REAL"),
    (Type, "MPI_AINT"),
    (Type, "MPI_BYTE"),
    (Type, "MPI_CHAR"),
    (Type, "MPI_CHARACTER"),
    (Type, "MPI_COMPLEX"),
    (Type, "MPI_COMPLEX16"),
    (Type, "MPI_COMPLEX32"),
    (Type, "MPI_COMPLEX4"),
    (Type, "MPI_COMPLEX8"),
    (Type, "MPI_COUNT"),
    (Type, "MPI_CXX_BOOL"),
    (Type, "MPI_CXX_DOUBLE_COMPLEX"),
    (Type, "MPI_CXX_FLOAT_COMPLEX"),
    (Type, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    (Type, "MPI_C_BOOL"),
    (Type, "MPI_C_DOUBLE_COMPLEX"),
    (Type, "MPI_C_FLOAT_COMPLEX"),
    (Type, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (Type, "MPI_DATATYPE_NULL"),
    (Type, "MPI_DOUBLE"),
    (Type, "MPI_DOUBLE_COMPLEX"),
    (Type, "MPI_DOUBLE_INT"),
    (Type, "MPI_DOUBLE_PRECISION"),
    (Type, "MPI_FLOAT"),
    (Type, "MPI_FLOAT_INT"),
    (Type, "MPI_INT"),
    (Type, "MPI_INT16_T"),
    (Type, "MPI_INT32_T"),
    (Type, "MPI_INT64_T"),
    (Type, "MPI_INT8_T"),
    (Type, "MPI_INTEGER"),
    (Type, "MPI_INTEGER1"),
    (Type, "MPI_INTEGER16"),
    (Type, "MPI_INTEGER2"),
    (Type, "MPI_INTEGER4"),
    (Type, "MPI_INTEGER8"),
    (Type, "MPI_LB"),
    (Type, "MPI_LOGICAL"),
    (Type, "MPI_LOGICAL1"),
    (Type, "MPI_LOGICAL16"),
    (Type, "MPI_LOGICAL2"),
    (Type, "MPI_LOGICAL4"),
    (Type, "MPI_LOGICAL8"),
    (Type, "MPI_LONG"),
    (Type, "MPI_LONG_DOUBLE"),
    (Type, "MPI_LONG_DOUBLE_INT"),
    (Type, "MPI_LONG_INT"),
    (Type, "MPI_LONG_LONG"),
    (Type, "MPI_OFFSET"),
    (Type, "MPI_PACKED"),
    (Type, "MPI_REAL"),
    (Type, "MPI_REAL16"),
    (Type, "MPI_REAL2"),
    (Type, "MPI_REAL4"),
    (Type, "MPI_REAL8"),
    (Type, "MPI_SHORT"),
    (Type, "MPI_SHORT_INT"),
    (Type, "MPI_SIGNED_CHAR"),
    (Type, "MPI_UB"),
    (Type, "MPI_UINT16_T"),
    (Type, "MPI_UINT32_T"),
    (Type, "MPI_UINT64_T"),
    (Type, "MPI_UINT8_T"),
    (Type, "MPI_UNSIGNED"),
    (Type, "MPI_UNSIGNED_CHAR"),
    (Type, "MPI_UNSIGNED_LONG"),
    (Type, "MPI_UNSIGNED_LONG_LONG"),
    (Type, "MPI_UNSIGNED_SHORT"),
    (Type, "MPI_WCHAR"),
    (Op, "MPIX_EQUAL"),
    (Op, "MPI_BAND"),
    (Op, "MPI_BOR"),
    (Op, "MPI_BXOR"),
    (Op, "MPI_LAND"),
    (Op, "MPI_LOR"),
    (Op, "MPI_LXOR"),
    (Op, "MPI_MAX"),
    (Op, "MPI_MAXLOC"),
    (Op, "MPI_MIN"),
    (Op, "MPI_MINLOC"),
    (Op, "MPI_NO_OP"),
    (Op, "MPI_OP_NULL"),
    (Op, "MPI_PROD"),
    (Op, "MPI_REPLACE"),
    (Op, "MPI_SUM"),
    (Group, "MPI_GROUP_EMPTY"),
    (Group, "MPI_GROUP_NULL"),
    (Info, "MPI_INFO_ENV"),
    (Info, "MPI_INFO_NULL"),
    (Errhandler, "MPI_ERRHANDLER_NULL"),
    (Errhandler, "MPI_ERRORS_ABORT"),
    (Errhandler, "MPI_ERRORS_ARE_FATAL"),
    (Errhandler, "MPI_ERRORS_RETURN"),
    (File, "MPI_FILE_NULL"),
    (Win, "MPI_WIN_NULL"),
    (Message, "MPI_MESSAGE_NO_PROC"),
    (Message, "MPI_MESSAGE_NULL"),
    (Session, "MPI_SESSION_NULL"),
    (Request, "MPI_REQUEST_NULL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_unique() {
        assert!(
            PREDEFINED.windows(2).all(|pair| (pair[0].0 as u8, pair[0].1) < (pair[1].0 as u8, pair[1].1))
        );
    }

    #[test]
    fn every_entry_is_found_under_its_own_kind_only() {
        for (index, (kind, name)) in PREDEFINED.iter().enumerate() {
            assert_eq!(predefined_index(*kind, name), Some(index as u16));
        }
        assert_eq!(predefined_index(Comm, "MPI_DOUBLE"), None);
        assert_eq!(predefined_index(Type, "MPI_LONG_LONG_INT"), None, "a synonym");
    }

    #[test]
    fn every_kind_has_its_null_handle() {
        for (kind, name) in [
            (Comm, "MPI_COMM_NULL"),
            (Type, "MPI_DATATYPE_NULL"),
            (Op, "MPI_OP_NULL"),
            (Group, "MPI_GROUP_NULL"),
            (Info, "MPI_INFO_NULL"),
            (Errhandler, "MPI_ERRHANDLER_NULL"),
            (File, "MPI_FILE_NULL"),
            (Win, "MPI_WIN_NULL"),
            (Message, "MPI_MESSAGE_NULL"),
            (Session, "MPI_SESSION_NULL"),
            (Request, "MPI_REQUEST_NULL"),
        ] {
            assert!(predefined_index(kind, name).is_some(), "{name}");
        }
    }
}
