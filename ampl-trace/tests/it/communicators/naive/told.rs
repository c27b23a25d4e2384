//! Records of a job: the trace of its recorded calls, and the truth about them.

use super::*;

impl Model {
    fn recorded(&self, rank: u32, dropped: Option<Dropped>) -> impl Iterator<Item = &Record> {
        let left_out = move |index| match dropped {
            Some(Dropped { rank: own, index: at, .. }) if own != rank || index < at => false,
            Some(Dropped { index: at, all_behind, .. }) => index == at || all_behind,
            None => false,
        };
        let calls = self.ranks[rank as usize].calls.iter().enumerate();
        calls.filter(move |&(index, _)| !left_out(index)).map(|(_, call)| call)
    }

    /// Calls that make or free something.
    pub fn droppable(&self) -> Vec<Dropped> {
        let mut all = Vec::new();
        for (rank, own) in (0..).zip(&self.ranks) {
            let told = ["MPI_Barrier", "MPI_Comm_rank", "MPI_Comm_size"];
            let calls = own.calls.iter().enumerate().filter(|(_, call)| !told.contains(&call.0));
            all.extend(calls.map(|(index, _)| Dropped { rank, index, all_behind: false }));
        }
        all
    }

    /// Notes that a dropped call was counted.
    pub fn count(&self, dropped: Dropped, process: &mut Process) {
        let function = Function::by_name(self.ranks[dropped.rank as usize].calls[dropped.index].0).unwrap().0;
        match process.calls.iter_mut().find(|(known, _)| *known == function) {
            Some((_, calls)) => *calls += 1,
            None => process.calls.push((function, 1)),
        }
        process.calls.sort_unstable();
    }

    pub fn trace(&self, dropped: Option<Dropped>) -> Trace {
        let ranks = self.ranks.len() as u32;
        let mut trace = Trace { structure: JobStructure::new(ranks), ..Trace::default() };
        trace.run.ranks = ranks;
        trace.run.mpi_library = "MPICH Version: 4".into();
        for rank in 0..ranks {
            let (mut signatures, mut builder) = (Vec::new(), Builder::new());
            let mut calls: BTreeMap<u16, u64> = BTreeMap::new();
            for (function, words, _) in self.recorded(rank, dropped) {
                let function = Function::by_name(function).unwrap().0;
                *calls.entry(function).or_default() += 1;
                let signature = Signature { function, flags: 0, site: 0, path: 0, words: words.clone() };
                let known = signatures.iter().position(|known| *known == signature);
                let terminal = known.unwrap_or_else(|| {
                    signatures.push(signature);
                    signatures.len() - 1
                });
                builder.push(terminal as u32, 1);
            }
            let thread = ThreadStructure { thread: 0, signatures, grammar: builder.grammar() };
            let threads = vec![thread];
            trace.structure.join(JobStructure::of(RankStructure {
                rank,
                threads,
                ..RankStructure::default()
            }));
            let (calls, host) = (calls.into_iter().collect(), format!("node{}", rank / HOST));
            let process = Process { rank, host, finalized: true, calls, ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
        }
        trace
    }

    pub fn truth(&self, dropped: Option<Dropped>) -> Truth {
        let ranks = 0..self.ranks.len() as u32;
        let named = |rank| self.recorded(rank, dropped).filter_map(|call| call.2).collect();
        let made = |rank| {
            let makes = self.recorded(rank, dropped).filter(|call| call.0 != "MPI_Barrier");
            makes.filter_map(|call| call.2.flatten()).collect()
        };
        Truth {
            comms: self.comms.clone(),
            made: ranks.clone().map(made).collect(),
            named: ranks.map(named).collect(),
        }
    }
}
