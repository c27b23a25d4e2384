//! Questions about the program's code, which the library answers.

use super::Shared;

/// Maps a return address to the path of its module and the offset in it.
pub type Resolve = fn(u64) -> (String, u64);
/// Finds the way to the calling thread's call; `None` where that is not known.
pub type Callers = fn() -> Option<SampledCall>;
/// Address of the first byte of the function that returns to an address.
pub type FunctionAround = fn(u64) -> Option<u64>;
/// Name of the function whose code begins at an offset of a module, as the module's symbols have it.
pub type FunctionName = fn(&str, u64) -> Option<String>;
/// Callers of a sampled call that are recorded.
pub const SAMPLED_CALLERS: usize = 5;
/// Return addresses of a sampled call that are compared with those of others.
pub const SAMPLED_FRAMES: usize = 48;

/// The way to a call.
#[derive(Clone, Debug, Default)]
pub struct SampledCall {
    /// Addresses of the functions that lead there, outwards from the caller of the function that makes the call; at most
    /// [`SAMPLED_CALLERS`].
    pub functions: Vec<u64>,
    /// Return addresses, of every function the innermost, outwards from the call; at most [`SAMPLED_FRAMES`].
    pub addresses: Vec<u64>,
    /// True where there are no more of these.
    pub is_whole: bool,
}

impl Shared {
    /// Has `callers` sample how calls reach sites. To be called before the first thread registers.
    pub fn sample_with(&self, callers: Callers) {
        let _ = self.callers.set(callers);
    }

    pub(crate) fn callers(&self) -> Option<Callers> {
        self.callers.get().copied()
    }

    /// Has `around` find the functions that make calls. To be called before the first thread registers.
    pub fn find_functions_with(&self, around: FunctionAround) {
        let _ = self.functions.set(around);
    }

    pub(crate) fn function_around(&self, address: u64) -> Option<u64> {
        self.functions.get()?(address)
    }

    /// Has `names` name functions that are regions. Without it they have their places for names.
    pub fn name_functions_with(&self, names: FunctionName) {
        let _ = self.function_names.set(names);
    }

    pub(crate) fn function_name(&self, path: &str, offset: u64) -> Option<String> {
        self.function_names.get()?(path, offset)
    }
}
