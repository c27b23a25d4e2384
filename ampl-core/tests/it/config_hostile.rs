//! Texts that were made to break a parser: each gives an error or settings, soon, and nothing else.

use ampl_core::config::{Cause, Config, ConfigErrors};

use crate::common::{accepted, one_error};

fn errors(text: &str) -> ConfigErrors {
    Config::parse(text).expect_err("no job file")
}

/// A message is a line that people read, whatever stands in the text.
#[track_caller]
fn is_printable(text: &str) {
    let printed = errors(text).render("job.toml");
    for line in printed.lines() {
        assert!(line.starts_with("ampl: ") && line.chars().count() < 600, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for depth in [100, 1_000, 100_000] {
        let dotted = vec!["a"; depth].join(".");
        for text in [
            format!("window = {}{}", "[".repeat(depth), "]".repeat(depth)),
            format!("window = {}", "[".repeat(depth)),
            format!("window = {}1{}", "{a=".repeat(depth), "}".repeat(depth)),
            format!("window = {}", "{a=".repeat(depth)),
            format!("{dotted} = 1"),
            format!("[window]\n{dotted} = 1"),
            format!("[{dotted}]\nb = 1"),
            format!("[[{dotted}]]\nb = 1"),
        ] {
            is_printable(&text);
        }
    }
    // As deep as tables and keys may be, one inside the other.
    let dotted = vec!["a"; 70].join(".");
    is_printable(&format!("window = {}1{}", format!("{{{dotted}=").repeat(70), "}".repeat(70)));
}

/// On a thread with a small stack: the library is in programs that limit theirs.
#[test]
fn little_stack_is_enough() {
    let dotted = vec!["a"; 70].join(".");
    let texts = [
        format!("window = {}", "[".repeat(100_000)),
        format!("window = {}1{}", format!("{{{dotted}=").repeat(60), "}".repeat(60)),
        format!("{} = 1", vec!["a"; 100_000].join(".")),
    ];
    let parse = move || texts.iter().all(|text| Config::parse(text).is_err());
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(parse);
    assert!(thread.expect("a thread").join().expect("no overflow"));
}

#[test]
fn long_texts_are_read_in_time() {
    accepted(&"# nothing\n".repeat(200_000));
    is_printable(&format!("[sampling]\nseed = {}", "9".repeat(1 << 20)));
    is_printable(&format!("[output]\njournal = \"{}\"", "x".repeat(1 << 20)));
    is_printable(&format!("{} = 1", "k".repeat(1 << 20)));
    is_printable(&format!("[window]\nmarker = \"{}\"", "\\u0007".repeat(1 << 16)));
    // Nobody reads an error for each of so many lines.
    let wrong = "[[site]]\nmatch = 'MPI_Nothing'\n".repeat(5_000);
    assert_eq!(errors(&wrong).0.len(), 100);
    let many = (0..50_000).map(|line| format!("key{line} = 1\n")).collect::<String>();
    assert_eq!(errors(&many).0.len(), 100);
    one_error(&"[[site]]\n".repeat(10_001), "1:3", "'site' cannot be 10001", "at most 10000 tables");
}

/// Strata of a large job are groups of ranks that alternate: their ranges are compared in one pass.
#[test]
fn groups_of_many_ranges_are_compared_in_time() {
    let ranks =
        |first: u32| (0..100_000).map(|at| (first + 4 * at).to_string()).collect::<Vec<_>>().join(",");
    let group = |first| format!("[[group]]\nname = 'g{first}'\nmembers = '{}'\n", ranks(first));
    let three = group(0) + &group(1) + &group(2);
    assert_eq!(accepted(&three).0.groups.len(), 3);
    let pinned = format!("{}pinned = '{}'\n", group(3), ranks(3));
    accepted(&(three.clone() + &pinned));
    one_error(
        &(three + "[[group]]\nname = 'h'\nmembers = '399997-400001'"),
        "12:11",
        "rank 399997 is already",
        "",
    );
    one_error(&format!("{}pinned = '3,7-8'", group(3)), "4:10", "ranks 7-8", "'members'");
}

#[test]
fn bytes_that_are_no_toml_are_errors() {
    let controls: String = (0..32).filter_map(char::from_u32).filter(|c| !c.is_whitespace()).collect();
    for text in [
        "\u{feff}[sampling",
        "\0\0\0",
        "seed\0 = 1",
        "[sampling]\nseed = \u{1}",
        "\u{202e}[gnilpmas]\n",
        "= 1",
        "[]\n",
        "[[]]\n",
        "\"\"\"\n",
        "'''",
        "[sampling]\nseed = 1979-05-27T07:32:00Z99",
        "a = 1\ra = 2",
        controls.as_str(),
    ] {
        is_printable(text);
    }
    // What editors put first is no fault.
    accepted("\u{feff}[sampling]\r\nseed = 1\r\n");
}

#[test]
fn a_key_that_is_written_twice_is_an_error_at_the_second() {
    for (text, place) in [
        ("[sampling]\nseed = 1\nseed = 1\n", "3:1"),
        ("[sampling]\n[sampling]\n", "2:2"),
        ("[sampling]\nseed = 1\n[window]\n[sampling]\nfloor = 3\n", "4:2"),
        ("sampling.seed = 1\n[sampling]\nfloor = 3\n", "2:2"),
        ("window = { every = 1, every = 2 }", "1:23"),
        ("site = [{ match = 'MPI_Send' }]\n[[site]]\nmatch = 'MPI_Recv'", "2:3"),
    ] {
        one_error(text, place, "not valid TOML: duplicate key", "correct the line");
    }
}

#[test]
fn numbers_that_64_bits_do_not_hold_are_errors() {
    for number in
        ["9223372036854775808", "-9223372036854775809", "0x8000000000000000", "99999999999999999999"]
    {
        one_error(&format!("[sampling]\nseed = {number}"), "2:8", "integer number overflowed", "");
    }
    one_error("[trace]\ntime_error = 1e999", "2:14", "floating-point number overflowed", "");
    // Of a key that nobody knows the name is what is wrong.
    let unknown = errors("[sampling]\nsead = 9223372036854775808");
    assert!(
        matches!(unknown.0[..], [ref only] if matches!(only.cause, Cause::UnknownKey { .. })),
        "{unknown}"
    );
    let seed = |number: &str| accepted(&format!("[sampling]\nseed = {number}")).0.sampling.seed;
    assert_eq!((seed("+7"), seed("0b111"), seed("0o7"), seed("1_0")), (7, 7, 7, 10));
    assert_eq!((seed("0x7fffffffffffffff"), seed("9223372036854775807")), (i64::MAX as u64, i64::MAX as u64));
}
