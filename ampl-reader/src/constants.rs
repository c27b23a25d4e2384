//! Numbers of a call that are MPI's constants, by name.

use ampl_core::mpi::constants::{AbiFamily, Set};
use ampl_core::value::Value;
use ampl_trace::decode::Call;

/// Replaces the numbers of MPI's constants in `call` by their names; other numbers stay.
pub fn name(call: &mut Call, family: AbiFamily) {
    let function = call.function;
    let mut attribute = None;
    for (param, value) in call.args.iter_mut().chain(&mut call.out) {
        match Set::of_parameter(function, param) {
            Some(set) => {
                name_value(set, param, family, value);
                if let (Set::Keyval, Value::Name(keyval)) = (set, &*value) {
                    attribute = Set::of_attribute(keyval);
                }
            }
            None if *param == "attribute_val" => {
                if let (Some(set), Value::Address(number)) = (attribute, &*value)
                    && let Some(name) = set.name(family, *number as i64)
                {
                    *value = Value::Name(name.into());
                }
            }
            None => {}
        }
    }
}

fn name_value(set: Set, param: &str, family: AbiFamily, value: &mut Value) {
    match value {
        Value::Int(number) => {
            if let Some(name) = set.named(param, family, *number) {
                *value = Value::Name(name);
            }
        }
        Value::List(values) => values.iter_mut().for_each(|value| name_value(set, param, family, value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_testkit::runs::decoded as call;

    fn shown(mut call: Call, family: AbiFamily) -> Vec<String> {
        name(&mut call, family);
        call.args.iter().chain(&call.out).map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn inputs_outputs_and_lists_are_named() {
        let fence = call("MPI_Win_fence", vec![("assert", Value::Int(9))], Vec::new());
        assert_eq!(shown(fence, AbiFamily::OpenMpi), ["assert=MPI_MODE_NOCHECK|MPI_MODE_NOSTORE"]);
        let required = vec![("required", Value::Int(2))];
        let init = call("MPI_Init_thread", required, vec![("provided", Value::Int(3))]);
        let names = ["required=MPI_THREAD_SERIALIZED", "provided=MPI_THREAD_MULTIPLE"];
        assert_eq!(shown(init, AbiFamily::Mpich), names);
        let list = |numbers: &[i64]| Value::List(numbers.iter().map(|&number| Value::Int(number)).collect());
        let sizes = vec![("array_of_distribs", list(&[121, 122])), ("array_of_dargs", list(&[-49767, 121]))];
        let darray = call("MPI_Type_create_darray", sizes, Vec::new());
        let names = [
            "array_of_distribs=[MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC]",
            "array_of_dargs=[MPI_DISTRIBUTE_DFLT_DARG, 121]",
        ];
        assert_eq!(shown(darray, AbiFamily::Mpich), names);
        let unknown = call("MPI_Comm_split_type", vec![("split_type", Value::Int(99))], Vec::new());
        assert_eq!(shown(unknown, AbiFamily::Standard), ["split_type=99"]);
    }

    #[test]
    fn attributes_are_named_by_their_key() {
        let get = |keyval: i64, value: u64| {
            let args = vec![("win_keyval", Value::Int(keyval))];
            call("MPI_Win_get_attr", args, vec![("attribute_val", Value::Address(value))])
        };
        let names = ["win_keyval=MPI_WIN_MODEL", "attribute_val=MPI_WIN_UNIFIED"];
        assert_eq!(shown(get(605, 321), AbiFamily::Standard), names);
        let names = ["win_keyval=MPI_WIN_SIZE", "attribute_val=0x141"];
        assert_eq!(shown(get(603, 321), AbiFamily::Standard), names);
        let names = ["win_keyval=17", "attribute_val=0x2"];
        assert_eq!(shown(get(17, 2), AbiFamily::OpenMpi), names);
    }
}
