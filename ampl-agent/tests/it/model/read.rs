//! Comparison of a trace with the calls that were made.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::ids;
use ampl_core::value::{ObjectKind, Value};
use ampl_trace::args::{self, Named, Names};
use ampl_trace::decode::{Call, Calls};
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::record::CALL_ERROR;

use super::{EXACT, Made};

/// Every word is its own name.
struct Same;

impl Names for Same {
    fn place(&self, word: u64) -> Value {
        Value::Address(word)
    }
    fn request(&mut self, word: u64) -> u64 {
        word
    }
}

/// `values` without the names of requests, and those.
fn apart(values: &Named) -> (Named, Vec<u64>) {
    let mut names = Vec::new();
    let mut one = |value: &Value| match *value {
        Value::Object(ObjectKind::Request, name) => {
            names.push(name);
            Value::Object(ObjectKind::Request, 0)
        }
        ref other => other.clone(),
    };
    let blank = values.iter().map(|(name, value)| {
        let value = match value {
            Value::List(all) => Value::List(all.iter().map(&mut one).collect()),
            value => one(value),
        };
        (*name, value)
    });
    (blank.collect(), names)
}

/// Checks that `bytes` hold all of `made`: every call, and the times of kept windows.
///
/// `kept` decides for a window; where it returns `None`, the journal does.
pub fn check(bytes: &[u8], made: &[Made], kept: impl Fn(u64) -> Option<bool>) -> Compacted {
    let read = compact(bytes, EXACT).expect("a whole header");
    assert_eq!(read.damage, Vec::<String>::new());
    let said: BTreeMap<u64, bool> =
        read.rank.windows.entries().iter().map(|window| (window.window, window.kept)).collect();
    let kept = |window: u64| kept(window).unwrap_or_else(|| said[&window]);
    let mut found: BTreeMap<(usize, u64), Call> = BTreeMap::new();
    for call in Calls::new(&read.structure, &read.rank) {
        let call = call.expect("decodable");
        assert!(call.count > 0);
        for seq in call.seq..call.seq + call.count {
            let again = found.insert((call.thread as usize, seq), call.clone());
            assert!(again.is_none(), "twice: {call:?}");
        }
    }
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    let mut times: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for made in made {
        if made.recorded {
            let call =
                found.remove(&(made.thread, made.seq)).unwrap_or_else(|| panic!("not there: {made:?}"));
            same(made, &call, &read, &mut names);
            let timed = call.timed.inspect(|timed| {
                // Of failed polls in a row there is the start of the first, and how long all of them took.
                if made.seq == call.seq {
                    assert_eq!(timed.start_ns, made.start as i64, "{made:?} {call:?}");
                }
                let sum = times.entry((made.thread, call.seq)).or_default();
                *sum += made.end - made.start;
                if made.seq + 1 == call.seq + call.count {
                    assert_eq!(timed.duration_ns, Some(*sum), "{made:?} {call:?}");
                }
            });
            let window = timed.map(|timed| timed.window);
            let kept = kept(made.window) && made.function != ids::MPI_RECV;
            assert_eq!(window, kept.then_some(made.window), "{made:?} {call:?}");
        }
        names.retain(|identity, _| !made.ends.contains(identity));
    }
    assert!(found.is_empty(), "nobody made these: {found:?}");
    read
}

/// `call` is what was `made`. Requests have one name while they live, and no other has it.
fn same(made: &Made, call: &Call, read: &Compacted, names: &mut BTreeMap<u64, u64>) {
    assert_eq!(call.function, made.function);
    let (code, words) = match made.flags & CALL_ERROR {
        0 => (0, &made.words[..]),
        _ => (made.words[0] as i64, &made.words[1..]),
    };
    let (args, out) = args::decode(made.function.spec(), made.flags, words, &mut Same).expect("they fit");
    assert_eq!(call.code, code);
    let mut known: BTreeSet<u64> = names.values().copied().collect();
    for (expected, found) in [(&args, &call.args), (&out, &call.out)] {
        let ((expected, identities), (found, named)) = (apart(expected), apart(found));
        assert_eq!((&expected, identities.len()), (&found, named.len()), "{made:?} {call:?}");
        for (identity, name) in identities.into_iter().zip(named) {
            let before = *names.entry(identity).or_insert_with(|| {
                assert!(known.insert(name), "{name} is another's: {made:?} {call:?}");
                name
            });
            assert_eq!(before, name, "{made:?} {call:?}");
        }
    }
    let site = call.site.map(|site| read.structure.sites[site as usize].offset);
    assert_eq!(site, Some(made.offset), "{made:?}");
}
