//! Callers of the sites of a table: only where call paths are told apart, so others cost nothing.

use super::stream::{Broken, Field, In, Out};
use super::write::site_code;
use crate::site::Site;

/// Bit beside the ranks of the job that marks sites with callers.
pub const PATHS: u64 = 1 << 32;
const CONTEXT: u32 = 3;

/// True where any of `sites` has a caller.
pub fn have_callers(sites: &[Site]) -> bool {
    sites.iter().any(|site| site.caller != 0)
}

/// Writes the callers of all `sites`.
pub fn write(out: &mut Out, sites: &[Site]) {
    let mut next = 1;
    for site in sites {
        out.put(Field::Site, CONTEXT, site_code(site.caller, next));
        next = next.max(site.caller.saturating_add(1));
    }
}

/// Reads the callers of all `sites`, each of which is one of them.
pub fn read(stream: &mut In, sites: &mut [Site]) -> Result<(), Broken> {
    let (count, mut next) = (sites.len(), 1u32);
    for site in sites {
        let caller = match stream.get(Field::Site, CONTEXT)? {
            0 => 0,
            1 => i64::from(next),
            code if code % 2 == 0 => i64::from(next) - 1 - ((code - 2) / 2) as i64,
            code => i64::from(next).wrapping_add(1).wrapping_add(((code - 3) / 2) as i64),
        };
        let known = usize::try_from(caller).ok().filter(|&caller| caller <= count);
        site.caller = known.ok_or_else(|| stream.broken())? as u32;
        next = next.max(site.caller + 1);
    }
    Ok(())
}
