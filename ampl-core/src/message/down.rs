//! Messages down the tree.

use super::partial::MessageLayout;
use super::retrospective::{self, Reference, RetrospectiveDecision};
use super::steps::{MOST_NAMED, StepAnnouncement, StepCall};
use super::stratification::StratifiedGroup;
use super::wire::{Reader, Writer};
use super::{
    KIND_DIRECTIVE, KIND_DONE, KIND_REFERENCE, KIND_RETROSPECTIVE, KIND_STEPS, MessageError, VERSION,
    expect_kind,
};
use crate::config::Mechanism;
use crate::mpi::FUNCTION_COUNT;
use crate::units::WindowId;

/// The client's decision: which share of which ranks keeps its windows from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// Update interval it was made for; draws are keyed by it.
    pub update: u64,
    /// First window it applies to. A rank that learns of it later keeps to the previous one
    /// until then.
    pub first_window: WindowId,
    /// Seed of every draw.
    pub seed: u64,
    /// Mechanism that draws ranks.
    pub mechanism: Mechanism,
    /// One entry per (group, stratum), in the plan's order.
    pub strata: Vec<StratumDirective>,
    /// One per group that is to be divided.
    pub divided: Vec<StratifiedGroup>,
}

/// A directive's part for one stratum of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StratumDirective {
    /// Index of the group in the plan.
    pub group: u16,
    /// Stratum of the group.
    pub stratum: u16,
    /// m: ranks kept, pinned ones included. Expected number under `global`.
    pub size: u32,
    /// Inclusion probability of the ranks that are not pinned, in [0, 1].
    pub probability: f64,
    /// Version of the policy: the number of directives before this one.
    pub policy: u32,
}

impl Directive {
    /// The parts for the strata of that group.
    pub fn of_group(&self, group: u16) -> impl Iterator<Item = &StratumDirective> {
        self.strata.iter().filter(move |part| part.group == group)
    }

    /// Stratification of that group, if it is drawn from by strata.
    pub fn divided(&self, group: u16) -> Option<&StratifiedGroup> {
        self.divided.iter().find(|divided| divided.group == group && divided.counts.len() > 1)
    }
}

/// Message from a node of the tree to its children.
#[derive(Clone, Debug, PartialEq)]
pub enum DownMessage {
    /// The newest decision.
    Directive(Directive),
    /// Reference by which ranks bin themselves.
    Reference(Reference),
    /// Retrospective decision about a window.
    Retrospective(RetrospectiveDecision),
    /// Windows follow the program's steps.
    Steps(StepAnnouncement),
    /// Every rank has finished; nothing follows.
    Done,
}

impl DownMessage {
    pub(super) const HEADER: usize = 8 + 3 * 8;
    const STRATUM: usize = 2 + 2 + 4 + 4 + 8;
    const STEP_CALL: usize = 2 + 8 + 8;

    /// Bytes of every down message between nodes of that shape.
    pub fn encoded_len(shape: &MessageLayout) -> usize {
        let retrospective = shape.retrospective.as_ref().map_or(0, retrospective::payload);
        let more = shape.divisions.as_ref();
        let more = more.map_or(0, |more| more.more_strata() * Self::STRATUM + more.down_payload());
        let steps = if shape.steps { MOST_NAMED * Self::STEP_CALL } else { 0 };
        Self::HEADER + retrospective.max(Self::strata_payload(shape.strata()) + more).max(steps)
    }

    pub(super) fn strata_payload(strata: usize) -> usize {
        strata * Self::STRATUM
    }

    /// Appends the message, [`DownMessage::encoded_len`] bytes, little-endian.
    pub fn encode(&self, shape: &MessageLayout, buffer: &mut Vec<u8>) {
        let mut to = Writer(buffer);
        let end = to.0.len() + Self::encoded_len(shape);
        match self {
            Self::Done => {
                to.bytes(&[VERSION, KIND_DONE, 0, 0]);
                to.u16(shape.strata() as u16);
            }
            Self::Reference(reference) => {
                to.bytes(&[VERSION, KIND_REFERENCE, 0, 0]);
                let retrospective =
                    shape.retrospective.as_ref().expect("only retrospective plans have references");
                to.u16(reference.groups.len() as u16);
                to.u16(retrospective.guides.len() as u16);
                to.u64(reference.first_window.0);
                to.u64(reference.last_window.0);
                to.u64(0);
                reference.encode(retrospective, &mut to);
            }
            Self::Retrospective(decision) => {
                to.bytes(&[VERSION, KIND_RETROSPECTIVE, 0, 0]);
                to.u16(decision.groups.len() as u16);
                to.u16(0);
                to.u64(decision.policy.into());
                to.u64(decision.window.0);
                to.u64(decision.seed);
                decision.encode(&mut to);
            }
            Self::Steps(announcement) => {
                to.bytes(&[VERSION, KIND_STEPS]);
                to.u16(announcement.timeout_s);
                to.u16(announcement.calls.len() as u16);
                to.u16(announcement.every);
                to.u64(announcement.per_step.into());
                to.u64(announcement.window.0);
                to.u64(0);
                for (call, visit) in &announcement.calls {
                    to.u16(call.function);
                    to.u64(call.path);
                    to.u64(*visit);
                }
            }
            Self::Directive(directive) => {
                to.bytes(&[VERSION, KIND_DIRECTIVE, 0]);
                to.bytes(&[mechanism_byte(directive.mechanism)]);
                to.u16(directive.strata.len() as u16);
                to.u16(directive.divided.len() as u16);
                to.u64(directive.update);
                to.u64(directive.first_window.0);
                to.u64(directive.seed);
                for part in &directive.strata {
                    to.u16(part.group);
                    to.u16(part.stratum);
                    to.u32(part.size);
                    to.u32(part.policy);
                    to.f64(part.probability);
                }
                directive.divided.iter().for_each(|divided| divided.encode(&mut to));
            }
        }
        to.0.resize(end, 0);
    }

    /// The message in `bytes`, which may be hostile.
    ///
    /// # Errors
    /// [`MessageError`] naming the first thing wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut from = Reader::new(bytes, Self::HEADER)?;
        let kinds = [KIND_DIRECTIVE, KIND_DONE, KIND_REFERENCE, KIND_RETROSPECTIVE, KIND_STEPS];
        let kind = expect_kind(&mut from, &kinds)?;
        let (low, mechanism) = (from.u8(), from.u8());
        let (strata, guides) = (from.u16(), from.u16());
        let (update, first_window, seed) = (from.u64(), WindowId(from.u64()), from.u64());
        match kind {
            KIND_REFERENCE => {
                let windows = (WindowId(update), first_window);
                return Reference::decode(&mut from, (strata, guides), windows).map(Self::Reference);
            }
            KIND_RETROSPECTIVE => {
                let policy = u32::try_from(update).map_err(|_| MessageError::Value { field: "policy" })?;
                return RetrospectiveDecision::decode(&mut from, strata, (first_window, policy, seed))
                    .map(Self::Retrospective);
            }
            KIND_STEPS => {
                from.expect_padded(usize::from(strata) * Self::STEP_CALL)?;
                let mut calls = Vec::with_capacity(usize::from(strata));
                for _ in 0..strata {
                    let call = StepCall { function: from.u16(), path: from.u64() };
                    calls.push((call, from.u64()));
                }
                let are_known = calls.iter().all(|of| usize::from(of.0.function) < FUNCTION_COUNT);
                let per_step = u16::try_from(update).unwrap_or(0);
                if guides == 0 || per_step == 0 || calls.is_empty() || calls.len() > MOST_NAMED || !are_known
                {
                    return Err(MessageError::Value { field: "steps" });
                }
                let timeout_s = u16::from_le_bytes([low, mechanism]);
                let (window, every) = (first_window, guides);
                return Ok(Self::Steps(StepAnnouncement { calls, window, every, per_step, timeout_s }));
            }
            KIND_DONE => from.expect_padded(usize::from(strata) * Self::STRATUM)?,
            _ => from.expect_some(usize::from(strata) * Self::STRATUM)?,
        }
        if kind == KIND_DONE {
            if guides != 0 {
                return Err(MessageError::Value { field: "padding" });
            }
            return Ok(Self::Done);
        }
        let mechanism = mechanism_of(mechanism)?;
        let mut parts = Vec::with_capacity(usize::from(strata));
        for _ in 0..strata {
            let (group, stratum) = (from.u16(), from.u16());
            let (size, policy, probability) = (from.u32(), from.u32(), from.f64());
            if !(0.0..=1.0).contains(&probability) {
                return Err(MessageError::Value { field: "probability" });
            }
            parts.push(StratumDirective { group, stratum, size, probability, policy });
        }
        let divided = (0..guides).map(|_| StratifiedGroup::decode(&mut from)).collect::<Result<_, _>>()?;
        from.expect_padded(0)?;
        Ok(Self::Directive(Directive { update, first_window, seed, mechanism, strata: parts, divided }))
    }
}

fn mechanism_byte(mechanism: Mechanism) -> u8 {
    match mechanism {
        Mechanism::Subset => 0,
        Mechanism::Global => 1,
    }
}

fn mechanism_of(byte: u8) -> Result<Mechanism, MessageError> {
    match byte {
        0 => Ok(Mechanism::Subset),
        1 => Ok(Mechanism::Global),
        _ => Err(MessageError::Value { field: "mechanism" }),
    }
}
