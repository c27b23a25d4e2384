//! What the tests of whole threads share.

use ampl_agent::{CallEnd, Thread};
use ampl_trace::timing::Settings;

/// Times as they were.
pub const EXACT: Settings = Settings { error: 0.0, floor_ns: 0 };

/// `call`, with these arguments, has returned. Says whether windows were closed.
pub fn leave(thread: &mut Thread, call: CallEnd, words: &[u64]) -> bool {
    let records = thread.records();
    let terminal =
        if records { thread.terminal(call.function, call.address, call.flags, words) } else { None };
    thread.leave(&CallEnd { terminal, ..call })
}
