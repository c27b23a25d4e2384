//! Helpers that the tests of whole threads share.

use std::path::PathBuf;
use std::sync::Arc;

use ampl_agent::journal::{Identity, Journal};
use ampl_agent::shared::Shared;
use ampl_agent::{CallEnd, Thread};
use ampl_core::config::Config;
use ampl_core::plan::Plan;
use ampl_core::units::Rank;
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::timing::Settings;

/// Times as they were.
pub const EXACT: Settings = Settings { error: 0.0, floor_ns: 0 };

/// Rank 0 of a job, and its journal, which goes with it.
pub struct Job {
    /// The journal.
    pub path: PathBuf,
    /// State that its threads share.
    pub shared: Arc<Shared>,
    _place: tempfile::TempDir,
}

impl Job {
    /// A job of `ranks` ranks; all its code is the program's.
    pub fn new(config: &str, ranks: u32) -> Self {
        Self::resolving(config, ranks, |address| ("/bin/app".into(), address))
    }

    /// A job as before, with modules from `resolve`.
    pub fn resolving(config: &str, ranks: u32, resolve: fn(u64) -> (String, u64)) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("journal");
        let identity = Identity { ranks, host: "here".into(), ..Identity::default() };
        let journal = Journal::create(&path, &identity).expect("a writable temporary directory");
        let journal = Arc::new(journal.unmeasured());
        let shared = Arc::new(Shared::new(journal, plan(config, ranks), Rank(0), resolve));
        Self { path, shared, _place: place }
    }

    /// Thread number `number`, at the beginning of time.
    pub fn thread(&self, number: u32) -> Thread {
        Thread::new(self.shared.clone(), number, 0).expect("room for a journal")
    }

    /// Journal of a process that dies now, whole.
    pub fn read(&self) -> Compacted {
        let journal = self.shared.journal.contents().expect("a readable journal");
        let read = compact(journal.bytes(), EXACT).expect("a whole header");
        assert_eq!(read.damage, Vec::<String>::new());
        read
    }
}

/// Runs `check` in a process of its own, for the test `name`: it changes or lists state of the whole process.
pub fn alone(name: &str, check: fn()) {
    const ALONE: &str = "AMPL_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return check();
    }
    let this = std::env::current_exe().expect("the test itself");
    let mut command = std::process::Command::new(this);
    let alone = command.args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().expect("it starts");
    let [out, err] = [alone.stdout, alone.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(alone.status.success() && out.contains("1 passed"), "{out}{err}");
}

/// Plan of a job of `ranks` ranks.
pub fn plan(config: &str, ranks: u32) -> Plan {
    let (config, _) = Config::parse(config).unwrap_or_else(|errors| panic!("{}", errors.render("job.toml")));
    Plan::new(config, ranks).expect("ranks of the job")
}

/// Returns `call`, with these arguments. True where windows were closed.
pub fn leave(thread: &mut Thread, call: CallEnd, words: &[u64]) -> bool {
    let records = thread.records();
    let terminal =
        if records { thread.terminal(call.function, call.address, call.flags, words, &[]) } else { None };
    thread.leave(&CallEnd { terminal, ..call })
}
