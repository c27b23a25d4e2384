//! Arrays of numbers of which only mean and ends are stored.

use ampl_core::mpi::{Function, PREDEFINED};
use ampl_core::value::{Spread, Value};
use ampl_trace::args::{NO_ARRAY, Names, decode, parts, predefined_word};
use ampl_trace::spread::{SPREAD_WORDS, put_spread};

/// No place has a name.
struct Nothing;

impl Names for Nothing {
    fn place(&self, _: u64) -> Value {
        Value::Absent
    }
    fn request(&mut self, word: u64) -> u64 {
        word
    }
}

#[test]
fn spreads_stand_in_place_of_arrays() {
    let gatherv = Function::by_name("MPI_Gatherv").unwrap().spec();
    let byte = predefined_word(PREDEFINED.len() as u16 - 1);
    let mut words = vec![0x40, 7, byte, 0x80];
    assert!(put_spread(&mut words, [5, -1, 8].into_iter()));
    let counts = words.len();
    words.extend([NO_ARRAY, byte, 2, 7]);
    let (args, _) = decode(gatherv, 0, &words, &mut Nothing).unwrap();
    assert_eq!(args[4], ("recvcounts", Value::Spread(Spread { count: 3, sum: 12, min: -1, max: 8 })));
    assert_eq!((args[4].1.to_string(), &args[7].1), ("{mean: 4, min: -1, max: 8}".into(), &Value::Int(2)));
    let parts = parts(gatherv, &words).unwrap();
    assert_eq!((parts[4].1, parts[7].1), (&[][..], &[2][..]), "no element is known");
    for cut in 5..words.len() {
        assert_eq!(decode(gatherv, 0, &words[..cut], &mut Nothing), None, "{cut}");
    }
    words[counts - SPREAD_WORDS] = 0;
    assert_eq!(decode(gatherv, 0, &words, &mut Nothing), None, "a mean of nothing");
    assert!(!put_spread(&mut words, [].into_iter()));
}
