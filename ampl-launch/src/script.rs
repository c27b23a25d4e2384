//! Shell scripts between the launcher and the program that set `LD_PRELOAD` anew: ampl is not loaded behind them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::environment;

/// Most bytes of a script that are read.
const LONGEST: u64 = 1 << 20;
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"];

/// A message where `program`, which `command` starts, is or runs a script that replaces the preloaded libraries.
pub fn overrides(program: &Path, command: &[OsString]) -> Option<String> {
    let name = program.file_name()?;
    let is_shell = SHELLS.iter().any(|shell| name == *shell);
    let words = command.get(1..).unwrap_or_default();
    if !is_shell {
        let text = script(program).filter(|text| text.starts_with("#!"))?;
        return message(&text, &program.display().to_string());
    }
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
    let at = words.iter().take_while(is_option).count();
    let argument = words.get(at)?;
    // `-c` may stand among others: `bash -ec TEXT`.
    let inline = words[..at].iter().any(|word| {
        let bytes = word.as_encoded_bytes();
        !bytes.starts_with(b"--") && bytes.contains(&b'c')
    });
    match inline {
        true => message(argument.to_str()?, &format!("{} -c", name.display())),
        false => {
            let file = environment::which(Path::new(argument)).unwrap_or_else(|| Path::new(argument).into());
            message(&script(&file)?, &file.display().to_string())
        }
    }
}

fn script(file: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn message(text: &str, place: &str) -> Option<String> {
    let (number, _) = text.lines().enumerate().find(|(_, line)| replaces(line))?;
    let number = number + 1;
    Some(format!(
        "ampl: LD_PRELOAD is set anew or unset ({place}, line {number}): ampl is not loaded into what starts behind it; \
         write LD_PRELOAD=LIBRARY:$LD_PRELOAD"
    ))
}

/// True where `line` gives LD_PRELOAD a value without its former one, or unsets it.
fn replaces(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with('#') {
        return false;
    }
    let unset = ["unset LD_PRELOAD", "unsetenv LD_PRELOAD", "-u LD_PRELOAD"];
    if unset.iter().any(|words| line.contains(words)) {
        return true;
    }
    let assigned = line.match_indices("LD_PRELOAD=").filter(|(at, _)| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
    });
    let mut values = assigned.map(|(at, name)| line[at + name.len()..].split([' ', '\t', ';', '&']).next());
    values.any(|value| !value.unwrap_or_default().contains("LD_PRELOAD"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn what_replaces_the_variable_is_told_from_what_adds_to_it() {
        for line in [
            "LD_PRELOAD=x.so ./a",
            "  export LD_PRELOAD=\"x.so\"",
            "exec env A=b LD_PRELOAD=x ./a",
            "unset LD_PRELOAD",
            "A=1;LD_PRELOAD= ./a",
        ] {
            assert!(replaces(line), "{line}");
        }
        for line in [
            "# LD_PRELOAD=x",
            "export LD_PRELOAD=x.so:$LD_PRELOAD",
            "LD_PRELOAD=\"${LD_PRELOAD:+$LD_PRELOAD:}x.so\" exec ./a",
            "MY_LD_PRELOAD=x ./a",
            "echo $LD_PRELOAD",
        ] {
            assert!(!replaces(line), "{line}");
        }
    }

    #[test]
    fn scripts_are_read_wherever_they_stand() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("go");
        std::fs::write(&file, "#!/bin/sh\nLD_PRELOAD=x.so exec ./a\n").unwrap();
        let said = |words: &[&OsStr]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            overrides(Path::new(&words[0]), &words)
        };
        let place = format!("({}, line 2)", file.display());
        assert!(said(&[file.as_os_str()]).unwrap().contains(&place));
        let (shell, path) = (OsStr::new("/bin/sh"), file.as_os_str());
        assert!(said(&[shell, OsStr::new("-e"), path]).unwrap().contains(&place));
        let inline = said(&[shell, OsStr::new("-ec"), OsStr::new("LD_PRELOAD=x ./a")]);
        assert!(inline.unwrap().contains("(sh -c, line 1)"));
        assert_eq!(said(&[shell, OsStr::new("-c"), OsStr::new("./a")]), None);
        assert_eq!(said(&[shell]), None);
        std::fs::write(&file, [0x7f, b'E', 0xff]).unwrap();
        assert_eq!(said(&[path]), None);
    }
}
