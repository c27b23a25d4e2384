//! A headless browser and one page in it, over the pipes of its debugging protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Scratch, program};

/// Longest time for an answer, or for a page to become true.
const LONGEST: Duration = Duration::from_secs(120);

/// Names that distributions give the browser.
const NAMES: &[&str] = &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// A browser that shows one page.
pub struct Browser {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// Events of the page so far.
    events: Vec<Value>,
    /// Its profile, which goes with it.
    profile: Scratch,
}

impl Browser {
    /// A browser with an empty page.
    ///
    /// # Panics
    /// When there is none on this machine, or it does not start.
    pub fn start() -> Self {
        let profile = Scratch::new("browser");
        // The protocol's pipes are descriptors 3 and 4.
        let script = "exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program(NAMES));
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.args(["--disable-background-networking", "--remote-debugging-pipe", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("a shell starts");
        let (requests, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (send, answers) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 1) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if send.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser =
            Self { child, requests, answers, session: None, next: 0, events: Vec::new(), profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Result of a method of the protocol.
    ///
    /// # Panics
    /// With the browser's error, or without an answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut request = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        self.requests.write_all(&bytes).expect("the browser reads");
        loop {
            let answer =
                self.answers.recv_timeout(LONGEST).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Shows the file, in a window of that size.
    pub fn open(&mut self, file: &Path, [width, height]: [u32; 2]) {
        self.resize([width, height]);
        let url = format!("file://{}", file.canonicalize().expect("the page exists").display());
        self.call("Page.navigate", json!({"url": url}));
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'");
    }

    /// Gives the window another size, in pixels.
    pub fn resize(&mut self, [width, height]: [u32; 2]) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Value of an expression of the page.
    ///
    /// # Panics
    /// When it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression of the page is true.
    ///
    /// # Panics
    /// When it does not become so.
    pub fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != true {
            assert!(start.elapsed() < LONGEST, "never true: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases a key; `shift` is held where it is set.
    pub fn key(&mut self, name: &str, shift: bool) {
        let modifiers = if shift { 8 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": name, "modifiers": modifiers}));
        }
    }

    /// Drags the pointer from one point of the window to another.
    pub fn drag(&mut self, from: [f64; 2], to: [f64; 2]) {
        let middle = [f64::midpoint(from[0], to[0]), f64::midpoint(from[1], to[1])];
        let steps = [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", middle, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ];
        for (kind, [x, y], buttons) in steps {
            let button = if kind == "mouseMoved" && buttons == 0 { "none" } else { "left" };
            let params =
                json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Addresses that the page has asked for.
    pub fn requested(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        asked.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// Errors, warnings and everything else that the page has written to the console.
    pub fn complaints(&self) -> Vec<&Value> {
        let kinds = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        // Reading a canvas back, as the tests do, is called slow by the browser.
        let is_hint = |event: &Value| {
            let entry = &event["params"]["entry"];
            entry["level"] == "warning" && entry["source"] == "rendering"
        };
        let told = self.events.iter().filter(|event| kinds.iter().any(|kind| event["method"] == *kind));
        told.filter(|event| !is_hint(event)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell became the browser, whose own group its children are in.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(self.profile.path());
    }
}
