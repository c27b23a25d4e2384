//! Questions about the program's code, which the library answers.

use super::Shared;

/// Maps a return address to the path of its module and the offset in it.
pub type Resolve = fn(u64) -> (String, u64);
/// Address of the first byte of the function that returns to an address.
pub type FunctionAround = fn(u64) -> Option<u64>;
/// Name of the function whose code begins at an offset of a module, as the module's symbols have it.
pub type FunctionName = fn(&str, u64) -> Option<String>;

impl Shared {
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
