//! Number of elements of an array argument.

use ampl_core::mpi::{Direction, Kind, Length, Traffic, ids};

use super::super::facts::{Ask, known};
use super::{Encoder, MOST};
use crate::hot_state;
use ampl_core::mpi::traffic::{Facts, Members};

impl Encoder<'_> {
    /// Number of elements; `None` where there is no array, or the number is unknown.
    pub(super) fn length(&mut self, length: Length) -> Option<usize> {
        let words = self.words;
        let communicator = |index: u8| words[usize::from(index)];
        let number = match length {
            Length::One | Length::Unknown => return None,
            Length::Param(index) => self.number(index).min(self.written(index)),
            Length::Times(index, factor) => self.number(index) * i64::from(factor),
            Length::Sum(index) => self.elements(index)?.sum(),
            Length::Last(index) => self.elements(index)?.last().unwrap_or(0),
            Length::CommSize(comm) => {
                let members = self.members(communicator(comm))?;
                // Results are scattered over the caller's own group.
                let own = self.plan.operands.traffic == Traffic::ReduceScatter;
                (if own { members.local } else { members.peers }) as i64
            }
            Length::CommSizeAtRoot(comm, root) => self.members_at_root(comm, root)?.peers as i64,
            // The communicator argument of a call that failed may be none.
            Length::InDegree(comm) | Length::OutDegree(comm) | Length::CartDims(comm)
                if self.failed && !self.is_live(communicator(comm)) =>
            {
                return None;
            }
            Length::InDegree(comm) => Ask { state: self.state }.degrees(communicator(comm)).0 as i64,
            Length::OutDegree(comm) => Ask { state: self.state }.degrees(communicator(comm)).1 as i64,
            Length::CartDims(comm) => self.state.process.cart_dims(communicator(comm)),
            Length::OutCount(index) => self.number(index).max(0),
            Length::IfFlag(index, flag) => {
                if self.number(flag) == 0 {
                    return None;
                }
                self.number(index).min(self.written(index))
            }
        };
        usize::try_from(number).ok()
    }

    /// The integers of the input array number `index`; `None` where they cannot be read.
    fn elements(&mut self, index: u8) -> Option<impl Iterator<Item = i64>> {
        let (param, base) = (&self.params()[usize::from(index)], self.words[usize::from(index)]);
        let count = self.length(param.length)?;
        if count > MOST || base == 0 || !self.can_read(param.kind, base, count) {
            return None;
        }
        let reader = self.state.reader;
        // SAFETY: the array has so many elements, which MPI has read itself, or which can be read.
        Some((0..count).map(move |at| unsafe { reader.load(param.kind, base, at) }.unwrap_or(0) as i64))
    }

    /// Members of the communicator of the parameter number `comm`, if the caller is the root; `None` elsewhere, and as
    /// [`Self::members`].
    fn members_at_root(&mut self, comm: u8, root: u8) -> Option<Members> {
        let (comm, root) = (self.words[usize::from(comm)], self.words[usize::from(root)]);
        let members = self.members(comm)?;
        let is_root =
            root as i32 == self.state.process.abi.root || members.rank == Some(u64::from(root as u32));
        is_root.then_some(members)
    }

    /// True where the caller is the root of a call with one; false where that is unknown.
    pub(super) fn is_root(&mut self) -> bool {
        let position = |name: &str| self.params().iter().position(|param| param.name == name);
        let (Some(comm), Some(root)) = (position("comm"), position("root")) else { return false };
        self.members_at_root(comm as u8, root as u8).is_some()
    }

    /// Members of the communicator; `None` where they are unknown, and MPI must not be asked.
    fn members(&mut self, comm: usize) -> Option<Members> {
        if self.failed { known(self.state, comm) } else { Some(Ask { state: self.state }.comm_now(comm)) }
    }

    /// True where MPI may be asked about `comm` after an error.
    fn is_live(&self, comm: usize) -> bool {
        known(self.state, comm).is_some() && !hot_state::are_comms_uncertain()
    }

    /// Number of elements that MPI writes of arrays whose parameter number `index` is only a limit: MPI leaves those
    /// behind them unset.
    fn written(&mut self, index: u8) -> i64 {
        let (process, words) = (self.state.process, self.words);
        let number = match self.function {
            ids::MPI_TYPE_GET_CONTENTS => {
                let [integers, addresses, _, datatypes] = process.envelope(words[0], false);
                [integers, addresses, datatypes].get(usize::from(index).wrapping_sub(1)).copied()
            }
            ids::MPI_TYPE_GET_CONTENTS_C => {
                process.envelope(words[0], true).get(usize::from(index).wrapping_sub(1)).copied()
            }
            // The length of the room: MPI overwrites it with the length it needs.
            ids::MPI_INFO_GET_STRING => self.state.before.first().map(|&room| u64::from(room as u32)),
            ids::MPI_CART_GET | ids::MPI_CART_COORDS => Some(process.cart_dims(words[0]).max(0) as u64),
            _ => None,
        };
        number.map_or(i64::MAX, |number| number as i64)
    }

    /// The value of an integer parameter, behind its address if it is an output.
    pub(super) fn number(&self, index: u8) -> i64 {
        let index = usize::from(index);
        let (param, word) = (&self.params()[index], self.words[index]);
        let wide = matches!(param.kind, Kind::Count | Kind::Aint | Kind::Offset);
        if param.direction == Direction::In {
            return if wide { word as i64 } else { i64::from(word as i32) };
        }
        // SAFETY: an output of a call that succeeded.
        unsafe { self.state.reader.load(param.kind, word, 0) }.unwrap_or(0) as i64
    }
}
