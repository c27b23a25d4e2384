//! The tree's edges over MPI: nonblocking, on a communicator of ampl's own.
//!
//! Messages are synchronous sends into receives that are posted ahead: a send completes when the
//! other side has begun to receive it, so at most one message per edge and direction waits
//! anywhere, whatever the receiver is busy with.

use std::time::{Duration, Instant};

use ampl_agent::transport::{Transport, TransportError};
use ampl_core::units::Rank;

use crate::pmpi::Pmpi;

const TAG_UP: usize = 1;
const TAG_DOWN: usize = 2;
/// Tag of what is sent when the trace is merged.
pub const TAG_MERGE: usize = 3;
const WORDS: usize = 8;

/// ampl's private communicator and what messages on it need.
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

#[derive(Debug)]
struct Edge {
    peer: Rank,
    send_tag: usize,
    receive_tag: usize,
    outgoing: Pending,
    incoming: Vec<u8>,
}

/// All edges of this rank.
#[derive(Debug)]
pub struct MpiTransport {
    channel: Channel,
    edges: Vec<Edge>,
    /// Requests of the posted receives, one per edge, packed as MPI packs handles: one call asks
    /// about all of them, because every question makes MPI look at its whole network.
    posted: Box<[u64]>,
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
            outgoing: Pending::new(out),
            incoming: vec![0; incoming],
        };
        let to_parent = parent.map(|peer| edge(peer, TAG_UP, TAG_DOWN, up, down));
        let mut edges: Vec<Edge> = to_parent.into_iter().collect();
        edges.extend(children.map(|peer| edge(peer, TAG_DOWN, TAG_UP, down, up)));
        let posted = vec![0; edges.len()].into_boxed_slice();
        let mut transport = Self { channel, edges, posted };
        for index in 0..transport.edges.len() {
            if let Err(error) = transport.post(index) {
                transport.abandon();
                return Err(error);
            }
        }
        Ok(transport)
    }

    /// Address of the posted request number `index`.
    fn request(&mut self, index: usize) -> usize {
        self.posted.as_mut_ptr() as usize + index * self.channel.handle_bytes
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
        for index in 0..self.edges.len() {
            let request = self.request(index);
            let channel = &self.channel;
            // SAFETY: a live request of ours. A receive that nothing matches can be cancelled, and
            // is then complete, so its buffer may go.
            unsafe {
                (channel.pmpi.cancel)(request);
                (channel.pmpi.wait)(request, channel.status_ignore);
            }
        }
        for edge in self.edges {
            edge.outgoing.abandon();
        }
    }

    /// Gives the edges up after an error, with all memory that MPI may still use.
    pub fn abandon(self) {
        std::mem::forget(self);
    }

    fn edge(&mut self, peer: Rank) -> Result<&mut Edge, TransportError> {
        let missing = || TransportError(format!("no edge to rank {}", peer.0));
        self.edges.iter_mut().find(|edge| edge.peer == peer).ok_or_else(missing)
    }

    /// Index of a posted receive that has completed, if one has.
    fn arrived(&mut self) -> Result<Option<usize>, TransportError> {
        let (mut index, mut flag) = (0i32, 0i32);
        let (count, requests) = (self.edges.len(), self.request(0));
        if count == 0 {
            return Ok(None);
        }
        let (index_at, flag_at) = (&raw mut index as usize, &raw mut flag as usize);
        let channel = &self.channel;
        // SAFETY: as many live requests as edges, places for ints, and an ignored status.
        let code =
            unsafe { (channel.pmpi.testany)(count, requests, index_at, flag_at, channel.status_ignore) };
        check(code, "MPI_Testany")?;
        Ok(usize::try_from(index).ok().filter(|&index| flag != 0 && index < count))
    }
}

impl Transport for MpiTransport {
    fn is_free(&mut self, peer: Rank) -> Result<bool, TransportError> {
        let channel = self.channel;
        self.edge(peer)?.outgoing.is_done(&channel)
    }

    fn send(&mut self, peer: Rank, message: &[u8]) -> Result<(), TransportError> {
        let channel = self.channel;
        let edge = self.edge(peer)?;
        edge.outgoing.send(&channel, peer, edge.send_tag, message)
    }

    fn receive(&mut self, take: &mut dyn FnMut(Rank, &[u8])) -> Result<bool, TransportError> {
        let mut any = false;
        while let Some(index) = self.arrived()? {
            let edge = &self.edges[index];
            take(edge.peer, &edge.incoming);
            self.post(index)?;
            any = true;
        }
        Ok(any)
    }
}

/// Gives up when nothing has moved for so long: another rank will never come.
const SILENCE: Duration = Duration::from_secs(600);

/// Waits for others at the end of the job, politely: cores may be shared with ranks still working.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    pause: Duration,
    /// Whether nothing moving for long means that nothing will.
    limited: bool,
}

impl Patience {
    /// Starts to wait.
    pub fn new() -> Self {
        Self { since: Instant::now(), pause: Duration::ZERO, limited: true }
    }

    /// Starts to wait for as long as it takes: for rank 0, which serves one rank after the other, and
    /// without which the launcher ends the job anyway.
    fn endless() -> Self {
        Self { limited: false, ..Self::new() }
    }

    /// Something moved: the wait starts anew.
    pub fn reset(&mut self) {
        *self = Self { limited: self.limited, ..Self::new() };
    }

    /// Pauses a little, longer each time.
    ///
    /// # Errors
    /// [`TransportError`] when nothing has moved for ten minutes.
    pub fn pause(&mut self) -> Result<(), TransportError> {
        if self.limited && self.since.elapsed() > SILENCE {
            return Err(TransportError("no other rank has been heard of for ten minutes".into()));
        }
        if self.pause.is_zero() {
            std::thread::yield_now();
            self.pause = Duration::from_micros(20);
        } else {
            std::thread::sleep(self.pause);
            self.pause = (self.pause * 2).min(Duration::from_millis(2));
        }
        Ok(())
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
        let mut pending = Pending::new(0);
        let started = pending.send(self, to, TAG_MERGE, bytes);
        self.complete(started, pending, Patience::new()).map(drop)
    }

    /// Receives exactly `bytes` bytes from `from`.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn receive(&self, from: Rank, bytes: usize) -> Result<Vec<u8>, TransportError> {
        let mut pending = Pending::new(bytes);
        let started = pending.receive(self, from, TAG_MERGE);
        self.complete(started, pending, Patience::new())
    }

    /// As [`Channel::receive`], for as long as it takes.
    ///
    /// # Errors
    /// [`TransportError`] with MPI's error code.
    pub fn await_turn(&self, from: Rank, bytes: usize) -> Result<Vec<u8>, TransportError> {
        let mut pending = Pending::new(bytes);
        let started = pending.receive(self, from, TAG_MERGE);
        self.complete(started, pending, Patience::endless())
    }

    /// Waits for a message that was started, and gives its memory back.
    fn complete(
        &self,
        started: Result<(), TransportError>,
        mut pending: Pending,
        mut patience: Patience,
    ) -> Result<Vec<u8>, TransportError> {
        let outcome = started.and_then(|()| {
            while !pending.is_done(self)? {
                patience.pause()?;
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
