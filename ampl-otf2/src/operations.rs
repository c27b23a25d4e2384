//! OTF2's kinds of regions and collectives, by MPI function.

use ampl_core::mpi::Function;

/// Role of a region.
pub fn role(function: Function) -> u8 {
    const FUNCTION: u8 = 1;
    const BARRIER: u8 = 15;
    const ONE_TO_ALL: u8 = 23;
    const ALL_TO_ONE: u8 = 24;
    const ALL_TO_ALL: u8 = 25;
    const FILE: u8 = 27;
    const POINT_TO_POINT: u8 = 28;
    const ONE_SIDED: u8 = 29;
    match base(function) {
        "Barrier" => BARRIER,
        "Bcast" | "Scatter" | "Scatterv" => ONE_TO_ALL,
        "Reduce" | "Gather" | "Gatherv" => ALL_TO_ONE,
        name if collective(function).is_some() || name.starts_with("Neighbor_") => ALL_TO_ALL,
        name if name.starts_with("File_") => FILE,
        name if name.starts_with("Win_") || ["Put", "Get", "Accumulate"].contains(&name) => ONE_SIDED,
        name if name.contains("end") || name.contains("ecv") => POINT_TO_POINT,
        _ => FUNCTION,
    }
}

/// `OTF2_CollectiveOp` of a collective that ends with its call.
pub fn collective(function: Function) -> Option<u8> {
    const NAMES: [&str; 17] = [
        "Barrier",
        "Bcast",
        "Gather",
        "Gatherv",
        "Scatter",
        "Scatterv",
        "Allgather",
        "Allgatherv",
        "Alltoall",
        "Alltoallv",
        "Alltoallw",
        "Allreduce",
        "Reduce",
        "Reduce_scatter",
        "Scan",
        "Exscan",
        "Reduce_scatter_block",
    ];
    NAMES.iter().position(|name| *name == base(function)).map(|operation| operation as u8)
}

fn base(function: Function) -> &'static str {
    let name = function.base_name();
    name.strip_prefix("MPI_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_numbers_of_the_headers() {
        let of = |name: &str| collective(Function::by_name(name).expect("a function of MPI"));
        assert_eq!(of("MPI_Barrier"), Some(0));
        assert_eq!(of("MPI_Alltoallw"), Some(10));
        assert_eq!(of("MPI_Allreduce_c"), Some(11));
        assert_eq!(of("MPI_Reduce_scatter_block"), Some(16));
        assert_eq!((of("MPI_Iallreduce"), of("MPI_Send")), (None, None));
    }
}
