//! Ranks' structures as an agent would record them, call by call.

use ampl_core::mpi::{Function, predefined_index};
use ampl_core::value::{ANY_SOURCE, ANY_TAG, ObjectKind, PROC_NULL};
use ampl_trace::args::{predefined_word, status_word};
use ampl_trace::grammar::Builder;
use ampl_trace::model::Site;
use ampl_trace::structure::{Comm, RankStructure, Signature, ThreadStructure};

pub fn named(kind: ObjectKind, name: &str) -> u64 {
    predefined_word(predefined_index(kind, name).unwrap())
}

pub fn world() -> u64 {
    named(ObjectKind::Comm, "MPI_COMM_WORLD")
}

pub fn double() -> u64 {
    named(ObjectKind::Type, "MPI_DOUBLE")
}

pub fn word(value: i64) -> u64 {
    value as u64
}

pub fn heap(number: u64) -> u64 {
    1 << 60 | number
}

/// Records the calls of one thread of a rank as an agent would.
pub struct Recorder {
    pub rank: RankStructure,
    signatures: Vec<Signature>,
    calls: Builder,
}

impl Recorder {
    pub fn new(rank: u32, ranks: u32) -> Self {
        let comms = vec![Comm { word: world(), size: ranks.into(), rank: rank.into() }];
        let modules = vec!["/usr/bin/program".to_owned()];
        let rank = RankStructure { rank, comms, modules, ..RankStructure::default() };
        Self { rank, signatures: Vec::new(), calls: Builder::new() }
    }

    /// A call at that line; its terminal.
    pub fn call(&mut self, function: &str, line: u64, words: Vec<u64>) -> u32 {
        let offset = 0x11d0 + 37 * line + line * line % 11;
        let site = Site { offset, ..Site::default() };
        let known = self.rank.sites.iter().position(|known| *known == site).unwrap_or_else(|| {
            self.rank.sites.push(site);
            self.rank.sites.len() - 1
        });
        let function = Function::by_name(function).unwrap().0;
        let signature = Signature { function, flags: 0, site: known as u32 + 1, path: 0, words };
        let terminal = self.signatures.iter().position(|known| *known == signature).unwrap_or_else(|| {
            self.signatures.push(signature);
            self.signatures.len() - 1
        });
        self.calls.push(terminal as u32, 1);
        terminal as u32
    }

    pub fn receive(&mut self, line: u64, buffer: u64, source: i64, tag: u64) -> u64 {
        let words = vec![heap(buffer), 256, double(), word(source), tag, world(), 0];
        u64::from(self.call("MPI_Irecv", line, words) + 1) << 20
    }

    pub fn send(&mut self, line: u64, buffer: u64, dest: i64, tag: u64) -> u64 {
        let words = vec![heap(buffer), 256, double(), word(dest), tag, world(), 0];
        u64::from(self.call("MPI_Isend", line, words) + 1) << 20
    }

    pub fn wait(&mut self, line: u64, requests: &[u64], statuses: &[u64]) {
        let count = requests.len() as u64;
        let null = named(ObjectKind::Request, "MPI_REQUEST_NULL");
        let mut words = vec![count, count];
        words.extend(requests);
        words.push(count);
        words.extend(requests.iter().map(|_| null));
        words.push(count);
        words.extend(statuses);
        self.call("MPI_Waitall", line, words);
    }

    pub fn begin(&mut self) {
        let (rank, size) = (self.rank.comms[0].rank, self.rank.comms[0].size);
        self.call("MPI_Init", 1, vec![0, 0]);
        self.call("MPI_Comm_rank", 2, vec![world(), rank]);
        self.call("MPI_Comm_size", 3, vec![world(), size]);
    }

    pub fn finish(mut self) -> RankStructure {
        self.call("MPI_Finalize", 90, vec![]);
        let grammar = self.calls.grammar();
        self.rank.threads.push(ThreadStructure { thread: 0, signatures: self.signatures, grammar });
        self.rank
    }
}

/// The neighbour `by` steps along dimension `along`.
pub fn neighbour(dims: &[u32], periodic: bool, rank: u32, along: usize, by: i64) -> i64 {
    let below: u32 = dims[along + 1..].iter().product();
    let extent = i64::from(dims[along]);
    let place = i64::from(rank / below % dims[along]);
    let to = place + by;
    if !periodic && !(0..extent).contains(&to) {
        return PROC_NULL;
    }
    i64::from(rank) + (to.rem_euclid(extent) - place) * i64::from(below)
}

/// Each iteration: a receive from and a send to every neighbour, then all are waited for.
pub fn stencil(dims: &[u32], periodic: bool, iterations: u32, rank: u32) -> RankStructure {
    let nobody = status_word(PROC_NULL as i32, ANY_TAG as i32);
    stencil_under(nobody, dims, periodic, iterations, rank)
}

/// As [`stencil`], under an MPI that returns `nobody` for a message from `MPI_PROC_NULL`.
pub fn stencil_under(nobody: u64, dims: &[u32], periodic: bool, iterations: u32, rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, dims.iter().product());
    recorder.begin();
    let neighbours: Vec<i64> = (0..dims.len())
        .flat_map(|along| [-1, 1].map(|by| neighbour(dims, periodic, rank, along, by)))
        .collect();
    for _ in 0..iterations {
        let (mut requests, mut statuses) = (Vec::new(), Vec::new());
        for (index, &source) in neighbours.iter().enumerate() {
            requests.push(recorder.receive(20 + index as u64, index as u64, source, 7));
            statuses.push(if source == PROC_NULL { nobody } else { status_word(source as i32, 7) });
        }
        for (index, &dest) in neighbours.iter().enumerate() {
            let buffer = (neighbours.len() + index) as u64;
            requests.push(recorder.send(40 + index as u64, buffer, dest, 7));
            statuses.push(status_word(ANY_SOURCE as i32, ANY_TAG as i32));
        }
        recorder.wait(60, &requests, &statuses);
    }
    recorder.finish()
}
