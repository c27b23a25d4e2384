//! Facts about a run that cannot be found out later: what ran, where, and under which limits.
//!
//! Rank 0 records them. Facts that the system does not tell are absent, and `null` in JSON.

use serde::{Deserialize, Serialize};

/// Longest text of a fact, bytes; longer ones are cut.
pub const LONGEST: usize = 1024;

/// Bytes of JSON that a run's metadata may have.
const MOST_BYTES: usize = 16 << 10;

/// Facts about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The program's file on rank 0.
    pub executable: Option<FileFacts>,
    /// Libraries that rank 0 had mapped, in the order of loading, without the program.
    pub libraries: Option<Vec<Library>>,
    /// Files named in the arguments of the program on rank 0.
    pub inputs: Option<Vec<FileFacts>>,
    /// Environment modules that were loaded.
    pub modules: Option<Vec<String>>,
    /// Variables that set up MPI, its networks and threads: name and value, by name.
    pub variables: Option<Vec<(String, String)>>,
    /// The machine that rank 0 ran on.
    pub machine: Option<Machine>,
    /// Limits of rank 0's control group.
    pub limits: Option<Limits>,
    /// The scheduler's job.
    pub job: Option<Job>,
    /// Name-value pairs that the program registered with Adiak on rank 0, in the order of the library.
    pub adiak: Option<Vec<NameValue>>,
    /// Calls of rank 0 that enqueue communication between devices, by function; absent where nobody asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_calls: Option<Vec<DeviceCalls>>,
    /// Number of facts that were left out for want of room.
    pub left_out: u64,
}

/// Calls of a function that enqueues communication between devices. Their time is that of the calls, not of transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCalls {
    /// The function: `ncclAllReduce`.
    pub function: String,
    /// Its calls.
    pub calls: u64,
    /// Bytes that they enqueued: count times the bytes of an element.
    pub bytes: u64,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileFacts {
    /// Its path; absolute for the program, as it was given for the others.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its contents in hexadecimal digits; absent for a large file.
    pub sha256: Option<String>,
    /// The linker's build id in hexadecimal digits.
    pub build_id: Option<String>,
}

/// A mapped library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Library {
    /// Its path, as the loader found it.
    pub path: String,
    /// The linker's build id in hexadecimal digits.
    pub build_id: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processors.
    pub model: Option<String>,
    /// Processors in use: `0-127`.
    pub processors: Option<String>,
    /// Memory nodes in use: `0-7`.
    pub numa_nodes: Option<String>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Name and release of the system: `Linux 6.1.0`.
    pub system: Option<String>,
}

/// Limits of a control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Processors that it may use at a time.
    pub processors: Option<f64>,
    /// Bytes of memory that it may use.
    pub memory: Option<u64>,
}

/// A scheduler's job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// `slurm`, `pbs`, `lsf`, `flux`.
    pub scheduler: String,
    /// Its number.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Partition or queue.
    pub partition: Option<String>,
    /// Its nodes, as the scheduler lists them, or the file with their names.
    pub nodes: Option<String>,
}

/// A pair of a name and a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameValue {
    /// Its name.
    pub name: String,
    /// The program's own subcategory.
    pub subcategory: Option<String>,
    /// Its value: a number, a text, or a list of them.
    pub value: serde_json::Value,
}

impl Metadata {
    /// True where nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes every fact that `later` knows in place of the own one.
    pub fn update(&mut self, later: Self) {
        fn take<T>(own: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *own = later;
            }
        }
        take(&mut self.executable, later.executable);
        take(&mut self.libraries, later.libraries);
        take(&mut self.inputs, later.inputs);
        take(&mut self.modules, later.modules);
        take(&mut self.variables, later.variables);
        take(&mut self.machine, later.machine);
        take(&mut self.limits, later.limits);
        take(&mut self.job, later.job);
        take(&mut self.adiak, later.adiak);
        take(&mut self.device_calls, later.device_calls);
        self.left_out += later.left_out;
    }

    /// JSON of at most 16 KiB: facts that many of may be known are left out from their end until it fits, and counted.
    pub fn to_bounded_json(mut self) -> String {
        loop {
            let text = serde_json::to_string(&self).expect("plain data");
            if text.len() <= MOST_BYTES {
                return text;
            }
            self.left_out += self.shorten(text.len() - MOST_BYTES);
        }
    }

    /// Drops entries of the longest list that take some `excess` bytes, one at least; returns their number.
    fn shorten(&mut self, excess: usize) -> u64 {
        fn drop_last<T: Serialize>(list: &mut Vec<T>, excess: usize) -> u64 {
            let (mut dropped, mut bytes) = (0, 0);
            while bytes < excess
                && let Some(last) = list.pop()
            {
                bytes += json_bytes(&last);
                dropped += 1;
            }
            dropped
        }
        let sizes = [
            self.libraries.as_ref().map_or(0, json_bytes),
            self.inputs.as_ref().map_or(0, json_bytes),
            self.modules.as_ref().map_or(0, json_bytes),
            self.variables.as_ref().map_or(0, json_bytes),
            self.adiak.as_ref().map_or(0, json_bytes),
        ];
        let longest = (0..sizes.len()).max_by_key(|&list| sizes[list]).unwrap_or_default();
        match longest {
            0 => self.libraries.as_mut().map_or(0, |list| drop_last(list, excess)),
            1 => self.inputs.as_mut().map_or(0, |list| drop_last(list, excess)),
            2 => self.modules.as_mut().map_or(0, |list| drop_last(list, excess)),
            3 => self.variables.as_mut().map_or(0, |list| drop_last(list, excess)),
            _ => self.adiak.as_mut().map_or(0, |list| drop_last(list, excess)),
        }
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

/// `text`, cut to at most [`LONGEST`] bytes at the end of a character.
pub fn cut(mut text: String) -> String {
    text.truncate(cut_to(&text, LONGEST).len());
    text
}

/// `text`, cut to at most `longest` bytes at the end of a character.
pub fn cut_to(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries(number: usize) -> Option<Vec<Library>> {
        let library = |at| Library { path: format!("/usr/lib/lib{at}.so"), build_id: Some("ab".repeat(20)) };
        Some((0..number).map(library).collect())
    }

    #[test]
    fn unknown_facts_are_null_and_come_back() {
        let empty = Metadata::default();
        let json: serde_json::Value = serde_json::from_str(&empty.clone().to_bounded_json()).unwrap();
        assert!(json["machine"].is_null() && json["adiak"].is_null() && empty.is_empty());
        assert_eq!(serde_json::from_value::<Metadata>(json).unwrap(), empty);
        // Written by another version.
        assert_eq!(serde_json::from_str::<Metadata>("{\"more\": 1}").unwrap(), empty);
    }

    #[test]
    fn later_facts_replace_earlier_ones_and_keep_the_others() {
        let machine = Some(Machine { model: Some("one".into()), ..Machine::default() });
        let mut known = Metadata { libraries: libraries(2), machine, left_out: 1, ..Metadata::default() };
        known.update(Metadata { libraries: libraries(3), left_out: 2, ..Metadata::default() });
        assert_eq!((known.libraries.as_ref().unwrap().len(), known.left_out), (3, 3));
        assert_eq!(known.machine.unwrap().model.as_deref(), Some("one"));
    }

    #[test]
    fn many_facts_are_left_out_and_counted() {
        let adiak = (0..50).map(|at| NameValue { name: format!("v{at}"), ..NameValue::default() }).collect();
        let known = Metadata { libraries: libraries(1000), adiak: Some(adiak), ..Metadata::default() };
        let text = known.to_bounded_json();
        let back: Metadata = serde_json::from_str(&text).unwrap();
        let kept = back.libraries.unwrap().len() as u64;
        assert!(text.len() <= MOST_BYTES && text.len() > MOST_BYTES * 9 / 10, "{}", text.len());
        assert_eq!((kept + back.left_out, back.adiak.unwrap().len()), (1000, 50));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("short".into()), "short");
        let long = cut("é".repeat(LONGEST));
        assert!(long.len() <= LONGEST && long.len() > LONGEST - 2 && long.chars().all(|one| one == 'é'));
    }
}
