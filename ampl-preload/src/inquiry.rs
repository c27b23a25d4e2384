//! Queries to MPI about the program's objects, by its profiling names.

use ampl_trace::record::NOWHERE;

use crate::process::Process;
use crate::symbol::next_definition;

/// Bit of a communicator's second fact: it joins two groups, and the rest is the size of the caller's.
pub const INTER: u64 = 1 << 63;

impl Process {
    /// Bytes of one element of a valid datatype; 0 if MPI does not report them.
    pub fn type_bytes(&self, datatype: usize) -> u64 {
        let mut bytes = 0i64;
        // SAFETY: a datatype of a call that succeeded, and a place for an MPI_Count.
        let code = unsafe { (self.pmpi.type_size_x)(datatype, &raw mut bytes as usize) };
        if code == 0 { bytes.max(0) as u64 } else { 0 }
    }

    /// The two facts kept of a valid communicator: its size and the caller's rank, or of an
    /// intercommunicator the remote size and, marked, the local one.
    pub fn comm_facts(&self, comm: usize) -> [u64; 2] {
        let (mut ranks, mut rank, mut inter, mut remote) = (0i32, 0i32, 0i32, 0i32);
        // SAFETY: a communicator of a call that succeeded, and places for ints.
        unsafe {
            (self.pmpi.comm_test_inter)(comm, &raw mut inter as usize);
            (self.pmpi.comm_size)(comm, &raw mut ranks as usize);
            (self.pmpi.comm_rank)(comm, &raw mut rank as usize);
            if inter != 0 {
                (self.pmpi.comm_remote_size)(comm, &raw mut remote as usize);
            }
        }
        let [ranks, rank, remote] = [ranks, rank, remote].map(|number| number.max(0) as u64);
        if inter == 0 { [ranks, rank] } else { [remote, INTER | ranks] }
    }

    /// The size of a valid intracommunicator, the caller's rank in it, and the rank in the world of its rank 0;
    /// [`NOWHERE`] where that is of another world.
    pub fn place_in(&self, comm: usize) -> [u64; 3] {
        let [size, rank] = self.comm_facts(comm);
        let (mut groups, mut leader) = ([0usize; 2], self.abi.undefined);
        let first = 0i32;
        // SAFETY: valid communicators, places for handles, groups that MPI has given, and places for ranks.
        unsafe {
            (self.pmpi.comm_group)(comm, &raw mut groups[0] as usize);
            (self.pmpi.comm_group)(self.world.0 as usize, &raw mut groups[1] as usize);
            let [made, world] = groups;
            let (from, to) = (&raw const first as usize, &raw mut leader as usize);
            (self.pmpi.group_translate_ranks)(made, 1, from, world, to);
            for group in &mut groups {
                (self.pmpi.group_free)(&raw mut *group as usize);
            }
        }
        [size, rank, u64::try_from(leader).unwrap_or(NOWHERE)]
    }

    /// How many integers, addresses, large counts and datatypes a valid datatype was made from; `large` as
    /// the functions `_c` count them.
    pub fn envelope(&self, datatype: usize, large: bool) -> [u64; 4] {
        let mut counts = [0i64; 5];
        let at = counts.each_mut().map(|count| &raw mut *count as usize);
        let function = next_definition("PMPI_Type_get_envelope_c\0");
        if large && !function.is_null() {
            // SAFETY: the standard's function of that name, a datatype of a call that succeeded, and places
            // for four MPI_Counts and an int.
            unsafe {
                let ask: unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> i32 =
                    std::mem::transmute(function);
                ask(datatype, at[0], at[1], at[2], at[3], at[4]);
            }
            return [counts[0], counts[1], counts[2], counts[3]].map(|count| count.max(0) as u64);
        }
        let mut counts = [0i32; 4];
        let [integers, addresses, datatypes, combiner] =
            counts.each_mut().map(|count| &raw mut *count as usize);
        // SAFETY: a datatype of a call that succeeded, and places for ints.
        unsafe { (self.pmpi.type_get_envelope)(datatype, integers, addresses, datatypes, combiner) };
        [counts[0], counts[1], 0, counts[2]].map(|count| count.max(0) as u64)
    }

    /// Dimensions of a communicator with a Cartesian topology, 0 of others.
    pub fn cart_dims(&self, comm: usize) -> i64 {
        let mut dims = 0i32;
        if self.topology(comm) == self.abi.cart {
            // SAFETY: a Cartesian communicator, and a place for an int.
            unsafe { (self.pmpi.cartdim_get)(comm, &raw mut dims as usize) };
        }
        i64::from(dims)
    }

    fn topology(&self, comm: usize) -> i32 {
        let mut topology = self.abi.undefined;
        // SAFETY: a communicator of a call that succeeded, and a place for an int.
        unsafe { (self.pmpi.topo_test)(comm, &raw mut topology as usize) };
        topology
    }

    /// Neighbours that the caller receives from and sends to in a communicator of a neighbourhood
    /// collective that succeeded.
    pub fn degrees(&self, comm: usize) -> (u64, u64) {
        let (mut into, mut out, mut weighted) = (0i32, 0i32, 0i32);
        let [into_at, out_at, weighted_at] =
            [&raw mut into, &raw mut out, &raw mut weighted].map(|at| at as usize);
        let topology = self.topology(comm);
        if topology == self.abi.cart {
            let dims = self.cart_dims(comm).max(0) as u64;
            return (2 * dims, 2 * dims);
        } else if topology == self.abi.graph {
            let [_, rank] = self.comm_facts(comm);
            // SAFETY: a graph communicator, and a place for an int.
            unsafe { (self.pmpi.graph_neighbors_count)(comm, rank as usize, into_at) };
            out = into;
        } else if topology == self.abi.dist_graph {
            // SAFETY: a distributed graph communicator, and places for ints.
            unsafe { (self.pmpi.dist_graph_neighbors_count)(comm, into_at, out_at, weighted_at) };
        }
        (into.max(0) as u64, out.max(0) as u64)
    }
}
