//! The tree's edges over MPI: nonblocking, on a communicator of ampl's own.
//!
//! Messages are synchronous sends into receives that are posted ahead: a send completes when the
//! other side has begun to receive it, so at most one per edge and direction waits
//! anywhere, whatever the receiver is busy with. Messages that gather meanwhile are sent together: a window takes
//! several, and a program may call MPI, so that the tree can be polled, once a window only.

use std::collections::VecDeque;

use ampl_agent::transport::{Transport, TransportError};
use ampl_core::units::Rank;

use crate::backoff::Backoff;
use crate::batch::{LENGTH, messages, room};
use crate::pmpi::Pmpi;

const TAG_UP: usize = 1;
const TAG_DOWN: usize = 2;
/// Tag of messages that merge the trace.
pub const TAG_MERGE: usize = 3;
const WORDS: usize = 8;

/// ampl's private communicator and constants for its messages.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// The functions.
    pub pmpi: &'static Pmpi,
    /// The communicator, a duplicate of `MPI_COMM_WORLD` that returns errors.
    pub comm: usize,
    /// `MPI_BYTE`
    pub byte: usize,
    /// `MPI_STATUS_IGNORE`
    pub status_ignore: usize,
    /// `MPI_STATUSES_IGNORE`
    pub statuses_ignore: usize,
    /// `MPI_REQUEST_NULL`
    pub request_null: usize,
    /// Bytes of a handle in an array.
    pub handle_bytes: usize,
}

fn check(code: i32, what: &str) -> Result<(), TransportError> {
    if code == 0 { Ok(()) } else { Err(TransportError(format!("{what} returned {code}"))) }
}

/// A message under way, with the memory that MPI reads or writes.
#[derive(Debug)]
struct Pending {
    request: Box<[u64; WORDS]>,
    buffer: Vec<u8>,
    busy: bool,
}

impl Pending {
    fn new(bytes: usize) -> Self {
        Self { request: Box::new([0; WORDS]), buffer: vec![0; bytes], busy: false }
    }

    fn handle(&mut self) -> usize {
        self.request.as_mut_ptr() as usize
    }

    fn is_done(&mut self, channel: &Channel) -> Result<bool, TransportError> {
        if self.busy {
            let mut flag = 0i32;
            let (request, flag_at) = (self.handle(), &raw mut flag as usize);
            // SAFETY: a live request of ours and a place for an int; the status is ignored.
            check(unsafe { (channel.pmpi.test)(request, flag_at, channel.status_ignore) }, "MPI_Test")?;
            self.busy = flag == 0;
        }
        Ok(!self.busy)
    }

    fn send(
        &mut self,
        channel: &Channel,
        to: Rank,
        tag: usize,
        message: &[u8],
    ) -> Result<(), TransportError> {
        self.buffer.clear();
        self.buffer.extend_from_slice(message);
        let (at, bytes) = (self.buffer.as_ptr() as usize, self.buffer.len());
        let request = self.handle();
        let to = to.0 as usize;
        // SAFETY: the buffer stays in place until the request is complete: `send` comes only after.
        let code = unsafe { (channel.pmpi.issend)(at, bytes, channel.byte, to, tag, channel.comm, request) };
        self.busy = true;
        check(code, "MPI_Issend")
    }

    fn receive(&mut self, channel: &Channel, from: Rank, tag: usize) -> Result<(), TransportError> {
        let (at, bytes) = (self.buffer.as_mut_ptr() as usize, self.buffer.len());
        let request = self.handle();
        let from = from.0 as usize;
        // SAFETY: the buffer is not touched until the request is complete.
        let code = unsafe { (channel.pmpi.irecv)(at, bytes, channel.byte, from, tag, channel.comm, request) };
        self.busy = true;
        check(code, "MPI_Irecv")
    }

    /// Gives the message up. Its memory stays where it is for ever: MPI may still read or write it,
    /// and a send that nobody takes cannot be waited for, cancelled or not.
    fn abandon(self) {
        if self.busy {
            std::mem::forget(self);
        }
    }
}

/// Message of a rank that takes no further part: no message of the tree is so long.
const FAREWELL: [u8; LENGTH] = [0xFF; LENGTH];

#[derive(Debug)]
struct Edge {
    peer: Rank,
    send_tag: usize,
    receive_tag: usize,
    outgoing: Vec<u8>,
    /// Bytes of a message to the peer.
    outgoing_bytes: usize,
    /// True while the message in `outgoing` is under way.
    busy: bool,
    incoming: Vec<u8>,
    /// True where the peer takes no further part.
    lost: bool,
}

/// All edges of this rank.
///
/// One call tests all messages under way, both ways, once per poll: every test makes MPI poll its whole network, and
/// give its processor away where ranks share it and nothing has come.
#[derive(Debug)]
pub struct MpiTransport {
    channel: Channel,
    edges: Vec<Edge>,
    /// Requests of the posted receives, one per edge, then of the sends, packed as MPI packs handles.
    requests: Box<[u64]>,
    /// Which of them have completed.
    completed: Box<[i32]>,
}

impl MpiTransport {
    /// Edges to `parent` and `children` with a receive posted on each. `up` and `down` are the
    /// bytes of messages in that direction.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code.
    pub fn new(
        channel: Channel,
        parent: Option<Rank>,
        children: impl Iterator<Item = Rank>,
        (up, down): (usize, usize),
    ) -> Result<Self, TransportError> {
        let edge = |peer, send_tag, receive_tag, out, incoming| Edge {
            peer,
            send_tag,
            receive_tag,
            outgoing: Vec::with_capacity(room(out)),
            outgoing_bytes: out,
            busy: false,
            incoming: vec![0; room(incoming)],
            lost: false,
        };
        let to_parent = parent.map(|peer| edge(peer, TAG_UP, TAG_DOWN, up, down));
        let mut edges: Vec<Edge> = to_parent.into_iter().collect();
        edges.extend(children.map(|peer| edge(peer, TAG_DOWN, TAG_UP, down, up)));
        let count = 2 * edges.len();
        let (requests, completed) = (vec![0; count].into_boxed_slice(), vec![0; count].into_boxed_slice());
        let mut transport = Self { channel, edges, requests, completed };
        for index in 0..count {
            transport.clear(index);
        }
        for index in 0..transport.edges.len() {
            if let Err(error) = transport.post(index) {
                transport.abandon();
                return Err(error);
            }
        }
        Ok(transport)
    }

    /// Address of the request number `index`.
    fn request(&mut self, index: usize) -> usize {
        self.requests.as_mut_ptr() as usize + index * self.channel.handle_bytes
    }

    /// Makes the request number `index` null.
    fn clear(&mut self, index: usize) {
        let null = self.channel.request_null.to_ne_bytes();
        let bytes = self.channel.handle_bytes;
        // Little-endian: a narrow handle is in the first bytes of a word.
        let at = self.request(index) as *mut u8;
        // SAFETY: as many handles have their place there as there are words, and none is wider than one.
        unsafe { std::ptr::copy_nonoverlapping(null.as_ptr(), at, bytes) };
    }

    fn post(&mut self, index: usize) -> Result<(), TransportError> {
        let request = self.request(index);
        let (channel, edge) = (&self.channel, &mut self.edges[index]);
        let (at, bytes) = (edge.incoming.as_mut_ptr() as usize, edge.incoming.len());
        let (from, tag) = (edge.peer.0 as usize, edge.receive_tag);
        // SAFETY: the buffer is not touched until the request is complete.
        let code = unsafe { (channel.pmpi.irecv)(at, bytes, channel.byte, from, tag, channel.comm, request) };
        check(code, "MPI_Irecv")
    }

    /// Withdraws the receives that are still posted, at the end of a job that has settled.
    pub fn close(mut self) {
        for index in (0..self.edges.len()).filter(|&index| !self.edges[index].lost).collect::<Vec<_>>() {
            let request = self.request(index);
            let channel = &self.channel;
            // SAFETY: a live request of ours. A receive that nothing matches can be cancelled, and
            // is then complete, so its buffer may go.
            unsafe {
                (channel.pmpi.cancel)(request);
                (channel.pmpi.wait)(request, channel.status_ignore);
            }
        }
        if self.edges.iter().any(|edge| edge.busy) {
            std::mem::forget(self);
        }
    }

    /// Gives the edges up after an error, with all memory that MPI may still use.
    pub fn abandon(self) {
        std::mem::forget(self);
    }

    /// As [`MpiTransport::abandon`], and notifies those at the other ends, so that they do not wait for this rank.
    pub fn announce_departure(self) {
        for edge in self.edges.iter().filter(|edge| !edge.lost) {
            self.channel.throw(edge.peer, edge.send_tag, FAREWELL.to_vec());
        }
        self.abandon();
    }

    /// Sends all messages that were passed to it since the last call; returns true if there were any.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code.
    pub fn flush(&mut self) -> Result<bool, TransportError> {
        let mut any = false;
        for index in 0..self.edges.len() {
            if self.edges[index].busy || self.edges[index].outgoing.is_empty() {
                continue;
            }
            any = true;
            let request = self.request(self.edges.len() + index);
            let (channel, edge) = (&self.channel, &mut self.edges[index]);
            edge.outgoing.extend_from_slice(&[0; LENGTH]);
            let (at, bytes) = (edge.outgoing.as_ptr() as usize, edge.outgoing.len());
            let (to, tag) = (edge.peer.0 as usize, edge.send_tag);
            // SAFETY: the buffer is not touched until the request is complete.
            let code =
                unsafe { (channel.pmpi.issend)(at, bytes, channel.byte, to, tag, channel.comm, request) };
            edge.busy = true;
            check(code, "MPI_Issend")?;
        }
        Ok(any)
    }

    /// A rank at another end that takes no further part, if there is one.
    pub fn lost(&self) -> Option<Rank> {
        self.edges.iter().find(|edge| edge.lost).map(|edge| edge.peer)
    }

    fn edge(&mut self, peer: Rank) -> Result<usize, TransportError> {
        let missing = || TransportError(format!("no edge to rank {}", peer.0));
        self.edges.iter().position(|edge| edge.peer == peer).ok_or_else(missing)
    }

    /// Polls all requests. Returns how many have completed since the last call; their numbers are in `completed`.
    fn look(&mut self) -> Result<usize, TransportError> {
        if self.edges.is_empty() {
            return Ok(0);
        }
        let (count, requests) = (self.completed.len(), self.request(0));
        let mut done = 0i32;
        let (done_at, numbers) = (&raw mut done as usize, self.completed.as_mut_ptr() as usize);
        let channel = &self.channel;
        // SAFETY: as many requests as said, live or null, places for an int and for as many, ignored statuses.
        let code =
            unsafe { (channel.pmpi.testsome)(count, requests, done_at, numbers, channel.statuses_ignore) };
        check(code, "MPI_Testsome")?;
        // Negative where all are null.
        Ok(usize::try_from(done).unwrap_or(0).min(count))
    }
}

impl Transport for MpiTransport {
    /// As of the last call of [`Transport::receive`]: nothing is under way, and another message fits beside those that
    /// wait for [`MpiTransport::flush`].
    fn is_free(&mut self, peer: Rank) -> Result<bool, TransportError> {
        let index = self.edge(peer)?;
        let edge = &self.edges[index];
        let left = room(edge.outgoing_bytes).saturating_sub(edge.outgoing.len() + LENGTH);
        Ok(!edge.busy && !edge.lost && left >= LENGTH + edge.outgoing_bytes)
    }

    fn send(&mut self, peer: Rank, message: &[u8]) -> Result<(), TransportError> {
        let index = self.edge(peer)?;
        let outgoing = &mut self.edges[index].outgoing;
        outgoing.extend_from_slice(&(message.len() as u32).to_le_bytes());
        outgoing.extend_from_slice(message);
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(Rank, &[u8])) -> Result<bool, TransportError> {
        let (done, edges) = (self.look()?, self.edges.len());
        for at in 0..done {
            let Ok(index) = usize::try_from(self.completed[at]) else { continue };
            if index >= edges {
                if let Some(edge) = self.edges.get_mut(index - edges) {
                    edge.busy = false;
                    edge.outgoing.clear();
                }
                continue;
            }
            let edge = &mut self.edges[index];
            if edge.incoming.starts_with(&FAREWELL) {
                edge.lost = true;
                continue;
            }
            messages(&edge.incoming).for_each(|message| take(edge.peer, message));
            self.post(index)?;
        }
        Ok(done > 0)
    }
}

impl Channel {
    /// Rank 0's `bytes` on every rank: only inside `MPI_Init`, where the application is in a
    /// collective of its own. `None` where MPI refuses.
    pub fn broadcast(&self, bytes: &mut [u8]) -> Option<()> {
        let at = bytes.as_mut_ptr() as usize;
        // SAFETY: as many bytes as there are, on every rank of our own communicator.
        let code = unsafe { (self.pmpi.bcast)(at, bytes.len(), self.byte, 0, self.comm) };
        (code == 0).then_some(())
    }

    /// Sends `bytes` to `to` and waits, politely, until they are on their way.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code, or after ten minutes without a taker.
    pub fn send(&self, to: Rank, bytes: &[u8]) -> Result<(), TransportError> {
        let mut outbox = Outbox::new(self);
        outbox.put(to, bytes)?;
        outbox.wait(0)
    }

    /// Sends `bytes` to `to` and leaves them to MPI: no receiver is waited for.
    pub fn throw(&self, to: Rank, tag: usize, bytes: Vec<u8>) {
        let (bytes, mut request) = (bytes.leak(), Box::new([0u64; WORDS]));
        let (at, count, request_at) = (bytes.as_ptr() as usize, bytes.len(), request.as_mut_ptr() as usize);
        // SAFETY: memory that is never freed, neither the message's nor the request's.
        unsafe { (self.pmpi.isend)(at, count, self.byte, to.0 as usize, tag, self.comm, request_at) };
        std::mem::forget(request);
    }

    /// Receives exactly `bytes` bytes from `from`.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn receive(&self, from: Rank, bytes: usize) -> Result<Vec<u8>, TransportError> {
        let mut pending = Pending::new(bytes);
        let started = pending.receive(self, from, TAG_MERGE);
        self.complete(started, pending, Backoff::new())
    }

    /// As [`Channel::receive`], for a message on its way or about to be: the wait has no pauses.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn receive_soon(&self, from: Rank, bytes: usize) -> Result<Vec<u8>, TransportError> {
        let mut pending = Pending::new(bytes);
        let started = pending.receive(self, from, TAG_MERGE);
        self.complete(started, pending, Backoff::short())
    }

    /// As [`Channel::receive`], for as long as it takes.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code.
    pub fn await_turn(&self, from: Rank, bytes: usize) -> Result<Vec<u8>, TransportError> {
        let mut pending = Pending::new(bytes);
        let started = pending.receive(self, from, TAG_MERGE);
        self.complete(started, pending, Backoff::endless())
    }

    /// Waits for a message that was started, and gives its memory back.
    fn complete(
        &self,
        started: Result<(), TransportError>,
        mut pending: Pending,
        mut backoff: Backoff,
    ) -> Result<Vec<u8>, TransportError> {
        let outcome = started.and_then(|()| {
            while !pending.is_done(self)? {
                backoff.pause()?;
            }
            Ok(())
        });
        match outcome {
            Ok(()) => Ok(pending.buffer),
            Err(error) => {
                pending.abandon();
                Err(error)
            }
        }
    }
}

/// Messages that are sent together and waited for together: receivers poll only every so often, and one wait for many
/// is as long as one for each.
#[derive(Debug)]
pub struct Outbox<'a> {
    channel: &'a Channel,
    /// The eldest first.
    under_way: VecDeque<Pending>,
}

impl<'a> Outbox<'a> {
    /// An outbox with nothing under way.
    pub fn new(channel: &'a Channel) -> Self {
        Self { channel, under_way: VecDeque::new() }
    }

    /// Sends `bytes` to `to`; they are copied.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code.
    pub fn put(&mut self, to: Rank, bytes: &[u8]) -> Result<(), TransportError> {
        let mut pending = Pending::new(0);
        let started = pending.send(self.channel, to, TAG_MERGE, bytes);
        self.under_way.push_back(pending);
        started
    }

    /// Waits, politely, until at most `most` messages have not been taken.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code, or after ten minutes without a taker.
    pub fn wait(&mut self, most: usize) -> Result<(), TransportError> {
        let mut backoff = Backoff::new();
        while self.under_way.len() > most {
            if self.under_way[0].is_done(self.channel)? {
                self.under_way.pop_front();
                backoff.reset();
            } else {
                backoff.pause()?;
            }
        }
        Ok(())
    }
}

impl Drop for Outbox<'_> {
    fn drop(&mut self) {
        self.under_way.drain(..).for_each(Pending::abandon);
    }
}
