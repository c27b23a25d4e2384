//! A node between a parent and children that say anything: it returns, its records ascend, and it holds
//! no more of them than it may.

use ampl_client::Node;
use ampl_core::config::Config;
use ampl_core::message::{CensusWindow, Directive, DownMessage, MessageLayout, Summary, UpMessage};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

/// Takes numbers off the front of `bytes`, zeros after the end.
fn number(bytes: &mut &[u8]) -> u64 {
    let Some((&size, rest)) = bytes.split_first() else { return 0 };
    let (head, rest) = rest.split_at(rest.len().min(usize::from(size % 9)));
    *bytes = rest;
    head.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    let plan = Plan::new(Config::default(), 30).expect("any number of ranks");
    let shape = MessageLayout::of(&plan);
    let mut node = Node::new(&plan, Rank(1));
    let children: Vec<Rank> = node.children().collect();
    let empty = Summary::empty(&plan);
    let mut rest = bytes;
    let (mut own, mut now) = (0u64, 0u64);
    // The last window of either pass.
    let mut sent = [None::<u64>; 2];
    while let Some((&action, after)) = rest.split_first() {
        rest = after;
        let mut message = Vec::new();
        match action % 8 {
            0 => {
                let last = own.saturating_add(number(&mut rest) % 100);
                node.local(WindowId(own), WindowId(last), &empty);
                own = last.saturating_add(1);
            }
            1..=3 => {
                let (first, last) = (number(&mut rest), number(&mut rest));
                let window = (first <= last).then(|| {
                    let mut window = CensusWindow::new(&shape, WindowId(first), WindowId(last));
                    window.reported = number(&mut rest);
                    window
                });
                let finished = number(&mut rest) as u32;
                UpMessage { pass: 0, finished, window }.encode(&shape, &mut message);
                let child = children[number(&mut rest) as usize % children.len()];
                let _ = node.receive_up(child, &message);
            }
            4 => {
                let update = number(&mut rest);
                let first_window = WindowId(number(&mut rest));
                let mechanism = plan.config.sampling.update_mechanism;
                let directive = Directive {
                    update,
                    first_window,
                    seed: 0,
                    mechanism,
                    strata: Vec::new(),
                    divided: Vec::new(),
                };
                DownMessage::Directive(directive).encode(&shape, &mut message);
                let _ = node.receive_down(&message);
                node.directive(WindowId(number(&mut rest)));
            }
            5 => {
                now = now.saturating_add(number(&mut rest));
                node.tick(now);
            }
            6 => {
                let length = rest.len().min(number(&mut rest) as usize % 4096).min(rest.len());
                let _ = node.receive_up(children[0], &rest[..length]);
                let _ = node.receive_down(&rest[..length]);
            }
            _ => {
                node.repeat_end();
                if let Some(bytes) = node.next_up() {
                    let message = UpMessage::decode(bytes).expect("its own message");
                    if let Some(window) = message.window {
                        let sent = &mut sent[usize::from(message.pass)];
                        assert!(sent.is_none_or(|sent| sent < window.first_window.0));
                        *sent = Some(window.last_window.0);
                    }
                }
                let _ = node.next_down(children[0]).map(<[u8]>::len);
            }
        }
    }
    let mut records = 0;
    while !node.finished() && node.next_up().is_some() {
        records += 1;
    }
    // Of either pass as many as a ring holds, and its end.
    assert!(records <= 2 * 65, "{records}");
}
