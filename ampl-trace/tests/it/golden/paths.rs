//! Calls that come to their sites by several ways.

use ampl_trace::model::Site;
use ampl_trace::structure::RankStructure;

use super::{FORMS, RANKS, made, read, structure};

/// A rank with callers: terminals come to their sites from two places by turns, but for every third, whose way is not known.
pub fn of(rank: u32) -> RankStructure {
    let mut structure = structure(rank);
    let outer = structure.sites.len() as u32;
    let caller = |offset, caller| Site { module: 0, offset, caller };
    structure.sites.extend([caller(0x4000, 0), caller(0x4100, outer + 1), caller(0x4200, outer + 1)]);
    for signature in structure.threads.iter_mut().flat_map(|thread| &mut thread.signatures) {
        let Some(site) = signature.site.checked_sub(1).filter(|site| site % 3 != 2) else { continue };
        let own = Site { caller: outer + 2 + site % 2, ..structure.sites[site as usize] };
        let known = structure.sites.iter().position(|site| *site == own).unwrap_or_else(|| {
            structure.sites.push(own);
            structure.sites.len() - 1
        });
        signature.path = known as u32 + 1;
    }
    structure
}

#[test]
fn ways_come_back() {
    let found = read(&made(FORMS[3])).expect("a trace");
    for rank in 0..RANKS {
        assert_eq!(found.structure.rank(rank), Some(of(rank)));
    }
}
