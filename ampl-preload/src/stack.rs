//! Where the calling thread's stack lies.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use crate::entry::entry;

/// The thread's own stack but for its guard, wherever the caller is; the first thread's as far as its limit lets it grow.
///
/// Found once: to find the first thread's the C library reads what the whole process has mapped.
pub fn own() -> Option<Range<u64>> {
    // SAFETY: the calling thread's own block.
    let known = unsafe { &mut (*entry()).own_stack };
    if known.end == 0 {
        *known = find()?;
    }
    Some(known.clone())
}

fn find() -> Option<Range<u64>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut base, mut size, mut guard) = (ptr::null_mut(), 0, 0);
    // SAFETY: places for the answers; attributes are read and given back where there are any.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut base, &raw mut size) == 0
            && libc::pthread_attr_getguardsize(attributes.as_ptr(), &raw mut guard) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let base = base.addr() as u64;
        found.then(|| base + guard.min(size) as u64..base + size as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_thread_s_and_stays() {
        let here = || {
            let place = 0u8;
            let at = std::hint::black_box(&raw const place).addr() as u64;
            let own = own().expect("a thread has one");
            assert!(own.contains(&at), "{own:?} {at:x}");
            assert_eq!(Some(own.clone()), find());
            assert_eq!(super::own(), Some(own.clone()));
            own
        };
        let first = here();
        let second = std::thread::spawn(here).join().expect("it has not panicked");
        assert!(first.end <= second.start || second.end <= first.start, "{first:?} {second:?}");
    }
}
