//! Pictures of a report for the guide: `pictures REPORT DIRECTORY`.

use std::path::{Path, PathBuf};

use ampl_tests::browser::Browser;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Size of the window, pixels.
const WINDOW: [u32; 2] = [1200, 900];

/// A picture: its name, and the first and the last panel on it. The head of the page has no panel.
const PICTURES: [(&str, &str, &str); 3] =
    [("report", "body", "strip"), ("ranks", "heat", "heat"), ("timeline", "timeline", "timeline")];

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [report, directory] = &arguments[..] else { panic!("usage: pictures REPORT DIRECTORY") };
    let report = report.canonicalize().expect("a report");
    let mut browser = Browser::start();
    browser.open(&report, WINDOW);
    for (name, first, last) in PICTURES {
        let png = picture(&mut browser, first, last);
        let path = directory.join(name).with_extension("png");
        write(&path, &png);
        println!("pictures: {} ({} kB)", path.display(), png.len() / 1000);
    }
}

/// The page from the top of one panel to the end of another, as PNG.
fn picture(browser: &mut Browser, first: &str, last: &str) -> Vec<u8> {
    let top = match first {
        "body" => "0".to_owned(),
        panel => format!("document.getElementById('{panel}').getBoundingClientRect().top + scrollY - 8"),
    };
    let bottom = format!("document.getElementById('{last}').getBoundingClientRect().bottom + scrollY + 8");
    let [top, bottom] = [top, bottom].map(|place| browser.value(&place).as_f64().expect("a place"));
    let clip = json!({"x": 0, "y": top, "width": WINDOW[0], "height": bottom - top, "scale": 1});
    let asked = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
    let answer = browser.call("Page.captureScreenshot", asked);
    STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64")
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
