//! Damage of a journal's blocks.

use ampl_trace::journal::BlockKind;
use ampl_trace::record::Kind;
use ampl_trace::timing::{Decoder, Time};

use crate::common::{bytes_of, compacted, journal_header, push_block};

#[test]
fn damage_is_told_block_by_block_the_malformed_record_first() {
    use ampl_trace::record::header;
    let mut words = journal_header();
    let call = [header(Kind::Call, 0, 1, 4), 10, 20, 1 << 32];
    let first = [
        &[header(Kind::Signature, 0, 0, 2), 0, header(Kind::Open, 0, 0, 2), 7],
        &[header(Kind::Open, 0, 0, 6), 0, 0, 0, 0, 0][..],
        &call[..],
        &[header(Kind::Call, 0, 1, 9)],
    ]
    .concat();
    let second = [&[header(Kind::Call, 0, 1, 1)], &call[..], &[header(Kind::Signature, 0, 0, 1)]].concat();
    push_block(&mut words, BlockKind::Stream, 2, &first);
    push_block(&mut words, BlockKind::Stream, 2, &second);
    push_block(&mut words, BlockKind::Log, 2, &[2 << 32]);
    let end = words.len();
    words.extend([1; 8]);
    let found = compacted(&bytes_of(&words)).unwrap();
    let damage = [
        &format!("the journal cannot be read past word {end}"),
        "thread 2: a record at word 14 of a block is malformed",
        "thread 2: a Open record is too short",
        "thread 2: a Call record is too short",
        "thread 2: a Signature record is too short",
    ];
    assert_eq!(found.damage, damage);
    // Both whole calls are there.
    let mut times = Decoder::new(&found.rank.times).unwrap();
    assert_eq!(times.window().map(|(_, calls)| calls), Some(2));
    let time = |start_ns| Ok(Time { start_ns, duration_ns: 20, count: 1 });
    assert_eq!([0; 2].map(|terminal: u32| times.call(terminal.into())), [10, 10].map(time));
    assert_eq!(found.structure.threads[0].grammar.len(), 2);
}
