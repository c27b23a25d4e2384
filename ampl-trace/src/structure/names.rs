//! Names of the function numbers and predefined handles in a structure, and checksums of their parameters and kinds.

use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED, Param};

use super::stream::{Broken, Field, In, Out};
use crate::error::ReadError;

/// Functions that programs use, and the checksums of their parameters, as of format version 1: never changed. A
/// function of this version that equals its entry is written without its name.
const COMMON: &[(&str, u32)] = &[
    ("MPI_Allgather", 0xc7a2_f7a8),
    ("MPI_Allgatherv", 0x4bd5_9ba3),
    ("MPI_Allreduce", 0xa8c3_4eda),
    ("MPI_Alltoall", 0xc7a2_f7a8),
    ("MPI_Alltoallv", 0x1eee_7fc4),
    ("MPI_Alltoallw", 0xe783_0435),
    ("MPI_Barrier", 0xdfa0_d346),
    ("MPI_Bcast", 0xe321_55d7),
    ("MPI_Bsend", 0x5876_dc7c),
    ("MPI_Buffer_attach", 0x9d83_f194),
    ("MPI_Buffer_detach", 0x42c7_daa8),
    ("MPI_Cart_coords", 0x4b9b_4ac9),
    ("MPI_Cart_create", 0xb1d3_8dd8),
    ("MPI_Cart_get", 0x0b68_b902),
    ("MPI_Cart_rank", 0xdb34_852c),
    ("MPI_Cart_shift", 0x8848_f5d1),
    ("MPI_Cart_sub", 0x9a2e_b1ab),
    ("MPI_Comm_create", 0x7ec0_34ee),
    ("MPI_Comm_create_group", 0x23b6_c8d5),
    ("MPI_Comm_dup", 0xa8ce_3ab8),
    ("MPI_Comm_free", 0x08ad_a6a3),
    ("MPI_Comm_get_attr", 0x667d_32c5),
    ("MPI_Comm_get_name", 0x8269_a693),
    ("MPI_Comm_group", 0x5024_eb98),
    ("MPI_Comm_rank", 0x3c43_f95a),
    ("MPI_Comm_set_errhandler", 0xe011_a17c),
    ("MPI_Comm_set_name", 0x166f_82fb),
    ("MPI_Comm_size", 0xcbe5_709d),
    ("MPI_Comm_split", 0xd791_686b),
    ("MPI_Comm_split_type", 0x3fea_44a1),
    ("MPI_Dims_create", 0xdd34_8d69),
    ("MPI_Dist_graph_create_adjacent", 0x5c0c_8f9f),
    ("MPI_Error_string", 0x36b0_e4d8),
    ("MPI_Exscan", 0xa8c3_4eda),
    ("MPI_Fetch_and_op", 0x0e0c_a00d),
    ("MPI_File_close", 0xd17b_86e2),
    ("MPI_File_open", 0x4f13_a27c),
    ("MPI_File_read_at", 0xb57f_a01d),
    ("MPI_File_read_at_all", 0xb57f_a01d),
    ("MPI_File_set_view", 0x6465_324e),
    ("MPI_File_write_at", 0xe9f3_7052),
    ("MPI_File_write_at_all", 0xe9f3_7052),
    ("MPI_Finalize", 0x0000_0000),
    ("MPI_Finalized", 0xc5c9_de07),
    ("MPI_Gather", 0xd5ff_2a09),
    ("MPI_Gatherv", 0xa95f_a607),
    ("MPI_Get", 0xb476_e69d),
    ("MPI_Get_address", 0x8a16_e1b4),
    ("MPI_Get_count", 0xfd9c_7bf9),
    ("MPI_Get_elements", 0xfd9c_7bf9),
    ("MPI_Get_library_version", 0xe611_d685),
    ("MPI_Get_processor_name", 0x08b9_56c5),
    ("MPI_Get_version", 0x64a6_bd11),
    ("MPI_Group_free", 0x917f_644a),
    ("MPI_Group_incl", 0x6b33_fd0f),
    ("MPI_Group_rank", 0x2069_8e84),
    ("MPI_Group_size", 0x057b_8a43),
    ("MPI_Group_translate_ranks", 0x5c61_35e8),
    ("MPI_Iallgather", 0x32f1_e06d),
    ("MPI_Iallreduce", 0xa5a7_7415),
    ("MPI_Ialltoall", 0x32f1_e06d),
    ("MPI_Ialltoallv", 0x42ef_e994),
    ("MPI_Ibarrier", 0x878d_0037),
    ("MPI_Ibcast", 0x61c6_b0ab),
    ("MPI_Ibsend", 0x7ef7_c37b),
    ("MPI_Improbe", 0x7e40_287c),
    ("MPI_Info_create", 0x8a0c_397f),
    ("MPI_Info_free", 0x5043_d830),
    ("MPI_Info_set", 0xf5cf_a3e8),
    ("MPI_Init", 0xfb67_6eae),
    ("MPI_Init_thread", 0x7fb6_2e6c),
    ("MPI_Initialized", 0xc5c9_de07),
    ("MPI_Iprobe", 0xc441_1b29),
    ("MPI_Irecv", 0x0b49_925a),
    ("MPI_Ireduce", 0x6a72_d77e),
    ("MPI_Irsend", 0x7ef7_c37b),
    ("MPI_Isend", 0x7ef7_c37b),
    ("MPI_Issend", 0x7ef7_c37b),
    ("MPI_Mprobe", 0xd9a0_c43a),
    ("MPI_Mrecv", 0x3708_5823),
    ("MPI_Neighbor_allgather", 0xc7a2_f7a8),
    ("MPI_Neighbor_alltoall", 0xc7a2_f7a8),
    ("MPI_Neighbor_alltoallv", 0xf1dd_1f34),
    ("MPI_Op_create", 0xac42_576e),
    ("MPI_Op_free", 0xbba1_5d7f),
    ("MPI_Pack", 0xb7de_e9f8),
    ("MPI_Probe", 0x7ae0_5082),
    ("MPI_Put", 0x7c82_bd56),
    ("MPI_Query_thread", 0x53aa_930e),
    ("MPI_Recv", 0xc905_5505),
    ("MPI_Recv_init", 0x0b49_925a),
    ("MPI_Reduce", 0x3465_77a0),
    ("MPI_Reduce_local", 0x4d04_e83e),
    ("MPI_Reduce_scatter", 0x2759_563a),
    ("MPI_Reduce_scatter_block", 0x96ae_adfe),
    ("MPI_Request_free", 0x7d5c_64d5),
    ("MPI_Rsend", 0x5876_dc7c),
    ("MPI_Scan", 0xa8c3_4eda),
    ("MPI_Scatter", 0xd5ff_2a09),
    ("MPI_Scatterv", 0x9f8d_6e77),
    ("MPI_Send", 0x5876_dc7c),
    ("MPI_Send_init", 0x7ef7_c37b),
    ("MPI_Sendrecv", 0x323a_64ad),
    ("MPI_Sendrecv_replace", 0x7477_fbf6),
    ("MPI_Ssend", 0x5876_dc7c),
    ("MPI_Start", 0x7d5c_64d5),
    ("MPI_Startall", 0x5261_976c),
    ("MPI_Test", 0x17f3_fe26),
    ("MPI_Testall", 0x40c1_9e65),
    ("MPI_Testany", 0x2f7e_e59c),
    ("MPI_Testsome", 0x11e9_e2c4),
    ("MPI_Type_commit", 0xfcd8_cd87),
    ("MPI_Type_contiguous", 0xcb40_a10d),
    ("MPI_Type_create_hindexed", 0x1a91_667d),
    ("MPI_Type_create_resized", 0x5442_3c5d),
    ("MPI_Type_create_struct", 0x5908_ed20),
    ("MPI_Type_create_subarray", 0xf2fb_1b5e),
    ("MPI_Type_extent", 0x358a_9b28),
    ("MPI_Type_free", 0xfcd8_cd87),
    ("MPI_Type_get_extent", 0xabfc_4e8d),
    ("MPI_Type_hvector", 0xd26c_c1d0),
    ("MPI_Type_create_hvector", 0xd26c_c1d0),
    ("MPI_Type_indexed", 0x5694_fdb0),
    ("MPI_Type_size", 0x6fe6_e0b7),
    ("MPI_Type_struct", 0x5908_ed20),
    ("MPI_Type_vector", 0xb569_48cd),
    ("MPI_Unpack", 0xac32_08c7),
    ("MPI_Wait", 0x771b_4cd0),
    ("MPI_Waitall", 0x15e6_b700),
    ("MPI_Waitany", 0x0270_1266),
    ("MPI_Waitsome", 0x11e9_e2c4),
    ("MPI_Win_allocate", 0xeef4_00a2),
    ("MPI_Win_allocate_shared", 0xeef4_00a2),
    ("MPI_Win_complete", 0xbe96_7a0d),
    ("MPI_Win_create", 0x7601_1e4c),
    ("MPI_Win_fence", 0x2265_72fb),
    ("MPI_Win_flush", 0x0441_1eef),
    ("MPI_Win_free", 0xc41d_56da),
    ("MPI_Win_lock", 0x199c_3306),
    ("MPI_Win_lock_all", 0x2265_72fb),
    ("MPI_Win_post", 0x9183_fe1c),
    ("MPI_Win_start", 0x9183_fe1c),
    ("MPI_Win_unlock", 0x0441_1eef),
    ("MPI_Win_unlock_all", 0xbe96_7a0d),
    ("MPI_Win_wait", 0xbe96_7a0d),
    ("MPI_Accumulate", 0x8329_4452),
    ("MPI_Abort", 0xe1f7_fcbb),
    ("MPI_Cancel", 0x7d5c_64d5),
    ("MPI_Comm_get_parent", 0x983b_cc41),
    ("MPI_Comm_remote_size", 0xcbe5_709d),
    ("MPI_Intercomm_create", 0x389b_e840),
    ("MPI_Intercomm_merge", 0xdcd1_39b8),
    ("MPI_Comm_spawn", 0x74ec_65ee),
    ("MPI_Comm_compare", 0x9a84_7f0a),
];

/// The checksum of the predefined handles as of format version 1.
const PREDEFINED_THEN: u32 = 0xb083_9843;

const GAP: u64 = 0;
const NAMED: u64 = 1;
const NUMBERED: u64 = 2;
const FIRST_COMMON: u64 = 3;

/// CRC-32 of the parameters of `function`.
fn checksum(function: Function) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for Param { name, kind, direction, length } in function.spec().params {
        hasher.update(format!("{name}:{kind:?}:{direction:?}:{length:?};").as_bytes());
    }
    hasher.finalize()
}

fn predefined_checksum() -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for (kind, name) in PREDEFINED {
        hasher.update(format!("{} {name};", kind.name()).as_bytes());
    }
    hasher.finalize()
}

/// Writes the list of predefined handles and `functions`.
pub fn write(out: &mut Out, functions: &[u16]) {
    let predefined = predefined_checksum();
    out.put(Field::Head, 10, if predefined == PREDEFINED_THEN { 0 } else { 1 + u64::from(predefined) });
    out.put(Field::Length, 10, functions.len() as u64);
    for &number in functions {
        if number == u16::MAX {
            out.put(Field::Function, 11, GAP);
            continue;
        }
        if usize::from(number) >= FUNCTION_COUNT {
            out.put(Field::Function, 11, NUMBERED);
            out.put(Field::Function, 12, number.into());
            continue;
        }
        let function = Function(number);
        let checksum = checksum(function);
        if let Some(common) = COMMON.iter().position(|&common| common == (function.name(), checksum)) {
            out.put(Field::Function, 11, FIRST_COMMON + common as u64);
            continue;
        }
        out.put(Field::Function, 11, NAMED);
        let name = function.name();
        let name = name.strip_prefix("MPI_").unwrap_or(name).as_bytes();
        out.put(Field::Length, 12, name.len() as u64);
        out.put_bytes(Field::Text, 13, name);
        out.put_bytes(Field::Head, 14, &checksum.to_le_bytes());
    }
}

/// Reason for which names cannot be read.
pub enum Unreadable {
    /// They make no sense.
    Broken(Broken),
    /// A function differs from this version's.
    Other(ReadError),
}

impl From<Broken> for Unreadable {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Reads what [`write`] wrote: the functions' numbers in this version's table.
pub fn read(stream: &mut In) -> Result<Vec<u16>, Unreadable> {
    stream.reading("function table");
    let other = |function: &str| Unreadable::Other(ReadError::TableMismatch { function: function.into() });
    let predefined = stream.get_most(Field::Head, 10, 1 << 32)?;
    let then = if predefined == 0 { PREDEFINED_THEN } else { (predefined - 1) as u32 };
    if then != predefined_checksum() {
        return Err(other("the list of predefined handles"));
    }
    let length = stream.get_length(Field::Length, 10)?;
    let mut functions = Vec::new();
    for _ in 0..length {
        let (name, then) = match stream.get(Field::Function, 11)? {
            GAP => {
                functions.push(u16::MAX);
                continue;
            }
            NUMBERED => {
                functions.push(stream.get_most(Field::Function, 12, u16::MAX.into())? as u16);
                continue;
            }
            NAMED => {
                let length = stream.get_length(Field::Length, 12)?;
                let name = stream.get_bytes(Field::Text, 13, length)?;
                let name = String::from_utf8(name).map_err(|_| stream.broken())?;
                let then = stream.get_bytes(Field::Head, 14, 4)?;
                (format!("MPI_{name}"), u32::from_le_bytes(then.try_into().expect("four bytes")))
            }
            common => {
                let common = COMMON.get((common - FIRST_COMMON) as usize).ok_or_else(|| stream.broken())?;
                (common.0.to_owned(), common.1)
            }
        };
        match Function::by_name(&name) {
            Some(function) if checksum(function) == then => functions.push(function.0),
            _ => return Err(other(&name)),
        }
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_functions_are_as_they_were() {
        // A function that changes is written by name from then on; it must not change unnoticed.
        let now = |name| Function::by_name(name).map_or(0, checksum);
        let changed = COMMON.iter().filter(|&&(name, then)| now(name) != then);
        let lines: Vec<String> =
            changed.map(|&(name, _)| format!("    (\"{name}\", {:#010x}),", now(name))).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
        assert_eq!(PREDEFINED_THEN, predefined_checksum(), "{:#010x}", predefined_checksum());
    }
}
