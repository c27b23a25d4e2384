//! A call as a line: for people, or as JSON.

use ampl_core::mpi::constants::{AbiFamily, Set};
use ampl_core::value::Value;
use ampl_trace::decode::{Call, Timed};
use serde::{Serialize, Serializer};

use super::Share;
use ampl_reader::sites::Frame;
use ampl_report::human;

/// Place of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    pub site: Option<&'a str>,
    /// From `main` to the call; empty where paths are not told apart.
    pub path: &'a [Frame],
}

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

/// A moment, from nanoseconds since T0: `+0.104213881 s`.
pub fn moment(at_ns: i64) -> String {
    let sign = if at_ns < 0 { '-' } else { '+' };
    let (seconds, nanos) = (at_ns.unsigned_abs() / 1_000_000_000, at_ns.unsigned_abs() % 1_000_000_000);
    format!("{sign}{seconds}.{nanos:09} s")
}

/// `   17  w2  +0.104213881 s   1.20 us  MPI_Send(buf=0x7f10, count=4) -> …  @main.c:31`
pub fn text(call: &Call, place: Place<'_>, share: Share, family: Option<AbiFamily>) -> String {
    let duration = call.timed.and_then(|timed| timed.duration_ns);
    let duration = duration.map_or("-".into(), |nanos| human::duration(nanos as f64));
    let window = call.timed.map_or("-".into(), |timed| format!("w{}", timed.window));
    let start = call.timed.map_or("-".into(), |Timed { start_ns, .. }| moment(start_ns));
    let arguments = if call.lacks_arguments() { "?".into() } else { join(&call.args) };
    let mut line = format!("{:>7}  {window:<5} {start:>15}  {duration:>8}  ", call.seq);
    line += &format!("{}({arguments})", call.function.name());
    if call.code != 0 {
        let name = family.and_then(|family| Set::ErrorClass.name(family, call.code));
        line += " -> error ";
        line += &name.map_or_else(|| call.code.to_string(), str::to_owned);
    }
    if !call.out.is_empty() {
        line += if call.code == 0 { " -> " } else { ", " };
        line += &join(&call.out);
    }
    if call.count > 1 {
        line += &format!("  x{}", call.count);
    }
    if call.thread != 0 {
        line += &format!("  thread {}", call.thread);
    }
    if let Some(site) = place.site {
        line += &format!("  @{site}");
    }
    if !place.path.is_empty() {
        line += "  in ";
        line += &place.path.iter().map(Frame::label).collect::<Vec<_>>().join(" > ");
    }
    if share.kept == Some(false) {
        line += "  not kept";
    }
    if share.partner {
        line += "  for a partner";
    }
    line
}

fn join(values: &[(&'static str, Value)]) -> String {
    values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::Function;

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
    fn text_shows_the_same() {
        let line = text(&call("MPI_Send"), at(Some("main.c:31")), ALONE, None);
        assert!(line.contains("17  w2"), "{line}");
        assert!(
            line.ends_with("+0.104213881 s   1.20 us  MPI_Send(count=4, comm=world)  @main.c:31"),
            "{line}"
        );
        let polled =
            Call { out: vec![("flag", Value::Bool(false))], count: 9, thread: 2, ..call("MPI_Iprobe") };
        assert!(text(&polled, Place::default(), ALONE, None).ends_with(" -> flag=false  x9  thread 2"));
        let failed = Call { code: 15, args: Vec::new(), ..call("MPI_Send") };
        assert!(text(&failed, Place::default(), ALONE, None).ends_with("MPI_Send(?) -> error 15"));
        let cut = Call { out: vec![("status", Value::Status { source: 3, tag: 9 })], ..failed };
        assert!(
            text(&cut, Place::default(), ALONE, None).ends_with(" -> error 15, status={source: 3, tag: 9}")
        );
        let timed = Some(Timed { window: 0, start_ns: -1_500_000_000, duration_ns: None });
        let init = Call { args: Vec::new(), timed, ..call("MPI_Finalize") };
        assert!(
            text(&init, Place::default(), ALONE, None).contains("-1.500000000 s         -  MPI_Finalize()"),
            "{}",
            text(&init, Place::default(), ALONE, None)
        );
        assert!(
            text(&call("MPI_Send"), at(Some("main.c:31")), PARTNER, None)
                .ends_with("  @main.c:31  for a partner")
        );
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
        let line = text(&call("MPI_Send"), place, PARTNER, None);
        assert!(line.ends_with("  @main.c:31  in main > libx.so+0x40 > swap  for a partner"), "{line}");
        let json = serde_json::to_string(&JsonCall::of(None, &call("MPI_Send"), place, ALONE)).unwrap();
        let expected = "\"site\":\"main.c:31\",\"path\":[{\"function\":\"main\",\"site\":\"main.c:60\"},\
                        {\"function\":null,\"site\":\"libx.so+0x40\"},\
                        {\"function\":\"swap\",\"site\":\"main.c:31\"}]}";
        assert!(json.ends_with(expected), "{json}");
    }
}
