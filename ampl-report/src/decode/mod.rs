//! Lines about the events of a rank, for people: calls, gaps, regions.

pub mod gap;
pub mod region;

use std::collections::BTreeMap;

use ampl_core::mpi::constants::{AbiFamily, Set};
use ampl_core::value::Value;
use ampl_reader::model::WindowSummary;
use ampl_reader::sites::Frame;
use ampl_reader::{Call, RankTrace, Timed};

use crate::human;

/// Place of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// Name of the call site.
    pub site: Option<&'a str>,
    /// From `main` to the call; empty where paths are not told apart.
    pub path: &'a [Frame],
}

/// Reason why a window is stored, where it was not drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// True where the window would have been kept; given where everything is stored to check that
    /// (`output.verify`).
    pub kept: Option<bool>,
    /// True where the window was not drawn itself, but a partner's was.
    pub partner: bool,
    /// Probability that it or a partner's window was drawn, where that is not the probability of its own draw.
    pub inclusion: Option<f64>,
}

/// Windows of `rank` that partners may keep; all of them where everything is stored to `verify`.
pub fn shares(rank: &RankTrace, verify: bool) -> BTreeMap<u64, Share> {
    let told = |window: &WindowSummary| verify || window.partner || window.inclusion.is_some();
    let share = |window: &WindowSummary| Share {
        kept: verify.then(|| window.is_sampled()),
        partner: window.partner,
        inclusion: window.inclusion,
    };
    let shared = rank.windows.iter().filter(|window| told(window));
    shared.map(|window| (window.window, share(&window))).collect()
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
    }
}
