//! An installation to try commands in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Held while a program file is written and while a process starts: a child started in between would still have the
/// file open for writing, and it could not be executed.
pub static STARTING: Mutex<()> = Mutex::new(());

pub fn write_program(path: &Path, content: &[u8]) {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn start(command: &mut Command) -> Child {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

pub fn output(command: &mut Command) -> Output {
    start(command.stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap()
}

/// An installation of its own: `bin/ampl`, `lib/libampl.so`, launchers in `path/`, and `work/` to stand in.
pub struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["bin", "lib", "path", "work"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let place = Self { root };
        write_program(&place.at("bin/ampl"), &fs::read(env!("CARGO_BIN_EXE_ampl")).unwrap());
        // The dynamic linker reports that this is no library and goes on.
        fs::write(place.at("lib/libampl.so"), "").unwrap();
        // Runs the command after its options, once, and reports that.
        place.script(
            "path/mpirun",
            "case $1 in --version) echo 'mpirun (Open MPI) 4.1.4'; exit;; esac\nshift 2\n\"$@\"",
        );
        place.script("work/app", "echo app \"$@\"");
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        // The library's path is printed with links resolved; a temporary directory may be one.
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub fn script(&self, name: &str, body: &str) {
        write_program(&self.at(name), format!("#!/bin/sh\n{body}\n").as_bytes());
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.at("bin/ampl"));
        command.args(args).current_dir(self.at("work")).stdin(Stdio::null()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.at("path").display()));
        command
    }

    pub fn ampl(&self, args: &[&str]) -> Output {
        output(&mut self.command(args))
    }

    /// Exit status, stdout and stderr.
    pub fn said(&self, args: &[&str]) -> (i32, String, String) {
        said(&self.ampl(args))
    }
}

pub fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Asserts that nothing ran, that the exit status is `status`, and that one message has `what` in it.
#[track_caller]
pub fn refused(place: &Place, args: &[&str], status: i32, what: &str) {
    let (code, out, err) = place.said(args);
    assert_eq!((code, out.as_str()), (status, ""), "{err}");
    assert!(err.starts_with("ampl: ") && err.contains(" (") && err.contains("): "), "{err}");
    assert!(err.contains(what), "{err}");
}
