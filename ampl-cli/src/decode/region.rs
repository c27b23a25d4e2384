//! An entry or exit of a region as a JSON line.

use ampl_core::device_call::DeviceCall;
use ampl_reader::{Edge, RegionEvent};
use serde::Serialize;

/// An entry or exit as a JSON line; the order of fields is part of the format.
#[derive(Serialize)]
pub struct JsonRegion<'a> {
    /// Only where several ranks were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    /// Number of the next call.
    seq: u64,
    region: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    enter: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<bool>,
    /// Window number; none, like the moment, where the window was not kept.
    window: Option<u64>,
    at_ns: Option<i64>,
    /// True where nothing was recorded when it was passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    unseen: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<DeviceCall<'a>>,
}

impl<'a> JsonRegion<'a> {
    /// A line about `event` of the region `name`.
    pub fn of(rank: Option<u32>, name: &'a str, edge: Edge, event: &RegionEvent) -> Self {
        let flag = |set: bool| set.then_some(true);
        Self {
            rank,
            seq: event.seq,
            region: name,
            enter: flag(edge == Edge::Enter),
            exit: flag(edge == Edge::Exit),
            window: event.timed.map(|moment| moment.window),
            at_ns: event.timed.map(|moment| moment.at_ns),
            unseen: flag(event.unseen),
            thread: Some(event.thread).filter(|&thread| thread != 0),
            class: DeviceCall::parse(name).map(|_| "device"),
            device: DeviceCall::parse(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use ampl_reader::{Moment, Region};

    use super::*;

    fn event(timed: Option<Moment>, unseen: bool, thread: u32) -> RegionEvent {
        RegionEvent { seq: 17, thread, region: Region::Named("STEP".into()), timed, unseen, terminal: 3 }
    }

    #[test]
    fn json_has_the_contract_s_fields_in_order() {
        let print = |rank, edge, event: &RegionEvent| {
            serde_json::to_string(&JsonRegion::of(rank, "STEP", edge, event)).unwrap()
        };
        let timed = Some(Moment { window: 2, at_ns: 104_213_881 });
        assert_eq!(
            print(None, Edge::Enter, &event(timed, false, 0)),
            "{\"seq\":17,\"region\":\"STEP\",\"enter\":true,\"window\":2,\"at_ns\":104213881}"
        );
        assert_eq!(
            print(Some(4), Edge::Exit, &event(None, true, 1)),
            "{\"rank\":4,\"seq\":17,\"region\":\"STEP\",\"exit\":true,\"window\":null,\"at_ns\":null,\
             \"unseen\":true,\"thread\":1}"
        );
    }
}
