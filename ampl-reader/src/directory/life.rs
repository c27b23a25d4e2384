//! Processes of a run that still live, and the time up to which the run counts.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ampl_core::process_stat::ProcessStat;
use ampl_trace::Trace;
use ampl_trace::model::{End, EndBasis, Liveness, Process};

/// Liveness of `process` by `/proc`: it lives where a process of its number has its journal `file` mapped.
pub fn of(process: &Process, file: &Path) -> Liveness {
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if here.trim() != process.host || process.pid == 0 {
        return Liveness::Unknown;
    }
    let of = Path::new("/proc").join(process.pid.to_string());
    let Ok(maps) = fs::read_to_string(of.join("maps")) else {
        return if of.exists() { Liveness::Unknown } else { Liveness::Gone };
    };
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let name = file.display().to_string();
    if !maps.lines().any(|line| line.ends_with(&name)) {
        return Liveness::Gone;
    }
    match ProcessStat::parse(&fs::read_to_string(of.join("stat")).unwrap_or_default()) {
        Some(stat) if stat.is_stopped() => Liveness::Stopped,
        Some(stat) if stat.has_ended() => Liveness::Gone,
        _ => Liveness::Runs,
    }
}

/// End of a run that was read from its journals; its launcher returned `ended_ns` nanoseconds after the Unix epoch.
pub fn end(trace: &Trace, ended_ns: Option<u64>) -> Option<End> {
    let since_start = |nanos: u64| i64::try_from(nanos.checked_sub(trace.run.started_ns)?).ok();
    let known = trace.run.started_ns > 0;
    let lives = |process: &Process| matches!(process.liveness, Liveness::Runs | Liveness::Stopped);
    let last = last_call_ns(trace);
    let (at, basis) = if let Some(ended) = ended_ns.filter(|_| known).and_then(since_start) {
        (ended, EndBasis::Launcher)
    } else if known && trace.ranks.iter().any(|rank| lives(&rank.process)) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        (since_start(now.as_nanos() as u64)?, EndBasis::Now)
    } else {
        (last?, EndBasis::LastCall)
    };
    // Clocks differ a little.
    Some(End { at_ns: at.max(last.unwrap_or(at)), basis })
}

/// The last moment at which a rank is known to have entered or left a call, nanoseconds since T0.
fn last_call_ns(trace: &Trace) -> Option<i64> {
    let threads = trace.ranks.iter().flat_map(|rank| &rank.process.threads);
    threads.map(|thread| thread.since_ns).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::RankTrace;
    use ampl_trace::model::ThreadPlace;

    #[test]
    fn a_process_lives_that_has_the_journal_mapped() {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
        let own = Process { host, pid: std::process::id(), ..Process::default() };
        // The test's own program is mapped, like a journal.
        let program = std::env::current_exe().unwrap();
        assert_eq!(of(&own, &program), Liveness::Runs);
        assert_eq!(of(&own, Path::new("/none")), Liveness::Gone);
        assert_eq!(of(&Process { pid: u32::MAX, ..own.clone() }, &program), Liveness::Gone);
        assert_eq!(of(&Process { host: "elsewhere".into(), ..own }, &program), Liveness::Unknown);
    }

    #[test]
    fn the_end_has_its_basis() {
        let mut trace = Trace::default();
        assert_eq!(end(&trace, Some(5)), None);
        let mut rank = RankTrace::default();
        rank.process.threads =
            [70, 90].map(|since_ns| ThreadPlace { since_ns, ..ThreadPlace::default() }).into();
        trace.ranks.push(rank);
        assert_eq!(end(&trace, Some(5)), Some(End { at_ns: 90, basis: EndBasis::LastCall }));
        trace.run.started_ns = 1000;
        assert_eq!(end(&trace, Some(1500)), Some(End { at_ns: 500, basis: EndBasis::Launcher }));
        // A clock that is behind.
        assert_eq!(end(&trace, Some(1020)), Some(End { at_ns: 90, basis: EndBasis::Launcher }));
        trace.ranks[0].process.liveness = Liveness::Stopped;
        assert_eq!(end(&trace, None).map(|end| end.basis), Some(EndBasis::Now));
    }
}
