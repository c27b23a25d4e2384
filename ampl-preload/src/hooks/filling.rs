//! Statuses that a call has filled are noted for later calls that read them.

use ampl_core::mpi::Kind;
use ampl_trace::args::NO_STATUS;

use crate::hook_plan::HookPlan;
use crate::thread_state::ThreadState;

/// True where the status at `at` is one of the program's, which later calls may read.
#[inline(always)]
pub fn is_program_s(state: &ThreadState, at: usize) -> bool {
    at != state.statuses.as_ptr() as usize && !state.reader.ignores_status(at)
}

/// Notes that the status at `at` has been filled, which is recorded as `word`.
#[inline(always)]
pub fn note(state: &mut ThreadState, at: usize, word: u64) {
    if is_program_s(state, at) {
        state.filled.one(at, word);
    }
}

/// Notes the status of a call that succeeded and whose outputs are not recorded, as it is known to be as before.
///
/// # Safety
/// `words` must be the arguments of a C call that has just succeeded.
#[inline(always)]
pub unsafe fn again(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) {
    let Some(at) = plan.status.map(|index| words[usize::from(index)]) else { return };
    if is_program_s(state, at) {
        let told = match plan.receives {
            // SAFETY: the caller's promise.
            true => unsafe { state.reader.load(Kind::Status, at, 0) }.unwrap_or(NO_STATUS),
            false => NO_STATUS,
        };
        state.filled.one(at, told);
    }
}
