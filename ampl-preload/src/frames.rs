//! Steps from a function's frame to its caller's, from the unwind tables of the loaded modules.
//!
//! The step of a return address is a rule that later walks follow without the tables. After a module was unloaded, a
//! walk may be wrong, but never reads memory that is gone.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Expression, LittleEndian, Operation, Pointer,
    RegisterRule, UnwindContext, UnwindSection, X86_64,
};

type Slice = EndianSlice<'static, LittleEndian>;

/// Where the caller's stack pointer is after the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// So far from the stack pointer.
    Sp(i64),
    /// So far from rbp.
    Bp(i64),
    /// In memory, so far from rbp: functions that align their stack.
    AtBp(i64),
}

/// Where the caller's rbp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Untouched.
    Same,
    /// In memory, so far from the caller's stack pointer.
    FromTop(i64),
    /// In memory, so far from rbp.
    FromBp(i64),
}

/// The way from a frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Just above the return address.
    pub top: Top,
    /// Of the caller.
    pub bp: Saved,
}

impl Step {
    /// True where it depends on the value of rbp.
    pub fn needs_bp(self) -> bool {
        !matches!(self.top, Top::Sp(_)) || matches!(self.bp, Saved::FromBp(_))
    }
}

/// Unwind data of the code behind a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where its function begins.
    pub function: u64,
    /// `None` where the way ends: the function has no caller, or it cannot be followed.
    pub step: Option<Step>,
}

/// The code that a call returns to at `address`; `None` without unwind information.
#[cold]
pub fn code(address: u64) -> Option<Code> {
    // A call may be the last instruction of its function.
    let call = address.checked_sub(1)?;
    let module = module(call)?;
    let index = module.index.clone()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(index.start);
    let header = EhFrameHdr::new(slice(index), LittleEndian).parse(&bases, 8).ok()?;
    let Pointer::Direct(start) = header.eh_frame_ptr() else { return None };
    let segment = module.segments.iter().find(|segment| segment.contains(&start))?;
    let bases = bases.set_eh_frame(start);
    let tables = EhFrame::new(slice(start..segment.end), LittleEndian);
    let function = header.table()?.fde_for_address(&tables, &bases, call, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let mut step = || {
        let row = function.unwind_info_for_address(&tables, &bases, &mut context, call).ok()?;
        let encoding = function.cie().encoding();
        let from_bp = |expression: gimli::UnwindExpression<usize>, last: Last| {
            relative(expression.get(&tables).ok()?, encoding, last)
        };
        let top = match row.cfa() {
            &CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => Top::Sp(offset),
            &CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => Top::Bp(offset),
            CfaRule::Expression(expression) => Top::AtBp(from_bp(*expression, Last::Value)?),
            _ => return None,
        };
        let bp = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Saved::Same,
            Some(RegisterRule::Offset(offset)) => Saved::FromTop(offset),
            Some(RegisterRule::Expression(expression)) => Saved::FromBp(from_bp(expression, Last::Address)?),
            Some(_) => return None,
        };
        let returns = row.register(X86_64::RA) == Some(RegisterRule::Offset(-8));
        (returns && !function.is_signal_trampoline()).then_some(Step { top, bp })
    };
    let step = step();
    Some(Code { function: function.initial_address(), step })
}

/// Kind of an expression's result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Address,
    /// The value in memory there.
    Value,
}

/// How far from rbp, if `expression` is as compilers write it for functions that align their stack.
fn relative(expression: Expression<Slice>, encoding: gimli::Encoding, last: Last) -> Option<i64> {
    let mut operations = expression.operations(encoding);
    let Ok(Some(Operation::RegisterOffset { register: X86_64::RBP, offset, .. })) = operations.next() else {
        return None;
    };
    let read = matches!(operations.next(), Ok(Some(Operation::Deref { .. })));
    (read == (last == Last::Value) && matches!(operations.next(), Ok(None))).then_some(offset)
}

/// Parts of a loaded module that unwinding needs.
#[derive(Debug, Default)]
struct Module {
    /// Its readable segments, as far as they are in its file.
    segments: Vec<Range<u64>>,
    /// `.eh_frame_hdr`.
    index: Option<Range<u64>>,
}

/// The module that `address` lies in.
fn module(address: u64) -> Option<Module> {
    struct Search {
        address: u64,
        found: Option<Module>,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record with that many headers, and the search is the one below.
        let (base, headers, search) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info.dlpi_addr, headers, &mut *search.cast::<Search>())
        };
        let range = |header: &libc::Elf64_Phdr, length: u64| {
            let start = base.wrapping_add(header.p_vaddr);
            start..start.saturating_add(length)
        };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        if !loaded().any(|header| range(header, header.p_memsz).contains(&search.address)) {
            return 0;
        }
        let readable = loaded().filter(|header| header.p_flags & libc::PF_R != 0);
        let segments: Vec<Range<u64>> = readable.map(|header| range(header, header.p_filesz)).collect();
        let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
        let index = index.map(|header| range(header, header.p_memsz));
        let is_there = |index: &Range<u64>| {
            segments.iter().any(|segment| segment.start <= index.start && index.end <= segment.end)
        };
        search.found = Some(Module { index: index.filter(is_there), segments });
        1
    }
    let mut search = Search { address, found: None };
    // SAFETY: the callback gets a pointer to the search and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// The bytes of `range`, a part of a readable segment of a module that is on the stack, and therefore loaded.
fn slice(range: Range<u64>) -> &'static [u8] {
    let length = (range.end - range.start) as usize;
    // SAFETY: as above; the callers keep nothing of it.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
}

/// How many modules have been unloaded so far.
pub fn unloaded() -> u64 {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record, and `out` is the number below.
        unsafe { *out.cast::<u64>() = (*info).dlpi_subs };
        1
    }
    let mut count = 0u64;
    // SAFETY: the callback gets a pointer to the number and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_its_function() {
        let start = code as *const () as u64;
        let Some(found) = code(start + 1) else { panic!("this crate has unwind tables") };
        assert_eq!(found.function, start);
        // Nothing has been pushed before the first instruction.
        assert_eq!(found.step, Some(Step { top: Top::Sp(8), bp: Saved::Same }));
        assert_ne!(code(start).map(|code| code.function), Some(start), "the call lies before");
        // Neither a module's data nor what is no module's.
        static DATA: u64 = 1;
        let here = 0u64;
        for address in [&raw const DATA as u64, &raw const here as u64, 0, 1, u64::MAX] {
            assert_eq!(code(address), None);
        }
    }
}
