//! Sends and receives, and their channels.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::At;
use super::acts::{Mode, Payload};

/// Number of an operation.
pub type OpId = u32;

/// A channel: messages in it are received in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    /// Sender, a rank of the world.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Number of the communicator.
    pub comm: u32,
    /// Tag.
    pub tag: i64,
    /// 0; of a partitioned message one more than the number of its constructor among those of the channel.
    pub part: u32,
}

/// One side of a message.
#[derive(Clone, Debug)]
pub struct Half<S> {
    /// Thread, by its number in the job.
    pub actor: u32,
    /// The call that has posted or started it.
    pub posted: At,
    /// The call that has completed it; `None` where it was freed, or never completed.
    pub done: Option<At>,
    /// Content, or room.
    pub payload: Payload,
    /// Mode of a send.
    pub mode: Mode,
    /// True of a receive.
    pub receives: bool,
    /// Channel.
    pub channel: Channel,
    /// State of the thread when it was posted.
    pub stamp: S,
}

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no counterpart yet.
    Open,
    /// Its counterpart.
    Matched(OpId),
    /// Its counterpart cannot be known.
    Unknown,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Op<S> {
    /// Facts.
    pub half: Half<S>,
    /// State.
    pub state: State,
    /// True once the program cannot name it any more.
    pub finished: bool,
}

/// Operations by number, and those that have no counterpart by channel.
#[derive(Debug)]
pub struct Operations<S> {
    ops: Vec<Option<Op<S>>>,
    free: Vec<OpId>,
    channels: FxHashMap<Channel, VecDeque<OpId>>,
    /// Channels that are not matched from some point on.
    stopped: FxHashSet<Channel>,
    /// Receivers and communicators whose messages are not matched from some point on.
    blind: FxHashSet<(u32, u32)>,
}

impl<S> Default for Operations<S> {
    fn default() -> Self {
        Self {
            ops: Vec::new(),
            free: Vec::new(),
            channels: FxHashMap::default(),
            stopped: FxHashSet::default(),
            blind: FxHashSet::default(),
        }
    }
}

impl<S> Operations<S> {
    /// The operation of that number.
    pub fn get(&self, op: OpId) -> &Op<S> {
        self.ops[op as usize].as_ref().expect("an operation lives until both of its sides have ended")
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, op: OpId) -> &mut Op<S> {
        self.ops[op as usize].as_mut().expect("an operation lives until both of its sides have ended")
    }

    /// Adds an operation; returns it with the one that it is matched with.
    pub fn post(&mut self, half: Half<S>) -> (OpId, Option<OpId>) {
        let (channel, receives) = (half.channel, half.receives);
        let op = Op { half, state: State::Open, finished: false };
        let number = match self.free.pop() {
            Some(free) => {
                self.ops[free as usize] = Some(op);
                free
            }
            None => {
                self.ops.push(Some(op));
                self.ops.len() as OpId - 1
            }
        };
        if self.stopped.contains(&channel) || self.blind.contains(&(channel.to, channel.comm)) {
            self.get_mut(number).state = State::Unknown;
            return (number, None);
        }
        let queue = self.channels.entry(channel).or_default();
        let first = queue.front().copied();
        let other = first.filter(|&first| {
            self.ops[first as usize].as_ref().is_some_and(|op| op.half.receives != receives)
        });
        match other {
            None => queue.push_back(number),
            Some(other) => {
                queue.pop_front();
                if queue.is_empty() {
                    self.channels.remove(&channel);
                }
                self.get_mut(number).state = State::Matched(other);
                self.get_mut(other).state = State::Matched(number);
            }
        }
        (number, other)
    }

    /// Ends the matching of a channel; returns the operations that wait in it.
    pub fn stop(&mut self, channel: Channel) -> Vec<OpId> {
        self.stopped.insert(channel);
        let waiting: Vec<OpId> = self.channels.remove(&channel).unwrap_or_default().into();
        for &op in &waiting {
            self.get_mut(op).state = State::Unknown;
        }
        waiting
    }

    /// Operations whose counterpart a rank that is `lost` would have to post; they have none.
    pub fn lose(&mut self, lost: u32) -> Vec<OpId> {
        let ops = &self.ops;
        let receives = |op: OpId| ops[op as usize].as_ref().is_some_and(|op| op.half.receives);
        let of = |(channel, queue): (&Channel, &VecDeque<OpId>)| {
            let first = *queue.front()?;
            let other = if receives(first) { channel.from } else { channel.to };
            (other == lost).then_some(*channel)
        };
        let channels: Vec<Channel> = self.channels.iter().filter_map(of).collect();
        channels.into_iter().flat_map(|channel| self.stop(channel)).collect()
    }

    /// Ends the matching of all messages to a rank on a communicator; returns the operations that wait for one.
    pub fn blind(&mut self, to: u32, comm: u32) -> Vec<OpId> {
        self.blind.insert((to, comm));
        let is_it = |channel: &&Channel| (channel.to, channel.comm) == (to, comm);
        let channels: Vec<Channel> = self.channels.keys().filter(is_it).copied().collect();
        channels.into_iter().flat_map(|channel| self.stop(channel)).collect()
    }

    /// Removes an operation.
    pub fn remove(&mut self, op: OpId) -> Option<Op<S>> {
        let removed = self.ops[op as usize].take();
        if removed.is_some() {
            self.free.push(op);
        }
        removed
    }

    /// All operations that there are.
    pub fn iter(&self) -> impl Iterator<Item = &Op<S>> {
        self.ops.iter().flatten()
    }

    /// True where an operation has no counterpart yet.
    pub fn is_open(&self, op: OpId) -> bool {
        self.get(op).state == State::Open
    }
}
