//! The functions of OTF2 3 that are used, from the library that is loaded.
//!
//! Signatures are those of `otf2/OTF2_Archive.h`, `OTF2_EvtWriter.h` and `OTF2_GlobalDefWriter.h` of version 3.0.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::path::Path;
use std::ptr;

use libloading::Library as Loaded;

/// Names of the library: upstream's, and Debian's.
const NAMES: [&str; 2] = ["libotf2.so.10", "libopen-trace-format2.so.10"];

/// Handle of the archive.
pub type ArchiveHandle = *mut c_void;
/// Handle of a writer of one location's events.
pub type EventWriter = *mut c_void;
/// Handle of the writer of definitions.
pub type DefinitionWriter = *mut c_void;
/// Answer of a function: 0 is success.
type Code = c_int;
/// Attributes of an event; none are given.
type Attributes = *mut c_void;

/// Questions of the library before it writes its buffers, and after.
#[repr(C)]
struct FlushCallbacks {
    before: Option<unsafe extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8>,
    after: Option<unsafe extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

/// `OTF2_FLUSH`.
unsafe extern "C" fn flush(
    _user: *mut c_void,
    _file: u8,
    _location: u64,
    _caller: *mut c_void,
    _last: bool,
) -> u8 {
    1
}

// Without the second no record of the writing itself gets into the events.
static FLUSH: FlushCallbacks = FlushCallbacks { before: Some(flush), after: None };

macro_rules! functions {
    ($($field:ident = $name:literal ($($type:ty),*) -> $answer:ty;)*) => {
        /// The library, and its functions.
        pub struct Library {
            $($field: unsafe extern "C" fn($($type),*) -> $answer,)*
            /// Last, to be closed behind everything else.
            _loaded: Loaded,
        }

        impl Library {
            fn of(loaded: Loaded) -> Result<Self, libloading::Error> {
                // SAFETY: each symbol has the signature that the headers of version 3 give it; the soname tells that
                // version. The functions live as long as the library, which is kept beside them.
                unsafe {
                    Ok(Self { $($field: *loaded.get(concat!($name, "\0").as_bytes())?,)* _loaded: loaded })
                }
            }
        }
    };
}

functions! {
    open = "OTF2_Archive_Open" (*const c_char, *const c_char, u8, u64, u64, u8, u8) -> ArchiveHandle;
    close = "OTF2_Archive_Close" (ArchiveHandle) -> Code;
    set_flush = "OTF2_Archive_SetFlushCallbacks" (ArchiveHandle, *const FlushCallbacks, *mut c_void) -> Code;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks" (ArchiveHandle) -> Code;
    set_creator = "OTF2_Archive_SetCreator" (ArchiveHandle, *const c_char) -> Code;
    open_events = "OTF2_Archive_OpenEvtFiles" (ArchiveHandle) -> Code;
    close_events = "OTF2_Archive_CloseEvtFiles" (ArchiveHandle) -> Code;
    open_definitions = "OTF2_Archive_OpenDefFiles" (ArchiveHandle) -> Code;
    close_definitions = "OTF2_Archive_CloseDefFiles" (ArchiveHandle) -> Code;
    event_writer = "OTF2_Archive_GetEvtWriter" (ArchiveHandle, u64) -> EventWriter;
    close_event_writer = "OTF2_Archive_CloseEvtWriter" (ArchiveHandle, EventWriter) -> Code;
    local_definitions = "OTF2_Archive_GetDefWriter" (ArchiveHandle, u64) -> *mut c_void;
    close_local_definitions = "OTF2_Archive_CloseDefWriter" (ArchiveHandle, *mut c_void) -> Code;
    definitions = "OTF2_Archive_GetGlobalDefWriter" (ArchiveHandle) -> DefinitionWriter;
    number_of_events = "OTF2_EvtWriter_GetNumberOfEvents" (EventWriter, *mut u64) -> Code;
    enter = "OTF2_EvtWriter_Enter" (EventWriter, Attributes, u64, u32) -> Code;
    leave = "OTF2_EvtWriter_Leave" (EventWriter, Attributes, u64, u32) -> Code;
    measurement = "OTF2_EvtWriter_MeasurementOnOff" (EventWriter, Attributes, u64, u8) -> Code;
    send = "OTF2_EvtWriter_MpiSend" (EventWriter, Attributes, u64, u32, u32, u32, u64) -> Code;
    receive = "OTF2_EvtWriter_MpiRecv" (EventWriter, Attributes, u64, u32, u32, u32, u64) -> Code;
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin" (EventWriter, Attributes, u64) -> Code;
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd"
        (EventWriter, Attributes, u64, u8, u32, u32, u64, u64) -> Code;
    define_clock = "OTF2_GlobalDefWriter_WriteClockProperties" (DefinitionWriter, u64, u64, u64, u64) -> Code;
    define_paradigm = "OTF2_GlobalDefWriter_WriteParadigm" (DefinitionWriter, u8, u32, u8) -> Code;
    define_string = "OTF2_GlobalDefWriter_WriteString" (DefinitionWriter, u32, *const c_char) -> Code;
    define_node = "OTF2_GlobalDefWriter_WriteSystemTreeNode" (DefinitionWriter, u32, u32, u32, u32) -> Code;
    define_process = "OTF2_GlobalDefWriter_WriteLocationGroup" (DefinitionWriter, u32, u32, u8, u32, u32) -> Code;
    define_location = "OTF2_GlobalDefWriter_WriteLocation" (DefinitionWriter, u64, u32, u8, u64, u32) -> Code;
    define_region = "OTF2_GlobalDefWriter_WriteRegion"
        (DefinitionWriter, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
    define_group = "OTF2_GlobalDefWriter_WriteGroup"
        (DefinitionWriter, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
    define_comm = "OTF2_GlobalDefWriter_WriteComm" (DefinitionWriter, u32, u32, u32, u32, u32) -> Code;
}

/// `OTF2_UNDEFINED_UINT32`.
pub const UNDEFINED: u32 = u32::MAX;

fn text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("no zero is left")
}

/// An open archive. It is closed at the end; an error on the way leaves it to the end of the process.
pub struct Files<'a> {
    library: &'a Library,
    archive: ArchiveHandle,
}

/// Writer of one location's events.
pub struct Events<'a> {
    library: &'a Library,
    archive: ArchiveHandle,
    writer: EventWriter,
}

/// Writer of definitions.
pub struct Definitions<'a> {
    library: &'a Library,
    writer: DefinitionWriter,
}

fn checked(code: Code, what: &str) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::other(format!("OTF2 refused to {what} (its error {code})"))),
    }
}

impl Library {
    /// Loads the library; the error names what was tried, and why it failed.
    ///
    /// # Errors
    /// Where no name can be loaded, or the library lacks a function.
    pub fn open() -> Result<Self, String> {
        let mut tried = Vec::new();
        for name in NAMES {
            // SAFETY: the official library's constructors have no preconditions.
            match unsafe { Loaded::new(name) }.and_then(Self::of) {
                Ok(library) => return Ok(library),
                Err(error) => tried.push(format!("{name}: {error}")),
            }
        }
        Err(tried.join("; "))
    }

    /// Makes the archive `traces.otf2` in `directory`, which it makes, and opens the files of events.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(&self, directory: &Path) -> io::Result<Files<'_>> {
        let path = text(&directory.to_string_lossy());
        // Write; chunks as large as the library's defaults; POSIX files; no compression.
        let (mode, events, definitions, posix, plain) = (0, 1 << 20, 4 << 20, 1, 1);
        // SAFETY: the strings end in zero and outlive the calls; the callbacks are static.
        unsafe {
            let archive =
                (self.open)(path.as_ptr(), c"traces".as_ptr(), mode, events, definitions, posix, plain);
            if archive.is_null() {
                return Err(io::Error::other("OTF2 refused to make an archive"));
            }
            checked((self.set_flush)(archive, &FLUSH, ptr::null_mut()), "take callbacks")?;
            checked((self.set_serial)(archive), "work alone")?;
            checked((self.set_creator)(archive, c"ampl".as_ptr()), "name its creator")?;
            checked((self.open_events)(archive), "open files of events")?;
            Ok(Files { library: self, archive })
        }
    }
}

impl Files<'_> {
    /// Writer of the events of `location`.
    ///
    /// # Errors
    /// Where the library refuses.
    pub fn events(&self, location: u64) -> io::Result<Events<'_>> {
        // SAFETY: the archive is open, its files of events too.
        let writer = unsafe { (self.library.event_writer)(self.archive, location) };
        if writer.is_null() {
            return Err(io::Error::other(format!("OTF2 refused location {location}")));
        }
        Ok(Events { library: self.library, archive: self.archive, writer })
    }

    /// Closes the files of events, and writes a file of local definitions for each of `locations`.
    ///
    /// # Errors
    /// Where the library refuses.
    pub fn end_events(&self, locations: &[u64]) -> io::Result<()> {
        // SAFETY: the archive is open; all writers of events are closed.
        unsafe {
            checked((self.library.close_events)(self.archive), "close files of events")?;
            checked((self.library.open_definitions)(self.archive), "open files of definitions")?;
            for &location in locations {
                let writer = (self.library.local_definitions)(self.archive, location);
                checked(
                    (self.library.close_local_definitions)(self.archive, writer),
                    "close local definitions",
                )?;
            }
            checked((self.library.close_definitions)(self.archive), "close files of definitions")
        }
    }

    /// Writer of the definitions of the archive.
    ///
    /// # Errors
    /// Where the library refuses.
    pub fn definitions(&self) -> io::Result<Definitions<'_>> {
        // SAFETY: the archive is open.
        let writer = unsafe { (self.library.definitions)(self.archive) };
        if writer.is_null() {
            return Err(io::Error::other("OTF2 refused to write definitions"));
        }
        Ok(Definitions { library: self.library, writer })
    }

    /// Writes what is left, and closes the archive.
    ///
    /// # Errors
    /// Where the library refuses.
    pub fn close(self) -> io::Result<()> {
        // SAFETY: the archive is open and not used afterwards.
        checked(unsafe { (self.library.close)(self.archive) }, "close the archive")
    }
}

/// A message, as one of its sides tells it.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The other side, a rank in the communicator.
    pub other: u32,
    /// The communicator.
    pub comm: u32,
    /// Tag.
    pub tag: u32,
    /// Bytes.
    pub bytes: u64,
}

/// The end of a collective.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveEnd {
    /// `OTF2_CollectiveOp`.
    pub operation: u8,
    /// The communicator.
    pub comm: u32,
    /// Root in the communicator; [`UNDEFINED`] without one.
    pub root: u32,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

impl Events<'_> {
    /// Enters a region.
    ///
    /// # Errors
    /// Where the library refuses: on a full disk, for example.
    pub fn enter(&mut self, at: u64, region: u32) -> io::Result<()> {
        // SAFETY: the writer is open; no attributes are given.
        checked(unsafe { (self.library.enter)(self.writer, ptr::null_mut(), at, region) }, "write an event")
    }

    /// Leaves a region.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn leave(&mut self, at: u64, region: u32) -> io::Result<()> {
        // SAFETY: as above.
        checked(unsafe { (self.library.leave)(self.writer, ptr::null_mut(), at, region) }, "write an event")
    }

    /// Marks the start of a stretch with events, or the end of one.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn measured(&mut self, at: u64, on: bool) -> io::Result<()> {
        let mode = if on { 1 } else { 2 };
        // SAFETY: as above.
        checked(
            unsafe { (self.library.measurement)(self.writer, ptr::null_mut(), at, mode) },
            "write an event",
        )
    }

    /// Sends, or receives, a message.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn message(&mut self, at: u64, sends: bool, message: &Transfer) -> io::Result<()> {
        let Transfer { other, comm, tag, bytes } = *message;
        let write = if sends { self.library.send } else { self.library.receive };
        // SAFETY: as above.
        checked(
            unsafe { write(self.writer, ptr::null_mut(), at, other, comm, tag, bytes) },
            "write a message",
        )
    }

    /// Begins a collective.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn collective_begin(&mut self, at: u64) -> io::Result<()> {
        // SAFETY: as above.
        checked(
            unsafe { (self.library.collective_begin)(self.writer, ptr::null_mut(), at) },
            "write an event",
        )
    }

    /// Ends a collective.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn collective_end(&mut self, at: u64, end: &CollectiveEnd) -> io::Result<()> {
        let CollectiveEnd { operation, comm, root, sent, received } = *end;
        let write = self.library.collective_end;
        // SAFETY: as above.
        let code = unsafe { write(self.writer, ptr::null_mut(), at, operation, comm, root, sent, received) };
        checked(code, "write an event")
    }

    /// Closes the writer; returns the number of its events.
    ///
    /// # Errors
    /// As [`Events::enter`].
    pub fn close(self) -> io::Result<u64> {
        let mut events = 0;
        // SAFETY: the writer is open and not used afterwards.
        unsafe {
            checked((self.library.number_of_events)(self.writer, &mut events), "count events")?;
            checked((self.library.close_event_writer)(self.archive, self.writer), "close a location")?;
        }
        Ok(events)
    }
}

/// A definition, without its number.
#[derive(Clone, Debug)]
pub enum Definition<'a> {
    /// Resolution in ticks per second, first and last time, start since the Unix epoch in nanoseconds.
    Clock { resolution: u64, length: u64, start_ns: u64 },
    /// MPI, by a name.
    Mpi(u32),
    /// A text.
    Text(&'a str),
    /// Machine or node: name, kind, parent.
    Node(u32, u32, u32),
    /// Process: name, node.
    Process(u32, u32),
    /// Thread, by location: name, events, process.
    Thread(u64, u32, u64, u32),
    /// Region: name, role, paradigm.
    Region(u32, u8, u8),
    /// Group: name, type, members.
    Group(u32, u8, &'a [u64]),
    /// Communicator: name, group, parent.
    Comm(u32, u32, u32),
}

impl Definitions<'_> {
    /// Writes `definition` under that number.
    ///
    /// # Errors
    /// Where the library refuses.
    pub fn write(&mut self, number: u32, definition: &Definition<'_>) -> io::Result<()> {
        let (library, writer) = (self.library, self.writer);
        // SAFETY: the writer is open; strings end in zero and lists have the lengths given; both are copied.
        let code = unsafe {
            match *definition {
                Definition::Clock { resolution, length, start_ns } => {
                    (library.define_clock)(writer, resolution, 0, length, start_ns)
                }
                Definition::Mpi(name) => (library.define_paradigm)(writer, MPI, name, 0),
                Definition::Text(string) => (library.define_string)(writer, number, text(string).as_ptr()),
                Definition::Node(name, kind, parent) => {
                    (library.define_node)(writer, number, name, kind, parent)
                }
                Definition::Process(name, node) => {
                    (library.define_process)(writer, number, name, 1, node, UNDEFINED)
                }
                Definition::Thread(location, name, events, process) => {
                    (library.define_location)(writer, location, name, 1, events, process)
                }
                Definition::Region(name, role, paradigm) => (library.define_region)(
                    writer, number, name, name, UNDEFINED, role, paradigm, 0, UNDEFINED, 0, 0,
                ),
                Definition::Group(name, of, members) => {
                    let length = members.len() as u32;
                    (library.define_group)(writer, number, name, of, MPI, 0, length, members.as_ptr())
                }
                Definition::Comm(name, group, parent) => {
                    (library.define_comm)(writer, number, name, group, parent, 0)
                }
            }
        };
        checked(code, "write a definition")
    }
}

/// `OTF2_PARADIGM_MPI`.
pub const MPI: u8 = 4;
