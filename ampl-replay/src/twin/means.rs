//! Counts in place of recorded means: ranks agree on them before each call that needs any.

use ampl_core::value::{ObjectKind, Spread, Value};
use ampl_reader::Call;
use ampl_replay::completions::input;
use ampl_replay::shares::{Own, Shares, common_unit, even};

use super::ffi;
use super::player::Player;
use super::problem::Problem;

/// One direction of a call: its arguments by name.
struct Side<'a> {
    player: &'a Player<'a>,
    call: &'a Call,
    buffer: &'static str,
    count: &'static str,
    counts: &'static str,
    types: [&'static str; 2],
}

impl Side<'_> {
    fn is_in_place(&self) -> bool {
        matches!(input(self.call, self.buffer), Some(Value::Name(name)) if name == "MPI_IN_PLACE")
    }

    fn spread(&self) -> Option<Spread> {
        match input(self.call, self.counts) {
            Some(Value::Spread(spread)) => Some(*spread),
            _ => None,
        }
    }

    /// Handle of the type of elements that go to or come from that rank; `None` where none is passed.
    fn handle(&self, rank: usize) -> Result<Option<usize>, Problem> {
        let given = self.types.iter().find_map(|name| input(self.call, name));
        let given = match given {
            Some(Value::List(all)) => all.get(rank),
            other => other,
        };
        Ok(given.map(|value| self.player.objects.datatype(value)).transpose()?.flatten())
    }

    /// Bytes of such an element.
    fn element(&self, rank: usize) -> Result<u64, Problem> {
        Ok(self.handle(rank)?.map_or(0, ffi::type_bytes))
    }

    /// Bytes of one element for each of `ranks`.
    fn elements(&self, ranks: usize) -> Result<Vec<u64>, Problem> {
        if self.types[1].is_empty() {
            return Ok(vec![self.element(0)?; ranks]);
        }
        (0..ranks).map(|rank| self.element(rank)).collect()
    }

    /// Bytes to or from all ranks, and the number of which each rank's are a multiple.
    fn bytes(&self, ranks: usize) -> Result<(u64, u64), Problem> {
        let bytes = if let Some(Spread { count, sum, .. }) = self.spread() {
            let sizes: u128 = self.elements(ranks)?.iter().map(|&size| u128::from(size)).sum();
            let sum = u128::try_from(sum).unwrap_or(0);
            u64::try_from(sum * sizes / u128::from(count.max(1))).unwrap_or(0)
        } else if let Some(Value::Int(count)) = input(self.call, self.count) {
            u64::try_from(*count).unwrap_or(0).saturating_mul(self.element(0)?)
        } else {
            0
        };
        let unit = self.elements(ranks)?.into_iter().filter(|&size| size > 0).fold(1, common_unit);
        Ok((bytes, unit))
    }

    /// Counts that are `bytes` of each rank, and displacements that put them behind each other.
    fn arrays(&self, bytes: &[u64]) -> Result<[Value; 2], Problem> {
        let (mut counts, mut displacements, mut at) = (Vec::new(), Vec::new(), 0i64);
        let in_bytes = !self.types[1].is_empty();
        for (rank, &bytes) in bytes.iter().enumerate() {
            // Room that is too large does no harm, and room that is too small does.
            let count = if bytes == 0 { 0 } else { bytes.div_ceil(self.element(rank)?.max(1)) };
            let count = i64::try_from(count).unwrap_or(0);
            counts.push(Value::Int(count));
            displacements.push(Value::Int(at));
            let extent = match self.handle(rank)? {
                Some(handle) if in_bytes => ffi::extents(handle).map_or(1, |(extent, ..)| extent.abs()),
                _ => 1,
            };
            at = at.saturating_add(count.saturating_mul(extent)).min(i32::MAX.into());
        }
        Ok([Value::List(counts), Value::List(displacements)])
    }
}

/// The call with counts where it has means; `None` where it needs none. All ranks of its communicator come here.
pub fn agreed(player: &Player<'_>, call: &Call) -> Result<Option<Call>, Problem> {
    let name = call.function.base_name();
    if !call.function.counts_ranks() || call.code != 0 {
        return Ok(None);
    }
    let comm = input(call, "comm").ok_or(Problem::NoArgument("comm"))?;
    let comm = player.objects.handle(ObjectKind::Comm, comm)?;
    let (rank, ranks) = ffi::place_in(comm).ok_or(Problem::Means)?;
    let types = if name == "MPI_Alltoallw" { ["", "sendtypes"] } else { ["sendtype", ""] };
    let sends = Side { player, call, buffer: "sendbuf", count: "sendcount", counts: "sendcounts", types };
    let types = if name == "MPI_Alltoallw" { ["", "recvtypes"] } else { ["recvtype", ""] };
    let receives = Side { player, call, buffer: "recvbuf", count: "recvcount", counts: "recvcounts", types };
    let in_place = sends.is_in_place();
    let (received, receive_unit) = if receives.is_in_place() { (0, 1) } else { receives.bytes(ranks)? };
    let (sent, send_unit) = match (in_place, name) {
        (false, _) => sends.bytes(ranks)?,
        (true, "MPI_Alltoallv" | "MPI_Alltoallw") => (received, receive_unit),
        (true, _) => (0, 1),
    };
    let own = Own { sends: sent, receives: received, unit: common_unit(send_unit, receive_unit) };
    let shares = Shares::new(ffi::gather_all(comm, own, ranks));
    let mean = |side: &Side<'_>, at: usize| -> Result<u64, Problem> {
        let Spread { count, sum, .. } = side.spread().unwrap_or(Spread { count: 1, sum: 0, min: 0, max: 0 });
        Ok(even(sum.try_into().unwrap_or(0), count, at as u64) * side.element(at)?)
    };
    let all = 0..ranks;
    let mut changed = call.clone();
    for (side, displacements) in [(&sends, ["sdispls", "displs"]), (&receives, ["rdispls", "displs"])] {
        if side.spread().is_none() {
            continue;
        }
        let is_sent = side.counts == "sendcounts";
        let bytes: Result<Vec<u64>, Problem> = match name {
            "MPI_Alltoallv" | "MPI_Alltoallw" if is_sent => {
                Ok(all.clone().map(|other| shares.between(rank, other)).collect())
            }
            "MPI_Alltoallv" | "MPI_Alltoallw" => {
                Ok(all.clone().map(|other| shares.between(other, rank)).collect())
            }
            // Of what is in place no rank says how much it is.
            "MPI_Allgatherv" if in_place => all.clone().map(|other| mean(side, other)).collect(),
            _ => {
                let said = |other: usize| match shares.of(other) {
                    _ if other == rank && (in_place || receives.is_in_place()) => mean(side, other),
                    own => Ok(if is_sent { own.receives } else { own.sends }),
                };
                all.clone().map(said).collect()
            }
        };
        let [counts, places] = side.arrays(&bytes?)?;
        for (param, value) in &mut changed.args {
            if *param == side.counts {
                *value = counts.clone();
            } else if displacements.contains(param) && matches!(value, Value::Spread(_)) {
                *value = places.clone();
            }
        }
    }
    Ok(Some(changed))
}
