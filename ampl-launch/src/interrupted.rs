//! End by a signal: files that are not whole, and programs that write them, do not stay.

use std::io::{self, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

/// The program that writes for this one: the thread of signals ends it.
static WRITER: Mutex<Option<Child>> = Mutex::new(None);

fn writer() -> MutexGuard<'static, Option<Child>> {
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes signals that end this process call `abandon` first, which removes what is half written and returns its number.
/// Ignored signals stay ignored.
///
/// # Errors
/// Errors of the system.
pub fn clean_up(abandon: fn() -> usize) -> io::Result<()> {
    // A file that gets too large is an error as others, not the end.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = Signals::new(ends(&status))?;
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let mut writer = writer();
        if let Some(child) = writer.as_mut() {
            let _ = child.kill().and_then(|()| child.wait());
        }
        if abandon() > 0 {
            let name = signal_name(signal).unwrap_or("a signal");
            notice!("ampl: interrupted ({name}): what was half written is removed; give the command again");
        }
        let _ = emulate_default_handler(signal);
        // Not one that ends a process.
        std::process::exit(128 + signal);
    });
    Ok(())
}

/// Signals that end a process of that `status`, in the form of /proc: others are ignored, as nohup has it.
fn ends(status: &str) -> Vec<i32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Status and output of `command`, which ends before a signal ends this process.
///
/// # Errors
/// Errors of the system.
pub fn output(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut text = Vec::new();
    let stdout = {
        let mut writer = writer();
        let child = writer.insert(command.stdout(Stdio::piped()).spawn()?);
        child.stdout.take()
    };
    let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut text));
    let child = writer().take();
    let status = child.expect("it was put there").wait()?;
    read.map(|_| (status, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_stay_ignored() {
        assert_eq!(ends("Name:\tampl\nSigIgn:\t0000000000001000\n"), [SIGINT, SIGTERM, SIGHUP]);
        assert_eq!(ends("SigIgn:\t0000000000000001\n"), [SIGINT, SIGTERM]);
        assert_eq!(ends("SigIgn:\t0000000000004002\n"), [SIGHUP]);
        assert_eq!(ends(""), [SIGINT, SIGTERM, SIGHUP]);
    }

    #[test]
    fn the_output_of_a_program_comes_with_its_status() {
        let (status, text) = output(Command::new("sh").args(["-c", "echo 5; exit 3"])).unwrap();
        assert_eq!((status.code(), &text[..]), (Some(3), &b"5\n"[..]));
    }
}
