//! Age of journals that another host writes into the run directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ampl_core::units::RankSet;
use ampl_reader::directory::{self, nodes};

/// Periods of copies without a sign after which a host's processes count as ended.
const PERIODS: u32 = 2;
/// Further time for a round of copies itself.
const ROUND: Duration = Duration::from_secs(1);
/// Period where the run names none.
const PERIOD: Duration = Duration::from_secs(60);

/// Time since `host`, which has `ranks`, last wrote into the directory of `run`; `None` where it never did.
pub fn of(run: &Path, host: &str, ranks: &RankSet) -> Option<Duration> {
    let home = nodes::home(run, host);
    let mut signs: Vec<PathBuf> = directory::journals_in(&home);
    signs.push(home);
    // Journals that are written there at once, without copies.
    let own: BTreeSet<String> = ranks.iter().map(|rank| format!("rank-{:06}.journal", rank.0)).collect();
    let is_own = |file: &PathBuf| {
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| own.contains(name))
    };
    signs.extend(directory::journals_in(&run.join("journal")).into_iter().filter(is_own));
    let newest = signs.iter().filter_map(|sign| fs::metadata(sign).ok()?.modified().ok()).max()?;
    Some(now(run).duration_since(newest).unwrap_or_default())
}

/// Time by the clock of the file system that `run` is on, which its hosts share; by this host's where nothing can be
/// written there.
fn now(run: &Path) -> SystemTime {
    let probe = run.join(format!(".clock-{}", std::process::id()));
    let touched = File::create(&probe).and_then(|file| file.metadata()?.modified());
    let _ = fs::remove_file(&probe);
    touched.unwrap_or_else(|_| SystemTime::now())
}

/// Time that still has to pass before a host that last wrote `age` ago counts as ended; `None` where it does.
pub fn left(run: &Path, age: Duration) -> Option<Duration> {
    let period = directory::copy_ns(run).map_or(PERIOD, Duration::from_nanos);
    (period * PERIODS + ROUND).checked_sub(age).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sign_of_a_host_counts() {
        let run = tempfile::tempdir().unwrap();
        let ranks: RankSet = [3].into_iter().collect();
        assert_eq!(of(run.path(), "b", &ranks), None);
        let home = nodes::home(run.path(), "b");
        fs::create_dir_all(&home).unwrap();
        let copy = home.join("rank-000003.journal");
        fs::write(&copy, "x").unwrap();
        let ago = |path: &Path, seconds: u64| {
            let then = SystemTime::now() - Duration::from_secs(seconds);
            File::open(path).unwrap().set_modified(then).unwrap();
        };
        ago(&copy, 400);
        ago(&home, 500);
        let seconds = |age: Option<Duration>| age.unwrap().as_secs_f64().round();
        assert_eq!(seconds(of(run.path(), "b", &ranks)), 400.0);
        // Another clock is ahead.
        ago(&home, 0);
        File::open(&home).unwrap().set_modified(SystemTime::now() + Duration::from_secs(50)).unwrap();
        assert_eq!(of(run.path(), "b", &ranks), Some(Duration::ZERO));
        // Journals in the run directory itself: those of its ranks.
        ago(&home, 500);
        fs::create_dir(run.path().join("journal")).unwrap();
        for (rank, seconds) in [(3, 90), (4, 10)] {
            let file = run.path().join(format!("journal/rank-{rank:06}.journal"));
            fs::write(&file, "x").unwrap();
            ago(&file, seconds);
        }
        assert_eq!(seconds(of(run.path(), "b", &ranks)), 90.0);
        assert!(!run.path().join(format!(".clock-{}", std::process::id())).exists());
    }

    #[test]
    fn two_periods_and_a_round_are_waited_for() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(left(run.path(), Duration::from_secs(100)), Some(Duration::from_secs(21)));
        assert_eq!(left(run.path(), Duration::from_secs(121)), None);
    }
}
