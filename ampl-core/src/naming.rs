//! The name of a run directory from the template `output.dir`: the command line and the library name runs
//! alike.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variable by which `ampl exec` passes on the processor time that it took itself, nanoseconds.
pub const STARTED_VARIABLE: &str = "AMPL_EXEC_NS";

/// Variable by which `ampl exec` tells the first rank that there is to be no run, and that this has been reported.
pub const REFUSED_VARIABLE: &str = "AMPL_EXEC_REFUSED";

/// Variable by which `ampl exec` hands on what [`WORLD_VARIABLES`] say: name, number of processes and its own number.
/// Something between it and the program may take away theirs.
pub const LAUNCHED_VARIABLE: &str = "AMPL_EXEC_LAUNCHED";

/// Variables of launchers for the number of processes started, and for this one's number. Slurm's steps last: launchers
/// inside pass them on.
pub const WORLD_VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// Variables in which schedulers name a job, the more specific first.
pub const JOB_VARIABLES: [&str; 7] =
    ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "OAR_JOB_ID", "JOB_ID"];

/// Values of a template's placeholders.
#[derive(Clone, Debug)]
pub struct Names {
    /// The program's file name.
    pub app: String,
    /// The scheduler's job, or the launcher's process.
    pub jobid: String,
    /// `YYYYMMDDTHHMMSS`, UTC.
    pub time: String,
}

impl Names {
    /// The names of a job that runs `program`, called `jobid`, and starts `seconds` after the Unix epoch.
    pub fn new(program: &OsStr, jobid: &str, seconds: u64) -> Self {
        let app = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
        Self { app: plain(&app), jobid: plain(jobid), time: utc(seconds) }
    }

    /// `template` with its placeholders replaced.
    pub fn fill(&self, template: &str) -> String {
        template.replace("{app}", &self.app).replace("{jobid}", &self.jobid).replace("{time}", &self.time)
    }

    /// The same with the name of the user, `{user}`.
    pub fn fill_for(&self, template: &str, user: &str) -> String {
        self.fill(&template.replace("{user}", &plain(user)))
    }
}

/// Name of the directory of that user's journals on a node.
pub fn node_directory_name(user: u32) -> String {
    format!("ampl-{user}")
}

/// Prefix of directories, among those of journals, in which ranks of a node find each other in `MPI_Init`. Marks in
/// them are called `RANK-PID-START-NAMESPACE`, after the process and when it started.
pub const RANKS: &str = "ranks-";

/// The empty file that the library takes away once it has run, and has reported why where no run was recorded;
/// `ampl run` checks it at the end.
pub fn awaited(run: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(run.file_name().unwrap_or_default());
    name.push(".awaited");
    run.with_file_name(name)
}

/// `path`, or the first of `path-2`, `path-3`, … that is not `taken`.
pub fn untaken(path: &Path, taken: impl Fn(&Path) -> bool) -> PathBuf {
    candidates(path).find(|path| !taken(path)).expect("some number is free")
}

/// `path`, `path-2`, `path-3`, …: where a run may go whose name is taken.
pub fn candidates(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    std::iter::once(path.to_owned()).chain((2..).map(numbered))
}

// One path component, which no shell or launcher takes apart.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || "._-+".contains(c) { c } else { '_' }).collect()
}

/// `YYYYMMDDTHHMMSS` of that second since 1970, in UTC.
///
/// # Source
/// Days to date: the proleptic Gregorian calendar in eras of 400 years that begin on 1 March, so that a leap day
/// ends its year.
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let since_march = days + 719_468;
    let (era, day_of_era) = (since_march / 146_097, since_march % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        // date -u -d @N +%Y%m%dT%H%M%S
        for (seconds, expected) in [
            (0, "19700101T000000"),
            (951_782_399, "20000228T235959"),
            (951_782_400, "20000229T000000"),
            (1_709_251_200, "20240301T000000"),
            (1_795_251_661, "20261121T090101"),
            (4_102_444_799, "20991231T235959"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }

    #[test]
    fn templates_are_filled_with_plain_names() {
        let names = Names::new(OsStr::new("/opt/x y/my app"), "12[3].srv", 1);
        assert_eq!(names.fill("ampl-{app}-{jobid}-{time}"), "ampl-my_app-12_3_.srv-19700101T000001");
    }

    #[test]
    fn taken_names_get_a_number() {
        let taken = |path: &Path| [Path::new("r"), Path::new("r-2")].contains(&path);
        assert_eq!(untaken(Path::new("r"), taken), Path::new("r-3"));
        assert_eq!(untaken(Path::new("q"), taken), Path::new("q"));
    }
}
