//! `papi.*`: counters of PAPI, whose library is opened when a metric asks for it.
//!
//! A thread can have one running event set per component in one PAPI: a program that uses PAPI itself would
//! find its own refused. Therefore a copy of the library is loaded, with state of its own.
//!
//! The thread that calls MPI_Init is counted and, where the component can do that, those it starts later.
//!
//! # Source
//! papi.h of PAPI 5.5 to 7.1, which agree in what is used here.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_longlong, c_void};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use ampl_agent::counters::Counters;
use ampl_agent::descriptor;
use ampl_core::refusal::Refusal;

use super::Asked;

/// Names of the library: the name for linking, which may be missing without development files, then the newest first.
const NAMES: [&CStr; 6] = [
    c"libpapi.so",
    c"libpapi.so.7.2",
    c"libpapi.so.7.1",
    c"libpapi.so.7.0",
    c"libpapi.so.6.0",
    c"libpapi.so.5.7",
];
const OK: c_int = 0;
const NULL_SET: c_int = -1;
const INHERIT: c_int = 28;
const LIB_VERSION: c_int = 21;
/// Major and minor number, which a caller must name exactly.
const VERSION_MASK: c_int = 0xffff_0000_u32 as c_int;
/// Limit of descriptors below which no small numbers are held.
const FEWEST_DESCRIPTORS: u64 = 2 * descriptor::FIRST as u64;
/// More than the union of all options takes, in ints.
const OPTION_INTS: usize = 1024;

/// Functions of the library.
#[derive(Clone, Copy, Debug)]
struct Functions {
    get_opt: unsafe extern "C" fn(c_int, *mut c_void) -> c_int,
    set_opt: unsafe extern "C" fn(c_int, *mut c_void) -> c_int,
    init: unsafe extern "C" fn(c_int) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(*mut c_int) -> c_int,
    code: unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int,
    component: unsafe extern "C" fn(c_int) -> c_int,
    assign: unsafe extern "C" fn(c_int, c_int) -> c_int,
    add: unsafe extern "C" fn(c_int, *const c_char) -> c_int,
    start: unsafe extern "C" fn(c_int) -> c_int,
    read: unsafe extern "C" fn(c_int, *mut c_longlong) -> c_int,
}

/// Running event sets.
#[derive(Debug)]
pub struct PapiCounters {
    functions: Functions,
    sets: Vec<EventSet>,
}

/// The events of one component.
#[derive(Debug)]
struct EventSet {
    component: c_int,
    number: c_int,
    columns: Vec<usize>,
    before: Vec<c_longlong>,
    now: Vec<c_longlong>,
}

impl PapiCounters {
    /// Starts the counters that are `asked` for; `None` if there are none. Returns refusals with reasons.
    pub fn open(asked: &[Asked<String>]) -> (Option<Self>, Vec<Refusal>) {
        let refusal = |one: &Asked<String>, why: &str| Refusal {
            metric: format!("papi.{}", one.what),
            why: why.to_owned(),
            instead: "see 'papi_avail' and 'papi_native_avail'".into(),
        };
        let Some(original) = installed() else {
            return (None, asked.iter().map(|one| Refusal::without_papi(&one.what)).collect());
        };
        let held = HeldDescriptors::hold();
        let mut papi = match Functions::load(original).and_then(Self::begin) {
            Ok(papi) => papi,
            Err(why) => return (None, asked.iter().map(|one| refusal(one, &why)).collect()),
        };
        let mut refused = Vec::new();
        for one in asked {
            if let Err(why) = papi.add(one) {
                refused.push(refusal(one, &why));
            }
        }
        for mut set in std::mem::take(&mut papi.sets) {
            match papi.start(&mut set) {
                Ok(()) => papi.sets.push(set),
                Err(why) => {
                    let ours = asked.iter().filter(|one| set.columns.contains(&one.column));
                    refused.extend(ours.map(|one| refusal(one, &why)));
                }
            }
        }
        drop(held);
        ((!papi.sets.is_empty()).then_some(papi), refused)
    }

    fn begin(functions: Functions) -> Result<Self, String> {
        let papi = Self { functions, sets: Vec::new() };
        // SAFETY: this option needs no place for an answer, and no library that is initialised.
        let version = unsafe { (functions.get_opt)(LIB_VERSION, ptr::null_mut()) } & VERSION_MASK;
        // SAFETY: a number.
        let found = unsafe { (functions.init)(version) };
        if found == version { Ok(papi) } else { Err(format!("PAPI does not start: {}", papi.words(found))) }
    }

    /// PAPI's text for the error `code`.
    fn words(&self, code: c_int) -> String {
        // SAFETY: a number; the answer is null or a text of the library's own.
        let text = unsafe {
            let text = (self.functions.strerror)(code);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        text.unwrap_or_else(|| format!("error {code}"))
    }

    fn checked(&self, code: c_int) -> Result<(), String> {
        if code == OK { Ok(()) } else { Err(format!("PAPI says: {}", self.words(code))) }
    }

    fn add(&mut self, one: &Asked<String>) -> Result<(), String> {
        let functions = self.functions;
        let name = CString::new(one.what.as_str()).map_err(|error| error.to_string())?;
        let mut code = 0;
        // SAFETY: a text and a place for a number.
        self.checked(unsafe { (functions.code)(name.as_ptr(), &raw mut code) })?;
        // SAFETY: a number.
        let component = unsafe { (functions.component)(code) };
        let known = self.sets.iter().position(|set| set.component == component);
        let index = match known {
            Some(index) => index,
            None => {
                let mut number = NULL_SET;
                // SAFETY: a place for a number, then numbers.
                unsafe {
                    self.checked((functions.create)(&raw mut number))?;
                    self.checked((functions.assign)(number, component))?;
                }
                self.inherit(number);
                let (columns, before, now) = (Vec::new(), Vec::new(), Vec::new());
                self.sets.push(EventSet { component, number, columns, before, now });
                self.sets.len() - 1
            }
        };
        // SAFETY: an event set of ours and a text.
        self.checked(unsafe { (functions.add)(self.sets[index].number, name.as_ptr()) })?;
        let set = &mut self.sets[index];
        set.columns.push(one.column);
        set.before.push(0);
        set.now.push(0);
        Ok(())
    }

    /// Has threads counted that the calling one starts; components that cannot refuse and count without.
    fn inherit(&self, set: c_int) {
        let mut option = [0 as c_int; OPTION_INTS];
        (option[0], option[1]) = (set, 1);
        // SAFETY: the option's own fields stand first in the union of all.
        unsafe { (self.functions.set_opt)(INHERIT, option.as_mut_ptr().cast()) };
    }

    fn start(&self, set: &mut EventSet) -> Result<(), String> {
        if set.columns.is_empty() {
            return Ok(());
        }
        // SAFETY: an event set of ours, and as many places as it has events.
        unsafe {
            self.checked((self.functions.start)(set.number))?;
            self.checked((self.functions.read)(set.number, set.before.as_mut_ptr()))
        }
    }
}

impl Counters for PapiCounters {
    fn take(&mut self, into: &mut [Option<f64>]) {
        for set in self.sets.iter_mut().filter(|set| !set.columns.is_empty()) {
            // SAFETY: a running event set of ours, and as many places as it has events.
            let code = unsafe { (self.functions.read)(set.number, set.now.as_mut_ptr()) };
            for (index, &column) in set.columns.iter().enumerate() {
                let counted = set.now[index].wrapping_sub(set.before[index]);
                into[column] = (code == OK && counted >= 0).then_some(counted as f64);
            }
            if code == OK {
                set.before.copy_from_slice(&set.now);
            }
        }
    }
}

impl Functions {
    fn load(original: *mut c_void) -> Result<Self, String> {
        let library = private_copy(original)?;
        let function = |name: &CStr| {
            // SAFETY: a library that stays open.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            if found.is_null() {
                Err(format!("libpapi has no {}", name.to_string_lossy()))
            } else {
                Ok(found)
            }
        };
        // SAFETY: the types are those of papi.h, which the fields name.
        #[expect(clippy::missing_transmute_annotations, reason = "the fields' types stand beside")]
        unsafe {
            Ok(Self {
                get_opt: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_get_opt")?),
                set_opt: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_set_opt")?),
                init: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_library_init")?),
                strerror: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_strerror")?),
                create: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_create_eventset")?),
                code: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_event_name_to_code")?),
                component: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_get_event_component")?),
                assign: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_assign_eventset_component")?),
                add: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_add_named_event")?),
                start: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_start")?),
                read: std::mem::transmute::<*mut c_void, _>(function(c"PAPI_read")?),
            })
        }
    }
}

/// The machine's libpapi, or the program's; opened.
fn installed() -> Option<*mut c_void> {
    // SAFETY: a text; PAPI's library does nothing on its own when it is loaded.
    let opened = |name: &&CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    NAMES.iter().map(opened).find(|found| !found.is_null())
}

/// A copy of libpapi, loaded beside the `original`, which the program may have and which is closed here.
fn private_copy(original: *mut c_void) -> Result<*mut c_void, String> {
    let path = path_of(original);
    // SAFETY: an open library, which is no longer needed here.
    unsafe { libc::dlclose(original) };
    let copied = path.ok_or_else(|| io::Error::other("its file is not known")).and_then(|path| copy(&path));
    let copied = copied.map_err(|error| format!("libpapi cannot be copied: {error}"))?;
    // The loader does not know it by that name; its own symbols are searched in the copy first.
    let name = CString::new(format!("/proc/self/fd/{}", copied.as_raw_fd())).expect("digits");
    // SAFETY: a text; the library stays loaded, for its counters run to the end.
    let found =
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND) };
    if found.is_null() { Err("libpapi cannot be loaded a second time".into()) } else { Ok(found) }
}

fn path_of(library: *mut c_void) -> Option<std::path::PathBuf> {
    /// The beginning of `struct link_map` of link.h.
    #[repr(C)]
    struct LinkMap {
        address: usize,
        name: *const c_char,
    }
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: an open library, a place for a pointer; the name lives as long as the library is open.
    unsafe {
        let code = libc::dlinfo(library, libc::RTLD_DI_LINKMAP, (&raw mut map).cast());
        let name = (code == 0 && !map.is_null()).then(|| CStr::from_ptr((*map).name))?;
        Some(OsStr::from_bytes(name.to_bytes()).into())
    }
}

fn copy(path: &std::path::Path) -> io::Result<OwnedFd> {
    // SAFETY: a text.
    let descriptor = unsafe { libc::memfd_create(c"libpapi".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new, and ours alone.
    let mut copy = unsafe { File::from_raw_fd(descriptor) };
    io::copy(&mut File::open(path)?, &mut copy)?;
    Ok(copy.into())
}

/// Guard: while it lives, small numbers of descriptors are taken, so that PAPI's own do not change the program's;
/// PAPI's are closed at an exec.
struct HeldDescriptors {
    held: Vec<OwnedFd>,
    before: Vec<i32>,
}

impl HeldDescriptors {
    fn hold() -> Self {
        let mut held = Vec::new();
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for the limit.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        if let Ok(nothing) = File::open("/dev/null")
            && limit.rlim_cur >= FEWEST_DESCRIPTORS
        {
            // Numbers are given out from below.
            for _ in 0..descriptor::FIRST {
                // SAFETY: another name for an open file.
                let one = unsafe { libc::fcntl(nothing.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) };
                if one < 0 {
                    break;
                }
                // SAFETY: new, and ours alone.
                held.push(unsafe { OwnedFd::from_raw_fd(one) });
                if one >= descriptor::FIRST {
                    break;
                }
            }
        }
        Self { held, before: counters() }
    }
}

impl Drop for HeldDescriptors {
    fn drop(&mut self) {
        self.held.clear();
        for descriptor in counters().into_iter().filter(|number| !self.before.contains(number)) {
            // SAFETY: a counter that PAPI has just opened.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Descriptors of the process that are counters.
fn counters() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_counter = |path: &std::path::Path| {
        fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    entries
        .filter(|entry| is_counter(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
