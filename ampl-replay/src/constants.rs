//! Constants of the recorded MPI as the replaying one has them, and numbers that an MPI makes up.

use ampl_core::mpi::Function;
use ampl_core::mpi::constants::{self, AbiFamily, Set};
use rustc_hash::FxHashMap;

/// Numbers of the replaying MPI by the recorded ones.
#[derive(Debug)]
pub struct Constants {
    recorded: AbiFamily,
    own: AbiFamily,
    /// Keys of attributes.
    keys: FxHashMap<i64, i32>,
    /// Error codes that are no constants.
    codes: FxHashMap<i64, i32>,
}

impl Constants {
    /// Constants of `own` for those of `recorded`.
    pub fn new(recorded: AbiFamily, own: AbiFamily) -> Self {
        Self { recorded, own, keys: FxHashMap::default(), codes: FxHashMap::default() }
    }

    /// The number that means here what `number` meant where it was recorded.
    ///
    /// # Errors
    /// The name of the constant, where this MPI lacks it.
    pub fn number(&self, function: Function, param: &str, number: i64) -> Result<i64, String> {
        let made = match Set::of_parameter(function, param) {
            None => return Ok(number),
            Some(Set::ErrorClass) => return Ok(self.code(number)),
            Some(Set::Keyval) => self.keys.get(&number),
            Some(_) => None,
        };
        if let Some(&key) = made {
            return Ok(key.into());
        }
        let set = Set::of_parameter(function, param).filter(|_| self.recorded != self.own);
        let Some(names) = set.and_then(|set| set.named(param, self.recorded, number)) else {
            return Ok(number);
        };
        names.split('|').try_fold(0, |sum, name| {
            let value = constants::value(self.own, name).ok_or_else(|| name.to_owned())?;
            Ok(sum | i64::from(value))
        })
    }

    /// The error code in place of `code`: one that this MPI made up in its place, or the class of the same name. Of others
    /// it is `MPI_ERR_OTHER`: only the library that made them up knows them.
    fn code(&self, code: i64) -> i64 {
        if let Some(&made) = self.codes.get(&code) {
            return made.into();
        }
        if self.recorded == self.own {
            return code;
        }
        let class = Set::ErrorClass.name(self.recorded, code);
        let own = class.and_then(|name| constants::value(self.own, name));
        own.or_else(|| constants::value(self.own, "MPI_ERR_OTHER")).map_or(code, i64::from)
    }

    /// Notes a number that a call of `function` has written, and `recorded` in the run.
    pub fn note(&mut self, function: Function, param: &str, recorded: i64, own: i32) {
        if param.ends_with("keyval") {
            self.keys.insert(recorded, own);
        } else if function.name().starts_with("MPI_Add_error_") {
            self.codes.insert(recorded, own);
        }
    }

    /// Notes the error code that a call returned here, and `recorded` in the run.
    pub fn note_failure(&mut self, recorded: i64, own: i32) {
        // Classes have names, and a call may fail here for another reason.
        if own != 0 && Set::ErrorClass.name(self.recorded, recorded).is_none() {
            self.codes.insert(recorded, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AbiFamily::{Mpich, OpenMpi};

    fn function(name: &str) -> Function {
        Function::by_name(name).expect("a function of MPI")
    }

    #[test]
    fn numbers_mean_the_same_under_the_other_mpi() {
        let constants = Constants::new(OpenMpi, Mpich);
        let number = |name, param, number| constants.number(function(name), param, number);
        let shared =
            |family| i64::from(constants::value(family, "MPI_COMM_TYPE_SHARED").expect("a constant"));
        assert_eq!(number("MPI_Comm_split_type", "split_type", shared(OpenMpi)), Ok(shared(Mpich)));
        assert_eq!(number("MPI_Comm_split_type", "key", shared(OpenMpi)), Ok(shared(OpenMpi)));
        assert_eq!(number("MPI_Error_class", "errorcode", 13), Ok(12), "MPI_ERR_ARG");
    }

    #[test]
    fn error_codes_are_those_that_this_mpi_made_up_or_other() {
        let string =
            |constants: &Constants, code| constants.number(function("MPI_Error_string"), "errorcode", code);
        let mut constants = Constants::new(Mpich, OpenMpi);
        let other = constants::value(OpenMpi, "MPI_ERR_OTHER").expect("a constant").into();
        assert_eq!(string(&constants, 469_872_902), Ok(other));
        constants.note_failure(469_872_902, 6);
        constants.note(function("MPI_Add_error_class"), "errorclass", 1_073_741_953, 93);
        assert_eq!(string(&constants, 469_872_902), Ok(6));
        assert_eq!(string(&constants, 1_073_741_953), Ok(93));
        // A class stays that class, whatever a call of the same class returns here.
        constants.note_failure(12, 5);
        assert_eq!(string(&constants, 12), Ok(13));
        // What the same MPI made up it knows.
        assert_eq!(string(&Constants::new(Mpich, Mpich), 469_872_902), Ok(469_872_902));
    }

    #[test]
    fn keys_are_those_that_this_mpi_made_up() {
        let mut constants = Constants::new(Mpich, Mpich);
        constants.note(function("MPI_Comm_create_keyval"), "comm_keyval", 7, 12);
        let key = |number| constants.number(function("MPI_Comm_set_attr"), "comm_keyval", number);
        assert_eq!((key(7), key(8)), (Ok(12), Ok(8)));
    }
}
