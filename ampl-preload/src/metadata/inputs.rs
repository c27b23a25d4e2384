//! The program's file, and files that its arguments name.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ampl_trace::metadata::{FileFacts, cut};
use sha2::{Digest as _, Sha256};

use super::libraries;
use crate::environment::escaped;

/// Largest file of an argument that is hashed, bytes.
const LARGEST_INPUT: u64 = 1 << 20;
/// Largest program that is hashed, bytes: hashing takes rank 0 some milliseconds per 10 MB.
const LARGEST_PROGRAM: u64 = 16 << 20;
/// Files of arguments that are looked at.
const MOST_INPUTS: usize = 16;

/// The file of this process's program.
pub fn executable() -> Option<FileFacts> {
    let path = fs::read_link("/proc/self/exe").ok()?;
    // By the process's own link: the path may name another file by now.
    let (bytes, sha256) = contents(Path::new("/proc/self/exe"), LARGEST_PROGRAM)?;
    Some(FileFacts {
        path: cut(escaped(path.as_os_str().as_bytes())),
        bytes,
        sha256,
        build_id: libraries::own_build_id(),
    })
}

/// Regular files that `arguments` name, as words or behind a `=`, and the number of those left out.
pub fn named_in(arguments: &[String]) -> (Vec<FileFacts>, u64) {
    let (mut found, mut left_out) = (Vec::<FileFacts>::new(), 0);
    for argument in arguments {
        let after = argument.split_once('=').map(|(_, after)| after);
        let named = [Some(argument.as_str()), after].into_iter().flatten().find(|path| is_file(path));
        let Some(path) = named.filter(|&path| found.iter().all(|known| known.path != path)) else { continue };
        if found.len() == MOST_INPUTS {
            left_out += 1;
        } else if let Some((bytes, sha256)) = contents(Path::new(path), LARGEST_INPUT) {
            found.push(FileFacts { path: cut(path.into()), bytes, sha256, build_id: None });
        }
    }
    (found, left_out)
}

fn is_file(path: &str) -> bool {
    !path.is_empty() && fs::metadata(path).is_ok_and(|found| found.is_file())
}

/// Size of a file, and the SHA-256 of its contents where they are no more than `most` bytes.
fn contents(path: &Path, most: u64) -> Option<(u64, Option<String>)> {
    let mut file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    if bytes > most {
        return Some((bytes, None));
    }
    let (mut hash, mut buffer, mut read) = (Sha256::new(), vec![0; 1 << 16], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(some) => {
                hash.update(&buffer[..some]);
                read += some as u64;
                // It grows while it is read.
                if read > most {
                    return Some((bytes, None));
                }
            }
            Err(_) => return Some((bytes, None)),
        }
    }
    Some((read, Some(libraries::hexadecimal(hash.finalize()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_arguments_are_hashed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        fs::write(path("input"), "abc").unwrap();
        fs::write(path("large"), vec![0; LARGEST_INPUT as usize + 1]).unwrap();
        let arguments = [
            "-n".into(),
            "100".into(),
            path("input"),
            format!("--restart={}", path("large")),
            path("input"),
            path("missing"),
            directory.path().to_string_lossy().into_owned(),
            "/dev/zero".into(),
        ];
        let (found, left_out) = named_in(&arguments);
        assert_eq!((found.len(), left_out), (2, 0));
        // FIPS 180-4's example of one block.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((found[0].bytes, found[0].sha256.as_deref()), (3, Some(known)));
        assert_eq!((found[1].bytes, &found[1].sha256), (LARGEST_INPUT + 1, &None));
    }

    #[test]
    fn only_some_files_are_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = (0..MOST_INPUTS + 5)
            .map(|number| {
                let path = directory.path().join(format!("in{number}"));
                fs::write(&path, [number as u8]).unwrap();
                path.to_string_lossy().into_owned()
            })
            .collect();
        let (found, left_out) = named_in(&arguments);
        assert_eq!((found.len(), left_out), (MOST_INPUTS, 5));
        assert_ne!(found[0].sha256, found[1].sha256);
    }

    #[test]
    fn the_program_is_this_test() {
        let own = executable().unwrap();
        assert_eq!(own.path, std::env::current_exe().unwrap().to_string_lossy());
        assert_eq!(own.sha256.is_some(), own.bytes <= LARGEST_PROGRAM);
    }
}
