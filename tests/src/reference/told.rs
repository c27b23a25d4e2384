//! Contents of statuses that the program has ignored, worked out from the calls before.
//!
//! The program passed `MPI_STATUS_IGNORE`, and ampl a status of its own, so the program's log has none. A receive
//! that names its source and its tag can only have got these. The status of a send, a collective or a file operation
//! has no message. For a wildcard only ampl has MPI's choice: the test checks that it is no wildcard any more, and
//! that such a message was sent.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::Call;

/// A request, as far as its status depends on it.
#[derive(Clone)]
struct Request {
    /// Status of the request once a message has come; null if it is no receive.
    says: Value,
    is_persistent: bool,
    is_active: bool,
}

/// Earlier calls, as far as statuses depend on them.
#[derive(Default)]
struct Known {
    requests: BTreeMap<String, Request>,
    /// Messages that were matched by probes, as far as they are known.
    messages: BTreeMap<String, Value>,
    /// Requests whose status is not known.
    lost: HashSet<String>,
}

/// `calls` with the expected value of each ignored status. It stays `ignored` for a request that was cancelled, and
/// for one in `shared`, which cannot be told from another one.
pub fn filled_in(calls: &[Call], shared: &[(String, String)]) -> Vec<Call> {
    let lost = shared.iter().flat_map(|(one, other)| [one.clone(), other.clone()]).collect();
    let mut known = Known { lost, ..Known::default() };
    calls.iter().map(|call| known.meet(call)).collect()
}

/// Destination and tag of the call's message, if it sends one in the world.
pub fn sent(call: &Call) -> Option<(i64, i64)> {
    let tag = call.args.get("tag").or_else(|| call.args.get("sendtag"))?;
    let in_world = call.args.get("comm").is_some_and(|comm| comm == "world");
    in_world.then_some((call.args.get("dest")?.as_i64()?, tag.as_i64()?))
}

/// The status of a message that came for a receive from `source` with `tag`.
fn message(call: &Call, source: &Value, tag: &Value) -> Value {
    if source == "MPI_PROC_NULL" {
        return json!({"source": "MPI_PROC_NULL", "tag": "MPI_ANY_TAG"}); // MPI-4.1 §3.10
    }
    if source.is_number() && tag.is_number() {
        return json!({"source": source, "tag": tag});
    }
    let in_world = call.args.get("comm").is_some_and(|comm| comm == "world");
    json!({"matched": {"source": source, "tag": tag}, "world": in_world})
}

/// The status of no request, and of one that is not active (MPI-4.1 §3.7.3).
fn empty() -> Value {
    json!({"source": "MPI_ANY_SOURCE", "tag": "MPI_ANY_TAG"})
}

fn is_ignored(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.get("ignored").is_some())
}

fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

impl Known {
    fn meet(&mut self, call: &Call) -> Call {
        let mut filled = call.clone();
        let named = requests(call);
        if is_completion(call) {
            self.complete(call, &named, &mut filled);
            return filled;
        }
        match &*call.function {
            "MPI_Start" | "MPI_Startall" => self.each(&named, |request| request.is_active = true),
            // The program's log does not show if the message or the cancellation came first.
            "MPI_Cancel" => self.lost.extend(named),
            _ => self.receive_or_make(call, &mut filled),
        }
        filled
    }

    fn each(&mut self, names: &[String], change: impl Fn(&mut Request)) {
        for name in names {
            self.requests.get_mut(name).into_iter().for_each(&change);
        }
    }

    /// A call that receives a message, probes for one, or makes a request.
    fn receive_or_make(&mut self, call: &Call, filled: &mut Call) {
        let arg = |name: &str| call.args.get(name);
        let tag = arg("recvtag").or_else(|| arg("tag"));
        let mut says = match (arg("source"), tag, text(arg("message"))) {
            (Some(source), Some(tag), _) => message(call, source, tag),
            (.., Some(matched)) => self.messages.get(&matched).cloned().unwrap_or_else(empty),
            _ => Value::Null,
        };
        if is_ignored(call.out.get("status")) {
            filled.out.insert("status".into(), says.clone());
        } else if let Some(status) = call.out.get("status").filter(|status| status.get("source").is_some()) {
            says = status.clone();
        }
        if let Some(matched) = text(call.out.get("message")) {
            // A message from `MPI_PROC_NULL`.
            let is_none = matched == "MPI_MESSAGE_NO_PROC";
            self.messages.insert(
                matched,
                if is_none { message(call, &"MPI_PROC_NULL".into(), &says) } else { says.clone() },
            );
        }
        if let Some(made) = text(call.out.get("request")) {
            let is_persistent = call.function.contains("_init");
            self.requests.insert(made, Request { says, is_persistent, is_active: !is_persistent });
        }
    }

    /// A call that completes `named` requests, some of them, or none.
    fn complete(&mut self, call: &Call, named: &[String], filled: &mut Call) {
        let index = |value: &Value| value.as_u64().map(|index| index as usize);
        let completed: Vec<Option<usize>> = match (call.out.get("array_of_indices"), call.out.get("index")) {
            (Some(indices), _) => indices.as_array().into_iter().flatten().map(index).collect(),
            (None, Some(said)) => vec![index(said)],
            (None, None) => (0..named.len()).map(Some).collect(),
        };
        let statuses: Vec<Value> = completed
            .iter()
            .map(|index| {
                index.and_then(|index| named.get(index)).map_or_else(empty, |name| self.status(name))
            })
            .collect();
        let several = statuses.iter().map(|status| match (call.error, status.get("ignored")) {
            (Some(_), None) => json!({"fared": status}),
            _ => status.clone(),
        });
        if is_ignored(call.out.get("array_of_statuses")) {
            filled.out.insert("array_of_statuses".into(), several.collect());
        } else if is_ignored(call.out.get("status")) {
            filled.out.insert("status".into(), statuses.first().cloned().unwrap_or_else(empty));
        }
        let names: Vec<String> =
            completed.iter().flatten().filter_map(|&index| named.get(index)).cloned().collect();
        let leaves = call.is_miss() || call.function.starts_with("MPI_Request_get_status");
        if call.error.is_some() && !leaves {
            // Only codes of the implementation show which of several has ended.
            self.lost.extend(names);
        } else if !leaves {
            self.each(&names, |request| request.is_active = !request.is_persistent);
        }
    }

    /// The status of the request of that name.
    fn status(&self, name: &str) -> Value {
        match self.requests.get(name) {
            _ if self.lost.contains(name) => json!({"ignored": true}),
            None => empty(),
            Some(request) if !request.is_active => empty(),
            Some(request) => request.says.clone(),
        }
    }
}

/// The requests that the call was given.
fn requests(call: &Call) -> Vec<String> {
    match (call.args.get("request"), call.args.get("array_of_requests")) {
        (Some(one), _) => text(Some(one)).into_iter().collect(),
        (None, Some(several)) => {
            several.as_array().into_iter().flatten().filter_map(|one| text(Some(one))).collect()
        }
        _ => Vec::new(),
    }
}

fn is_completion(call: &Call) -> bool {
    ["MPI_Wait", "MPI_Test", "MPI_Request_get_status"].iter().any(|start| {
        let kind = call.function.strip_prefix(start);
        kind.is_some_and(|kind| ["", "all", "any", "some", "_all", "_any", "_some"].contains(&kind))
    })
}

/// True where `theirs` is a status that `ours` stands for, one that is only partly known. `sent` is true where that
/// rank of the world has sent a message with that tag.
pub fn fits(ours: &Value, theirs: &Value, sent: &dyn Fn(i64, i64) -> bool) -> bool {
    if let Some(expected) = ours.get("fared") {
        return fared(expected, theirs, sent);
    }
    let Some(expected) = ours.get("matched") else { return ours == theirs };
    let part = |name: &str| {
        let (expected, value) = (&expected[name], &theirs[name]);
        if expected.is_number() { value == expected } else { value.as_u64().is_some() }
    };
    let is_sent = || {
        let of = |name: &str| theirs[name].as_i64().unwrap_or(-1);
        ours["world"] != true || sent(of("source"), of("tag"))
    };
    theirs.as_object().is_some_and(|status| status.len() == 2) && part("source") && part("tag") && is_sent()
}

/// True where `theirs` is the result of a request whose message would have `expected` as its status. Source and tag
/// are there if it has ended well, and may be if not.
fn fared(expected: &Value, theirs: &Value, sent: &dyn Fn(i64, i64) -> bool) -> bool {
    let Some(mut told) = theirs.as_object().cloned() else { return false };
    let Some(error) = told.remove("error").and_then(|error| error.as_i64()) else { return false };
    if told.is_empty() {
        return expected.is_null() || error != 0;
    }
    !expected.is_null() && fits(expected, &Value::Object(told), sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of the calls in `log`, one a line.
    fn outputs(log: &str) -> Vec<Value> {
        let calls: Vec<Call> =
            log.trim().lines().map(|line| Call::of(&crate::run::parse(line)).unwrap()).collect();
        filled_in(&calls, &[]).into_iter().map(|call| Value::Object(call.out)).collect()
    }

    #[test]
    fn ignored_statuses_follow_from_the_calls_before() {
        let out = outputs(
            r#"
{"fn":"MPI_Recv","args":{"source":"MPI_PROC_NULL","tag":1,"comm":"world"},"out":{"status":{"ignored":true}}}
{"fn":"MPI_Sendrecv","args":{"dest":1,"sendtag":5,"source":2,"recvtag":6},"out":{"status":{"ignored":true}}}
{"fn":"MPI_Mprobe","args":{"source":3,"tag":7,"comm":"world"},"out":{"message":"message:1","status":{"ignored":true}}}
{"fn":"MPI_Imrecv","args":{"message":"message:1"},"out":{"message":"MPI_MESSAGE_NULL","request":"request:1"}}
{"fn":"MPI_Recv_init","args":{"source":4,"tag":8,"comm":"world"},"out":{"request":"request:2"}}
{"fn":"MPI_Isend","args":{"dest":4,"tag":8,"comm":"world"},"out":{"request":"request:3"}}
{"fn":"MPI_Waitall","args":{"count":4,"array_of_requests":["request:1","request:2","request:3","MPI_REQUEST_NULL"]},"out":{"array_of_statuses":{"ignored":true}}}
{"fn":"MPI_Start","args":{"request":"request:2"},"out":{"request":"request:2"}}
{"fn":"MPI_Waitany","args":{"count":2,"array_of_requests":["MPI_REQUEST_NULL","request:2"]},"out":{"index":1,"status":{"ignored":true}}}
{"fn":"MPI_Wait","args":{"request":"request:2"},"out":{"request":"request:2","status":{"ignored":true}}}
{"fn":"MPI_Irecv","args":{"source":"MPI_ANY_SOURCE","tag":9,"comm":"world"},"out":{"request":"request:4"}}
{"fn":"MPI_Testsome","args":{"incount":1,"array_of_requests":["request:4"]},"out":{"outcount":1,"array_of_indices":[0],"array_of_statuses":{"ignored":true}}}
{"fn":"MPI_Irecv","args":{"source":1,"tag":9,"comm":"world"},"out":{"request":"request:5"}}
{"fn":"MPI_Cancel","args":{"request":"request:5"},"out":{}}
{"fn":"MPI_Wait","args":{"request":"request:5"},"out":{"request":"MPI_REQUEST_NULL","status":{"ignored":true}}}"#,
        );
        let of = |source: i64, tag: i64| json!({"source": source, "tag": tag});
        assert_eq!(out[0]["status"], json!({"source": "MPI_PROC_NULL", "tag": "MPI_ANY_TAG"}));
        assert_eq!(out[1]["status"], of(2, 6));
        assert_eq!(out[2]["status"], of(3, 7));
        assert_eq!(out[6]["array_of_statuses"], json!([of(3, 7), empty(), null, empty()]));
        assert_eq!(out[8]["status"], of(4, 8));
        assert_eq!(out[9]["status"], empty());
        let matched = &out[11]["array_of_statuses"][0];
        assert_eq!(*matched, json!({"matched": {"source": "MPI_ANY_SOURCE", "tag": 9}, "world": true}));
        assert_eq!(out[14]["status"], json!({"ignored": true}));
        // The message was sent.
        let sent = |source: i64, tag: i64| (source, tag) == (2, 9);
        assert!(fits(matched, &of(2, 9), &sent));
        for other in
            [of(3, 9), of(2, 8), json!({"source": "MPI_ANY_SOURCE", "tag": 9}), Value::Null, json!({})]
        {
            assert!(!fits(matched, &other, &|_, _| other["source"] != 3), "{other}");
        }
    }

    #[test]
    fn after_an_error_each_request_has_its_own() {
        let failed = outputs(
            r#"
{"fn":"MPI_Irecv","args":{"source":1,"tag":2,"comm":"world"},"out":{"request":"request:1"}}
{"fn":"MPI_Waitall","args":{"count":1,"array_of_requests":["request:1"]},"out":{"array_of_statuses":{"ignored":true}},"error":17}"#,
        );
        let status = &failed[1]["array_of_statuses"][0];
        let any = |_: i64, _: i64| true;
        for (theirs, is_one) in [
            (json!({"source": 1, "tag": 2, "error": 0}), true),
            (json!({"source": 1, "tag": 2, "error": 15}), true),
            (json!({"error": 18}), true),
            (json!({"error": 0}), false),
            (json!({"source": 1, "tag": 2}), false),
            (json!({"source": 1, "tag": 3, "error": 15}), false),
        ] {
            assert_eq!(fits(status, &theirs, &any), is_one, "{theirs}");
        }
    }
}
