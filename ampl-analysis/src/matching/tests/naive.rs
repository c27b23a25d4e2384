//! A naive MPI, and random programs that it runs.

use ampl_core::value::{ANY_SOURCE, ANY_TAG};
use ampl_testkit::runs::world;
use ampl_trace::args::status_word;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Place, Program, Seen, double, null, play_all};

/// A message under way.
#[derive(Clone, Copy)]
struct Message {
    from: u32,
    comm: usize,
    tag: u64,
    place: Place,
}

/// A receive that has no message, or an operation that is not completed.
#[derive(Clone, Copy)]
struct Posted {
    request: u64,
    from: Option<u32>,
    tag: Option<u64>,
    comm: usize,
    place: Place,
    message: Option<Message>,
}

impl Posted {
    fn takes(&self, message: &Message) -> bool {
        let asks = self.from.is_none_or(|from| from == message.from);
        asks && self.comm == message.comm && self.tag.is_none_or(|tag| tag == message.tag)
    }
}

/// A naive MPI: every rank has a queue of receives and one of unexpected messages (MPI-4.1 §3.5).
struct Naive {
    programs: Vec<Program>,
    receives: Vec<Vec<Posted>>,
    sends: Vec<Vec<u64>>,
    unexpected: Vec<Vec<Message>>,
    truth: Vec<(Place, Place)>,
    collectives: Vec<(u32, &'static str, Vec<Place>)>,
    comms: [u64; 2],
}

impl Naive {
    fn new(ranks: u32) -> Self {
        let programs: Vec<Program> = (0..ranks).map(|rank| Program::new(rank, ranks)).collect();
        let empty = || (0..ranks).map(|_| Vec::new()).collect();
        let mut naive = Self {
            programs,
            receives: (0..ranks).map(|_| Vec::new()).collect(),
            sends: empty(),
            unexpected: (0..ranks).map(|_| Vec::new()).collect(),
            truth: Vec::new(),
            collectives: Vec::new(),
            comms: [world(), 1],
        };
        // The second communicator has all ranks, backwards.
        let mut places = Vec::new();
        for (rank, program) in (0..).zip(&mut naive.programs) {
            program.caller.split(0, u64::from(ranks - rank), 1, (ranks, ranks - 1 - rank));
            program.calls += 1;
            places.push((rank, 0));
        }
        naive.collectives.push((ranks, "MPI_Comm_split", places));
        naive
    }

    fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Number of a rank of the world in a communicator.
    fn named(&self, comm: usize, rank: u32) -> u32 {
        if comm == 0 { rank } else { self.ranks() - 1 - rank }
    }

    fn arrive(&mut self, to: u32, message: Message) {
        let open =
            self.receives[to as usize].iter_mut().find(|own| own.message.is_none() && own.takes(&message));
        match open {
            Some(own) => {
                own.message = Some(message);
                self.truth.push((message.place, own.place));
            }
            None => self.unexpected[to as usize].push(message),
        }
    }

    fn send(&mut self, random: &mut ChaCha8Rng, from: u32) {
        let to = random.random_range(0..self.ranks());
        let (comm, tag) = (random.random_range(0..2), random.random_range(0..2));
        let dest = self.named(comm, to);
        let word = self.comms[comm];
        let program = &mut self.programs[from as usize];
        let seq = if random.random_bool(0.5) {
            program.send("MPI_Send", dest, tag, word)
        } else {
            let (seq, request) = program.make("MPI_Isend", &[0, 4, double(), dest.into(), tag, word]);
            self.sends[from as usize].push(request);
            seq
        };
        self.arrive(to, Message { from, comm, tag, place: (from, seq) });
    }

    fn post(&mut self, random: &mut ChaCha8Rng, at: u32) {
        let comm = random.random_range(0..2);
        let from = random.random_bool(0.6).then(|| random.random_range(0..self.ranks()));
        let tag = random.random_bool(0.6).then(|| random.random_range(0..2));
        let source = from.map_or(ANY_SOURCE, |from| self.named(comm, from).into());
        let words = [0, 4, double(), source as u64, tag.map_or(ANY_TAG as u64, |tag| tag), self.comms[comm]];
        let (seq, request) = self.programs[at as usize].make("MPI_Irecv", &words);
        let mut posted = Posted { request, from, tag, comm, place: (at, seq), message: None };
        let first = self.unexpected[at as usize].iter().position(|message| posted.takes(message));
        if let Some(first) = first {
            let message = self.unexpected[at as usize].remove(first);
            self.truth.push((message.place, posted.place));
            posted.message = Some(message);
        }
        self.receives[at as usize].push(posted);
    }

    fn complete(&mut self, random: &mut ChaCha8Rng, at: u32) {
        let ready: Vec<usize> = (0..self.receives[at as usize].len())
            .filter(|&index| self.receives[at as usize][index].message.is_some())
            .collect();
        if random.random_bool(0.3)
            && let Some(request) = self.sends[at as usize].pop()
        {
            self.programs[at as usize].wait(request, (-1, -1));
            self.programs[at as usize].free(request);
        } else if !ready.is_empty() {
            let index = ready[random.random_range(0..ready.len())];
            let posted = self.receives[at as usize].remove(index);
            let message = posted.message.expect("it is ready");
            let told = (self.named(message.comm, message.from) as i32, message.tag as i32);
            self.programs[at as usize].wait(posted.request, told);
            self.programs[at as usize].free(posted.request);
        }
    }

    /// A blocking receive, or a probe and its receive, of some message that nothing posted before would take.
    fn receive(&mut self, random: &mut ChaCha8Rng, at: u32) {
        if self.unexpected[at as usize].is_empty() {
            return;
        }
        let from = random.random_bool(0.5).then(|| random.random_range(0..self.ranks()));
        let asked = Posted { request: 0, from, tag: None, comm: 0, place: (at, 0), message: None };
        let Some(first) = self.unexpected[at as usize].iter().position(|message| asked.takes(message)) else {
            return;
        };
        let message = self.unexpected[at as usize].remove(first);
        let told = (self.named(0, message.from), message.tag);
        let source = from.map_or(ANY_SOURCE, |from| self.named(0, from).into());
        let program = &mut self.programs[at as usize];
        let seq = if random.random_bool(0.5) {
            program.receive(source, ANY_TAG, self.comms[0], told)
        } else {
            let status = status_word(told.0 as i32, told.1 as i32);
            let seq = program.call("MPI_Mprobe", &[source as u64, ANY_TAG as u64, self.comms[0], 9, status]);
            program.call("MPI_Mrecv", &[0, 4, double(), 9, null(), status]);
            seq
        };
        self.truth.push((message.place, (at, seq)));
    }

    fn reduce(&mut self, comm: usize) {
        let word = self.comms[comm];
        let places = (0..).zip(&mut self.programs).map(|(rank, program)| (rank, program.allreduce(word)));
        let places: Vec<Place> = places.collect();
        self.collectives.push((self.ranks(), "MPI_Allreduce", places));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn messages_of_random_programs_are_those_of_a_naive_simulator(
        seed: u64, ranks in 1u32..5, steps in 0usize..120,
    ) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut naive = Naive::new(ranks);
        for _ in 0..steps {
            let at = random.random_range(0..ranks);
            match random.random_range(0..12) {
                0..4 => naive.send(&mut random, at),
                4..7 => naive.post(&mut random, at),
                7..10 => naive.complete(&mut random, at),
                10 => naive.receive(&mut random, at),
                _ => naive.reduce(random.random_range(0..2)),
            }
        }
        // All that can be completed is: sources are told by completions.
        for at in 0..ranks {
            for _ in 0..200 {
                naive.complete(&mut random, at);
            }
        }
        let open: usize = naive.receives.iter().map(Vec::len).sum();
        let Naive { programs, mut truth, mut collectives, unexpected, receives, .. } = naive;
        let mut seen = Seen::default();
        let outcome = play_all(ranks, programs.into_iter().map(Program::finish).collect(), &mut seen);
        // A receive whose message is not told takes the messages to its rank on that communicator out.
        let blind = |message: &(Place, Place), comm: usize| {
            receives[message.1.0 as usize]
                .iter()
                .any(|own| own.comm == comm && (own.from.is_none() || own.tag.is_none()))
        };
        if open == 0 {
            truth.sort_unstable();
            seen.messages.sort_unstable();
            prop_assert_eq!(&seen.messages, &truth);
            let left: usize = unexpected.iter().map(Vec::len).sum();
            let unmatched = outcome.unmatched.iter().filter(|half| !half.receives).count();
            prop_assert_eq!(unmatched, left);
        } else {
            for message in &seen.messages {
                prop_assert!(truth.contains(message), "{message:?}");
            }
            for message in truth.iter().filter(|message| !blind(message, 0) && !blind(message, 1)) {
                prop_assert!(seen.messages.contains(message), "{message:?}");
            }
        }
        collectives.sort();
        seen.collectives.sort();
        prop_assert_eq!(seen.collectives, collectives);
        prop_assert!(outcome.stuck.is_empty() && outcome.lost.is_empty(), "{outcome:?}");
    }
}
