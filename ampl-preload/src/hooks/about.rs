//! Arguments of a call that may never return, for readers of the journal.

use ampl_core::mpi::Function;
use ampl_core::value::ObjectKind;
use ampl_trace::current::ends;

use super::encode;
use crate::hook_plan::{HookPlan, NOT_ABOUT};
use crate::process::Process;
use crate::symbol::Language;
use crate::thread_state::ThreadState;

/// Notes the arguments in [`HookPlan::about`] of the call that is going to be made.
#[inline(always)]
pub fn about(state: &ThreadState, language: Language, plan: &HookPlan, words: &[usize]) {
    if plan.about[0] == NOT_ABOUT {
        if plan.names_request {
            let requests = state.named.words();
            state.thread.current.about(requests.first().copied().unwrap_or(0), requests.len() as u64);
        }
        return;
    }
    let [first, second, comm] = match language {
        // SAFETY: positions of parameters of the function, whose arguments these are.
        Language::C => unsafe {
            // One by one: an array of them would be put together first.
            let [first, second, comm] = &plan.about;
            [
                *words.get_unchecked(usize::from(*first)),
                *words.get_unchecked(usize::from(*second)),
                *words.get_unchecked(usize::from(*comm)),
            ]
        },
        // Empty where they could not be made out.
        Language::Fortran => {
            plan.about.map(|index| state.words.get(usize::from(index)).copied().unwrap_or(0))
        }
    };
    state.thread.current.about(ends(first as i32, second as i32), comm as u64);
}

/// Registers objects that the call has given out, and records communicators' handles for readers.
///
/// # Safety
/// As [`encode::given`].
#[cold]
pub unsafe fn given(state: &mut ThreadState, function: Function, plan: &HookPlan, words: &[usize]) {
    let mut communicators = Vec::new();
    let take = |process: &Process, kind, handle| {
        process.given(kind, handle);
        if kind == ObjectKind::Comm {
            communicators.push(handle);
        }
    };
    // SAFETY: the caller's promise.
    unsafe { encode::given(state, function, plan, words, take) };
    for handle in communicators {
        let word = state.process.object(ObjectKind::Comm, handle).word;
        state.thread.communicator(word, handle);
    }
}
