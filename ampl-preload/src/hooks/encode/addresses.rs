//! Addresses among a call's arguments.

use ampl_agent::buffers::VARIES;
use ampl_core::mpi::{Kind, Param};
use ampl_trace::places::{UNKNOWN, may_vary};

use super::Encoder;
use crate::places::FIRST_PAGE;
use crate::thread_state::ThreadState;

impl Encoder<'_> {
    /// The record word of an address; where places are no part of the signature the mark of one, which is noted.
    #[inline(always)]
    pub(super) fn place(&mut self, address: u64) -> u64 {
        let ThreadState { process, thread, places, call_places, .. } = &mut *self.state;
        if !thread.knows_places() && address >= FIRST_PAGE && !self.plan.rest.names_memory {
            return UNKNOWN;
        }
        let word = places.word(address, &process.places, thread);
        if !self.varies || !may_vary(word) {
            return word;
        }
        call_places.push(word);
        VARIES
    }

    /// True where `base` is one of the addresses for "no array", or an array that MPI ignores.
    pub(super) fn is_no_array(&self, param: &Param, base: usize) -> bool {
        if param.kind == Kind::Status {
            return self.state.reader.ignores_status(base) && (self.failed || !self.knows_statuses());
        }
        let in_place = self.params().iter().zip(self.words).any(|(p, &word)| {
            p.kind == Kind::Buffer && p.name == "sendbuf" && word == self.state.process.abi.in_place
        });
        self.state.reader.is_no_array(base) || (in_place && param.name.starts_with('s'))
    }
}
