use super::*;
use proptest::prelude::*;

fn entries() -> impl Strategy<Value = Vec<Aggregate>> {
    let entry = (0u32..4, 0u16..3, 1u64..1000, 1u64..1 << 40, 0u64..1 << 50).prop_map(
        |(site, function, calls, time, bytes)| {
            let (mean, timed) = (time / calls, function > 0);
            Aggregate {
                site: site.checked_sub(1),
                function,
                calls,
                time_ns: if timed { time as f64 } else { 0.0 },
                time_sq: (mean as f64).powi(2) * calls as f64,
                min_ns: (mean / 2) as f64,
                max_ns: (mean * 2) as f64,
                sent: bytes,
                received: bytes / 3,
            }
        },
    );
    prop::collection::vec(entry, 0..8)
}

fn made(ranks: &[(Vec<Aggregate>, bool)]) -> Vec<Totals> {
    let (app, library) = ("/bin/app".to_owned(), "/lib/libx.so".to_owned());
    let site = |module, offset, caller| Site { module, offset, caller };
    let of = |(rank, (entries, turned)): (usize, &(Vec<Aggregate>, bool))| {
        // Modules and sites are numbered as each rank met them.
        let (modules, sites) = match turned {
            false => ([app.clone(), library.clone()], [site(0, 64, 0), site(1, 16, 1), site(0, 80, 0)]),
            true => ([library.clone(), app.clone()], [site(1, 80, 0), site(1, 64, 0), site(0, 16, 2)]),
        };
        let mut totals = Totals::of(rank as u32 * 3 / 2, &modules, &sites, entries);
        // How calls at the first site came there, which differs after the second function.
        let outer = if rank < 3 { 7 } else { 9 };
        let (first, library) = (u32::from(*turned), u32::from(!turned));
        for function in 1..3 {
            let functions = vec![(first, 5), (library, outer)];
            totals.add_way(function, vec![(first, 80)], Way { functions, several: false });
        }
        totals
    };
    ranks.iter().enumerate().map(of).collect()
}

fn joined(parts: impl IntoIterator<Item = Totals>) -> Totals {
    parts.into_iter().fold(Totals::default(), |mut all, part| {
        all.join(part);
        all
    })
}

/// Totals by name: numbers of modules depend on the order of joining.
fn named(totals: &Totals) -> Vec<String> {
    let mut lines: Vec<String> = totals.known().map(|place| format!("{place:?}")).collect();
    lines.sort();
    lines.extend(totals.shares().map(|share| format!("{share:?}")));
    lines
}

proptest! {
    #[test]
    fn they_come_back_and_any_order_of_ranks_gives_the_same(
        ranks in prop::collection::vec((entries(), any::<bool>()), 0..6),
        split in any::<prop::sample::Index>(),
    ) {
        let parts = made(&ranks);
        let all = joined(parts.clone());
        let bytes = all.encode();
        prop_assert_eq!(Totals::decode(&bytes), Some(all.clone()));
        prop_assert_eq!(named(&joined(parts.iter().rev().cloned())), named(&all));
        // As the tree has it: some first, and what they come to travels.
        let (left, right) = parts.split_at(split.index(parts.len() + 1));
        let halves = [left, right].map(|half| Totals::decode(&joined(half.to_vec()).encode()).unwrap());
        prop_assert_eq!(named(&joined(halves)), named(&all));
        // A naive sum.
        let calls: u64 = ranks.iter().flat_map(|(entries, _)| entries).map(|entry| entry.calls).sum();
        prop_assert_eq!(all.places().map(|(.., total)| total.calls).sum::<u64>(), calls);
        prop_assert_eq!(all.shares().map(|(.., share)| share.calls).sum::<u64>(), calls);
        // Details are behind the rest, which may stand without them.
        let plain = Totals { details: BTreeMap::new(), ..all.clone() };
        let alone = plain.encode();
        prop_assert_eq!(Totals::decode(&alone), Some(plain));
        prop_assert!(bytes.starts_with(&alone));
        let between = alone.len() + all.details.len().min(1);
        for cut in (0..bytes.len()).filter(|&cut| cut != alone.len()) {
            let cut_off = Totals::decode(&bytes[..cut]);
            prop_assert!(cut_off.is_none() || cut > between, "{}", cut);
        }
        for known in all.known() {
            let own = known.spread.filter(|_| known.function != SEVERAL);
            prop_assert_eq!(own.map(|spread| spread.fewest <= spread.most), own.map(|_| true));
            prop_assert!(own.is_none_or(|spread| spread.least().len() <= spread.ranks as usize));
        }
    }

    #[test]
    fn any_bytes_are_totals_or_not(bytes: Vec<u8>) {
        let _ = Totals::decode(&bytes);
    }

    #[test]
    fn times_of_ranks_keep_eighteen_bits(ns: u64, bits in 0u32..64) {
        let ns = ns >> bits;
        let back = unpacked(packed(ns));
        prop_assert!(packed(ns) < 1 << 24);
        prop_assert!(back.abs_diff(ns) <= ns >> SHARE_BITS, "{ns} {back}");
        prop_assert_eq!(packed(back), packed(ns));
    }
}

#[test]
fn extremes_name_their_ranks_and_the_lowest_of_equal_ones() {
    let entry = |time_ns: f64, min_ns: f64, max_ns: f64| Aggregate {
        site: Some(0),
        calls: 2,
        time_ns,
        min_ns,
        max_ns,
        ..Aggregate::default()
    };
    let modules = ["/bin/app".to_owned()];
    let of = |rank, entries: &[Aggregate]| Totals::of(rank, &modules, &[Site::default()], entries);
    // Two threads of rank 1 take the most together.
    let parts = [
        of(2, &[entry(9.0, 4.0, 5.0)]),
        of(1, &[entry(6.0, 3.0, 3.0), entry(5.0, 1.0, 4.0)]),
        of(3, &[entry(9.0, 1.0, 5.0)]),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let all = joined(order.map(|part| parts[part].clone()));
        let (_, _, total) = all.places().next().unwrap();
        let extremes = [total.shortest, total.longest, total.most].map(|one| (one.ns, one.rank));
        assert_eq!((total.calls, total.time_ns, extremes), (8, 29, [(1, 1), (5, 2), (11, 1)]));
    }
}

#[test]
fn a_rank_and_function_takes_few_bytes() {
    let modules = ["/opt/app/bin/solver".to_owned()];
    let sites: Vec<Site> = (0..5).map(|n| Site { offset: 4000 + 60 * n, ..Site::default() }).collect();
    let of = |rank: u32| {
        let entry = |function: u16| Aggregate {
            site: Some(function.into()),
            function,
            calls: 10_000,
            time_ns: f64::from(rank * 7919 % 1009 + 1) * 123_456.7,
            time_sq: 1e13 / f64::from(rank + 1),
            min_ns: 100.0 + f64::from(rank),
            max_ns: 1e6 * f64::from(rank % 7),
            sent: 1 << 30,
            received: 1 << 30,
        };
        Totals::of(rank, &modules, &sites, &(0..5).map(entry).collect::<Vec<_>>())
    };
    let bytes = joined((0..1000).map(of)).encode().len();
    assert!(bytes < 5 * 1000 * 4 + 600, "{bytes}");
}

#[test]
fn the_ranks_with_the_least_time_are_known() {
    let modules = ["/bin/app".to_owned()];
    let of = |rank: u32, calls: u64, time_ns: f64| {
        let entry = Aggregate { site: Some(0), calls, time_ns, ..Aggregate::default() };
        Totals::of(rank, &modules, &[Site::default()], &[entry])
    };
    let all = joined((0..9).map(|rank| of(rank, 5, f64::from((rank * 7 + 3) % 9 + 1) * 100.0)));
    let all = Totals::decode(&all.encode()).unwrap();
    let spread = *all.known().next().unwrap().spread.unwrap();
    assert_eq!((spread.ranks, spread.fewest, spread.most, spread.is_even()), (9, 5, 5, true));
    let least: Vec<_> = spread.least().iter().map(|one| (one.ns, one.rank)).collect();
    assert_eq!(least, [(100, 6), (200, 1), (300, 5), (400, 0)]);
    // One that was counted and not timed calls here too.
    let more = joined([all, of(9, 4, 0.0)]);
    let spread = *more.known().next().unwrap().spread.unwrap();
    assert_eq!((spread.ranks, spread.is_even(), spread.least()[0].rank), (10, false, 6));
}

#[test]
fn ways_are_what_all_have_in_common() {
    let way = |functions: &[u64], several| Way {
        functions: functions.iter().map(|&at| (0, at)).collect(),
        several,
    };
    let join = |one: &[u64], other: &[u64]| {
        let mut joined = way(one, false);
        joined.join(&way(other, false));
        joined
    };
    assert_eq!(join(&[1, 2], &[1, 2]), way(&[1, 2], false));
    assert_eq!(join(&[1, 2], &[1, 3]), way(&[1], true));
    assert_eq!(join(&[1, 2], &[1]), way(&[1], true));
    assert_eq!(join(&[1], &[2]), way(&[], true));
    assert_eq!(join(&[], &[]), way(&[], false));
}
