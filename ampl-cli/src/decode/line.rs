//! A call as a JSON line.

use ampl_core::value::Value;
use ampl_reader::sites::Frame;
use ampl_report::decode::{Place, Share};
use ampl_trace::decode::Call;
use serde::{Serialize, Serializer};

/// A call as a JSON line; the order of fields is part of the format.
#[derive(Serialize)]
pub struct JsonCall<'a> {
    /// Only where several ranks were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    seq: u64,
    r#fn: &'static str,
    #[serde(serialize_with = "named")]
    args: &'a [(&'static str, Value)],
    #[serde(serialize_with = "named")]
    out: &'a [(&'static str, Value)],
    /// Window number; none, like the times, where the window was not kept.
    window: Option<u64>,
    start_ns: Option<i64>,
    duration_ns: Option<u64>,
    site: Option<&'a str>,
    /// Only where `trace.call_path_depth` is above 1.
    #[serde(skip_serializing_if = "<[Frame]>::is_empty")]
    path: &'a [Frame],
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i64>,
    /// Under `output.verify`: whether its window would have been kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<bool>,
    /// True where the window was not drawn, and is stored because a message partner's was.
    #[serde(skip_serializing_if = "Option::is_none")]
    partner: Option<bool>,
    /// Probability that its window or a message partner's was drawn, where partners matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusion: Option<f64>,
}

impl<'a> JsonCall<'a> {
    /// A line about `call`.
    pub fn of(rank: Option<u32>, call: &'a Call, place: Place<'a>, share: Share) -> Self {
        Self {
            rank,
            seq: call.seq,
            r#fn: call.function.name(),
            args: &call.args,
            out: &call.out,
            window: call.timed.map(|timed| timed.window),
            start_ns: call.timed.map(|timed| timed.start_ns),
            duration_ns: call.timed.and_then(|timed| timed.duration_ns),
            site: place.site,
            path: place.path,
            thread: Some(call.thread).filter(|&thread| thread != 0),
            count: Some(call.count).filter(|&count| count > 1),
            error: Some(call.code).filter(|&code| code != 0),
            kept: share.kept,
            partner: Some(share.partner).filter(|&partner| partner),
            inclusion: share.inclusion,
        }
    }
}

fn named<S: Serializer>(values: &[(&'static str, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::Function;
    use ampl_trace::decode::Timed;

    const ALONE: Share = Share { kept: None, partner: false, inclusion: None };
    const PARTNER: Share = Share { kept: None, partner: true, inclusion: Some(0.4375) };

    fn at(site: Option<&str>) -> Place<'_> {
        Place { site, path: &[] }
    }

    fn call(name: &str) -> Call {
        Call {
            seq: 17,
            thread: 0,
            function: Function::by_name(name).unwrap(),
            args: vec![("count", Value::Int(4)), ("comm", Value::Name("world".into()))],
            out: Vec::new(),
            count: 1,
            code: 0,
            site: None,
            timed: Some(Timed { window: 2, start_ns: 104_213_881, duration_ns: Some(1200) }),
            terminal: 0,
        }
    }

    #[test]
    fn json_has_the_contract_s_fields_in_order() {
        let print =
            |call: &Call, site| serde_json::to_string(&JsonCall::of(None, call, at(site), ALONE)).unwrap();
        assert_eq!(
            print(&call("MPI_Send"), Some("main.c:31")),
            "{\"seq\":17,\"fn\":\"MPI_Send\",\"args\":{\"count\":4,\"comm\":\"world\"},\"out\":{},\"window\":2,\
             \"start_ns\":104213881,\"duration_ns\":1200,\"site\":\"main.c:31\"}"
        );
        let other = Call { thread: 1, count: 3, code: 5, timed: None, ..call("MPI_Iprobe") };
        assert!(print(&other, None).contains("\"window\":null,\"start_ns\":null,\"duration_ns\":null"));
        assert!(
            print(&other, None)
                .ends_with("\"duration_ns\":null,\"site\":null,\"thread\":1,\"count\":3,\"error\":5}")
        );
        let partner =
            serde_json::to_string(&JsonCall::of(None, &call("MPI_Send"), Place::default(), PARTNER)).unwrap();
        assert!(partner.ends_with("\"site\":null,\"partner\":true,\"inclusion\":0.4375}"), "{partner}");
        let marked = Share { kept: Some(false), ..ALONE };
        let marked =
            serde_json::to_string(&JsonCall::of(None, &call("MPI_Send"), Place::default(), marked)).unwrap();
        assert!(marked.ends_with("\"site\":null,\"kept\":false}"), "{marked}");
    }

    #[test]
    fn a_path_goes_from_the_root_to_the_call() {
        let frame = |function: Option<&str>, site: &str| Frame {
            function: function.map(str::to_owned),
            site: site.into(),
        };
        let path =
            [frame(Some("main"), "main.c:60"), frame(None, "libx.so+0x40"), frame(Some("swap"), "main.c:31")];
        let place = Place { path: &path, ..at(Some("main.c:31")) };
        let json = serde_json::to_string(&JsonCall::of(None, &call("MPI_Send"), place, ALONE)).unwrap();
        let expected = "\"site\":\"main.c:31\",\"path\":[{\"function\":\"main\",\"site\":\"main.c:60\"},\
                        {\"function\":null,\"site\":\"libx.so+0x40\"},\
                        {\"function\":\"swap\",\"site\":\"main.c:31\"}]}";
        assert!(json.ends_with(expected), "{json}");
    }
}
