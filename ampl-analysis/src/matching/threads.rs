//! Sends, receives and collectives that several threads of a rank may make in the same channel: their order is not
//! known.

use super::acts::{Act, Begin, Receive, Terminal};
use super::call::Peer;

/// Use of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Send(u64, Peer, i64),
    Receive(u64, Peer, Option<i64>),
    Collective(u64),
}

impl Use {
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Send(comm, to, tag), Self::Send(other, peer, label)) => {
                (comm, to, tag) == (other, peer, label)
            }
            (Self::Receive(comm, from, tag), Self::Receive(other, peer, label)) => {
                let same_rank = from == peer || from == Peer::Any || peer == Peer::Any;
                comm == other && same_rank && (tag == label || tag.is_none() || label.is_none())
            }
            (Self::Collective(comm), Self::Collective(other)) => comm == other,
            _ => false,
        }
    }
}

fn uses(terminal: &Terminal) -> Vec<Use> {
    let receive = |receive: &Receive| Use::Receive(receive.comm, receive.from, receive.tag);
    match &terminal.act {
        Act::Blocking(begin) | Act::Immediate(begin, _) | Act::Prepare(begin, _) => match begin {
            Begin::Send(send) | Begin::PartSend(send) => vec![Use::Send(send.comm, send.to, send.tag)],
            Begin::Receive(one) | Begin::PartReceive(one) => vec![receive(one)],
            Begin::Both(send, one) => vec![Use::Send(send.comm, send.to, send.tag), receive(one)],
            Begin::Collective(own) => vec![Use::Collective(own.comm)],
            Begin::Other => Vec::new(),
        },
        Act::Take(one) => vec![receive(one)],
        _ => Vec::new(),
    }
}

/// For each terminal of each thread of a rank: true where another thread may use the same channel.
pub fn contested(threads: &[Vec<Terminal>]) -> Vec<Vec<bool>> {
    if threads.len() < 2 {
        return threads.iter().map(|thread| vec![false; thread.len()]).collect();
    }
    let distinct = |thread: &Vec<Terminal>| {
        let mut all: Vec<Use> = Vec::new();
        for used in thread.iter().flat_map(uses) {
            if !all.contains(&used) {
                all.push(used);
            }
        }
        all
    };
    let all: Vec<Vec<Use>> = threads.iter().map(distinct).collect();
    let of = |(number, thread): (usize, &Vec<Terminal>)| {
        let others =
            || all.iter().enumerate().filter(move |(other, _)| *other != number).flat_map(|(_, uses)| uses);
        let meets =
            |terminal: &Terminal| uses(terminal).iter().any(|own| others().any(|&other| own.meets(other)));
        thread.iter().map(meets).collect()
    };
    threads.iter().enumerate().map(of).collect()
}
