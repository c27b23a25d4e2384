//! Comparison of `ampl decode` with the log that a program wrote itself (`programs/record.h`).
//!
//! Calls are compared in order, every argument by name. Objects may have other names, as long as
//! one name means one object for the object's whole life. Failed polls between two other calls
//! are compared as a set with counts, because their order is not specified.

mod renaming;
mod told;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use renaming::Renaming;

/// Calls with a flag or count that shows whether they found anything.
const POLLS: &[&str] = &[
    "MPI_Improbe",
    "MPI_Iprobe",
    "MPI_Parrived",
    "MPI_Request_get_status",
    "MPI_Request_get_status_all",
    "MPI_Request_get_status_any",
    "MPI_Request_get_status_some",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Win_test",
];

/// One rank's log.
#[derive(Debug)]
pub struct Reference {
    calls: Vec<Call>,
    /// Pairs of requests that MPI gave one handle while both lived.
    shared: Vec<(String, String)>,
    /// Calls per function, polls included.
    pub counts: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
struct Call {
    function: String,
    args: Map<String, Value>,
    out: Map<String, Value>,
    /// The error that it returned, if any.
    error: Option<i64>,
    /// Number of calls that the line stands for.
    count: u64,
}

impl Call {
    fn of(line: &Value) -> Result<Self, String> {
        let part =
            |name: &str| line[name].as_object().cloned().ok_or_else(|| format!("no \"{name}\" in {line}"));
        let function = line["fn"].as_str().ok_or_else(|| format!("no \"fn\" in {line}"))?.to_owned();
        Ok(Self {
            function,
            args: part("args")?,
            out: part("out")?,
            error: line["error"].as_i64(),
            count: line["count"].as_u64().unwrap_or(1),
        })
    }

    fn is_miss(&self) -> bool {
        let says = |name: &str, value: Value| self.out.get(name) == Some(&value);
        POLLS.contains(&self.function.as_str())
            && (says("flag", Value::Bool(false)) || says("outcount", Value::from(0)))
    }

    /// The call without its outputs: those of a failed poll mean nothing.
    fn inputs(&self) -> Self {
        Self { out: Map::new(), ..self.clone() }
    }

    fn shown(&self) -> String {
        let object = |map: &Map<String, Value>| Value::Object(map.clone());
        let error = self.error.map(|code| format!(" error {code}")).unwrap_or_default();
        format!("{}{} -> {}{error}", self.function, object(&self.args), object(&self.out))
    }
}

/// Either one call, or the failed polls between two calls.
enum Step<'a> {
    Call(&'a Call),
    /// Distinct polls with how often each failed, and never empty.
    Misses(Vec<(&'a Call, u64)>),
}

fn steps(calls: &[Call]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for call in calls {
        if !call.is_miss() {
            steps.push(Step::Call(call));
            continue;
        }
        if !matches!(steps.last(), Some(Step::Misses(_))) {
            steps.push(Step::Misses(Vec::new()));
        }
        let Some(Step::Misses(misses)) = steps.last_mut() else { unreachable!("it was just pushed") };
        match misses.iter_mut().find(|(known, _)| known.function == call.function && known.args == call.args)
        {
            Some((_, count)) => *count += call.count,
            None => misses.push((call, call.count)),
        }
    }
    steps
}

impl Reference {
    /// The log in `text`, as the program wrote it.
    ///
    /// # Errors
    /// The first line that is no part of a log.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reference = Self { calls: Vec::new(), shared: Vec::new(), counts: BTreeMap::new() };
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
            if let Some(pair) = line["shared"].as_array() {
                let name = |index: usize| pair[index].as_str().unwrap_or_default().to_owned();
                reference.shared.push((name(0), name(1)));
            } else if line.get("counts").is_some() {
                reference.counts = crate::run::counts(&line["counts"]);
            } else {
                reference.calls.push(Call::of(&line)?);
            }
        }
        if reference.counts.is_empty() {
            return Err("the log has no end: the program did not get there".into());
        }
        Ok(reference)
    }

    /// Number of lines of calls in the log.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// True where the log has no call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Destination and tag of every message that the rank has sent in the world.
    pub fn sent(&self) -> impl Iterator<Item = (i64, i64)> {
        self.calls.iter().filter_map(told::sent)
    }

    /// Compares the log with the lines of `ampl decode --json`.
    ///
    /// # Errors
    /// The first difference, with both lines.
    pub fn compare(&self, decoded: &[Value]) -> Result<(), String> {
        self.compare_where(decoded, None)
    }

    /// As [`Self::compare`], `sent` being source and tag of every message that was sent to the rank in the world, where
    /// that is known.
    ///
    /// # Errors
    /// As there.
    pub fn compare_where(&self, decoded: &[Value], sent: Option<&HashSet<(i64, i64)>>) -> Result<(), String> {
        let decoded = decoded.iter().map(Call::of).collect::<Result<Vec<_>, _>>()?;
        let calls = told::filled_in(&self.calls, &self.shared);
        let (ours, theirs) = (steps(&calls), steps(&decoded));
        let mut renaming = Renaming::new(&self.shared, sent);
        for (index, step) in ours.iter().enumerate() {
            let calls: Vec<&Call> = match step {
                Step::Call(call) => vec![call],
                Step::Misses(misses) => misses.iter().map(|(call, _)| *call).collect(),
            };
            for call in calls {
                renaming.note_use(index, call.args.values().chain(call.out.values()));
            }
        }
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            match (ours, theirs) {
                (Step::Call(ours), Step::Call(theirs)) => same_call(ours, theirs, index, &mut renaming)
                    .map_err(|why| {
                        format!("call {index}: {why}\n  log    {}\n  decode {}", ours.shown(), theirs.shown())
                    })?,
                (Step::Misses(ours), Step::Misses(theirs)) => same_misses(ours, theirs, index, &renaming)
                    .map_err(|why| format!("failed polls at call {index}: {why}"))?,
                (Step::Call(call), Step::Misses(misses)) => {
                    return Err(format!(
                        "call {index}: log {}, decode failed {}",
                        call.shown(),
                        misses[0].0.shown()
                    ));
                }
                (Step::Misses(misses), Step::Call(call)) => {
                    return Err(format!(
                        "call {index}: log failed {}, decode {}",
                        misses[0].0.shown(),
                        call.shown()
                    ));
                }
            }
        }
        if ours.len() != theirs.len() {
            return Err(format!(
                "the log has {} calls, decode {}; equal up to there",
                ours.len(),
                theirs.len()
            ));
        }
        Ok(())
    }
}

fn same_misses(
    ours: &[(&Call, u64)],
    theirs: &[(&Call, u64)],
    index: usize,
    renaming: &Renaming,
) -> Result<(), String> {
    let mut open: Vec<&(&Call, u64)> = theirs.iter().collect();
    for (call, count) in ours {
        // A failed poll makes no object, so trying leaves the renaming as it is.
        let found = open.iter().position(|(other, other_count)| {
            other_count == count
                && same_call(&call.inputs(), &other.inputs(), index, &mut renaming.clone()).is_ok()
        });
        let Some(found) = found else {
            let there: Vec<String> =
                theirs.iter().map(|(call, count)| format!("{count} × {}", call.shown())).collect();
            return Err(format!("{count} × {} is not among: {}", call.shown(), there.join("; ")));
        };
        open.remove(found);
    }
    match open.first() {
        None => Ok(()),
        Some((call, count)) => Err(format!("decode has {count} × {} besides", call.shown())),
    }
}

/// Compares two calls: their function, their error, the names of all arguments, and the values.
fn same_call(ours: &Call, theirs: &Call, index: usize, renaming: &mut Renaming) -> Result<(), String> {
    if ours.function != theirs.function {
        return Err(format!("{} is not {}", theirs.function, ours.function));
    }
    if ours.error != theirs.error {
        return Err(format!("error {:?} instead of {:?}", theirs.error, ours.error));
    }
    for name in theirs.args.keys().chain(theirs.out.keys()) {
        if !ours.args.contains_key(name) && !ours.out.contains_key(name) {
            return Err(format!("{} has no argument {name}", ours.function));
        }
    }
    // Outputs that MPI has not written must not be recorded.
    if let Some(name) = theirs.out.keys().find(|_| ours.error.is_some() && ours.out.is_empty()) {
        return Err(format!("output {name} of a call that has failed"));
    }
    for (name, value) in &ours.args {
        let given = theirs.args.get(name).or_else(|| {
            // The address of a receive buffer is an input, though the standard calls the buffer an output.
            is_buffer(value).then(|| theirs.out.get(name)).flatten()
        });
        renaming.same(value, given, index).map_err(|why| format!("argument {name}: {why}"))?;
    }
    for (name, value) in &ours.out {
        let given = theirs.out.get(name);
        renaming.same(value, given, index).map_err(|why| format!("output {name}: {why}"))?;
    }
    Ok(())
}

fn is_buffer(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("0x") || text == "MPI_IN_PLACE")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"
{"fn":"MPI_Init_thread","args":{"argc":"0x20","required":2},"out":{"provided":3}}
{"fn":"MPI_Irecv","args":{"buf":"0x10","source":"MPI_ANY_SOURCE"},"out":{"request":"request:1"}}
{"fn":"MPI_Test","args":{"request":"request:1"},"out":{"request":"request:1","flag":false,"status":{"any":true}}}
{"fn":"MPI_Iprobe","args":{"tag":4},"out":{"flag":false,"status":{"any":true}}}
{"fn":"MPI_Test","args":{"request":"request:1"},"out":{"request":"request:1","flag":false,"status":{"any":true}}}
{"fn":"MPI_Test","args":{"request":"request:1"},"out":{"request":"MPI_REQUEST_NULL","flag":true,"status":{"source":2,"tag":4}}}
{"fn":"MPI_Irecv","args":{"buf":"0x10","source":3,"tag":4},"out":{"request":"request:2"}}
{"fn":"MPI_Testsome","args":{"incount":1,"array_of_requests":["request:2"]},"out":{"outcount":0,"array_of_indices":{"any":true}}}
{"fn":"MPI_Wait","args":{"request":"request:2"},"out":{"request":"MPI_REQUEST_NULL","status":{"ignored":true}}}
{"fn":"MPI_Info_set","args":{"key":"colour","ranks":[1,2],"n":2},"out":{},"error":28}
{"rank":0,"counts":{"MPI_Irecv":2,"MPI_Test":3,"MPI_Iprobe":1,"MPI_Testsome":1,"MPI_Wait":1,"MPI_Info_set":1}}"#;

    const DECODED: &str = r#"
{"fn":"MPI_Init_thread","args":{"argc":"0x20","required":2},"out":{"provided":3}}
{"fn":"MPI_Irecv","args":{"source":"MPI_ANY_SOURCE"},"out":{"buf":"0x10","request":"request:7"}}
{"fn":"MPI_Iprobe","args":{"tag":4},"out":{"flag":false}}
{"fn":"MPI_Test","args":{"request":"request:7"},"out":{"flag":false},"count":2}
{"fn":"MPI_Test","args":{"request":"request:7"},"out":{"request":"MPI_REQUEST_NULL","flag":true,"status":{"source":2,"tag":4}}}
{"fn":"MPI_Irecv","args":{"buf":"0x10","source":3,"tag":4},"out":{"request":"request:7"}}
{"fn":"MPI_Testsome","args":{"incount":1,"array_of_requests":["request:7"]},"out":{"outcount":0}}
{"fn":"MPI_Wait","args":{"request":"request:7"},"out":{"request":"MPI_REQUEST_NULL","status":{"source":3,"tag":4}}}
{"fn":"MPI_Info_set","args":{"key":"colour","ranks":[1,2],"n":2},"out":{},"error":28}"#;

    fn compare_with(edit: impl Fn(String) -> String) -> Result<(), String> {
        let lines = edit(DECODED.to_owned());
        let decoded: Vec<Value> = lines.trim().lines().map(crate::run::parse).collect();
        Reference::parse(LOG.trim()).unwrap().compare(&decoded)
    }

    #[test]
    fn equal_up_to_names_and_the_order_of_failed_polls() {
        compare_with(|lines| lines).unwrap();
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let differs = |from: &str, to: &str| {
            assert!(DECODED.contains(from), "{from}");
            assert!(compare_with(|lines| lines.replacen(from, to, 1)).is_err(), "{from} -> {to}");
        };
        differs(
            "\"args\":{\"argc\":\"0x20\",\"required\":2},\"out\":{\"provided\":3}",
            "\"args\":{},\"out\":{}",
        );
        differs("\"provided\":3", "\"provided\":2");
        differs("\"count\":2", "\"count\":3");
        differs("\"source\":3", "\"source\":4");
        differs("\"source\":2,\"tag\":4", "\"source\":2,\"tag\":5");
        differs(
            "\"args\":{\"request\":\"request:7\"},\"out\":{\"request\"",
            "\"args\":{\"request\":\"request:8\"},\"out\":{\"request\"",
        );
        differs("\"buf\":\"0x10\",\"request\"", "\"buf\":\"0x18\",\"request\"");
        differs("\"tag\":4},\"out\"", "\"tag\":4,\"comm\":\"world\"},\"out\"");
        // The program has ignored that status: it is known all the same.
        for other in ["null", "4", r#"{"source":3}"#, r#"{"source":2,"tag":4}"#, r#"{"source":3,"tag":5}"#] {
            differs(r#"{"source":3,"tag":4}"#, other);
        }
        differs("MPI_Wait", "MPI_Start");
        differs("\"incount\":1", "\"incount\":2");
        differs("\"error\":28", "\"error\":29");
        differs(",\"error\":28", "");
        differs("\"n\":2", "\"n\":null,\"m\":3");
        differs("\"ranks\":[1,2]", "\"ranks\":[1,3]");
        // Inputs of a failed call are recorded all the same.
        differs("\"key\":\"colour\"", "\"key\":null");
        assert!(compare_with(|lines| lines.lines().take(7).collect::<Vec<_>>().join("\n")).is_err());
    }

    #[test]
    fn a_log_without_end_is_refused() {
        assert!(Reference::parse(LOG.trim().rsplit_once('\n').unwrap().0).is_err());
    }
}
