//! Checks whether a preloaded library works for a program, from the program's file (`elf(5)`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest number of files that are examined for one program. If the program is a script, the interpreter of the
/// script is examined next; this interpreter can again be a script.
const DEPTH: usize = 4;
/// The number of bytes at the begin of a file in which the line `#!` is searched.
const LINE: usize = 256;

const EXECUTABLE: u32 = 0o111;
const SET_ID: u32 = 0o6000;
const ELF: [u8; 4] = *b"\x7fELF";
/// The type of the segment that names the dynamic linker.
const PT_INTERP: u32 = 3;
/// The mark that the Go linker leaves in each program (`debug/buildinfo`). The constant is written backwards, so that
/// this program and its tests do not count as Go programs.
const GO_REVERSED: &[u8] = b":fnidliub oG \xff";

/// Returns the path of an executable file, searched in `PATH` as a shell does. Returns `None` if there is none.
pub(super) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = super::variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & EXECUTABLE != 0)
}

/// Returns an error with the reason if preloading does not work for a program.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let mut path = path.to_owned();
    for _ in 0..DEPTH {
        let file = path.metadata().map_err(|error| error.to_string())?;
        let mut begin = Vec::new();
        let open = File::open(&path).and_then(|file| file.take(LINE as u64).read_to_end(&mut begin));
        open.map_err(|error| format!("cannot be read: {error}"))?;
        if let Some(line) = begin.strip_prefix(b"#!") {
            path =
                interpreter(line).ok_or("the first line of the script names no interpreter that exists")?;
            continue;
        }
        let own = own_user();
        if file.mode() & SET_ID != 0 && file.uid() != own {
            return Err(
                "the program runs with the rights of another user, so no library can be preloaded".to_owned()
            );
        }
        let bytes = std::fs::read(&path).map_err(|error| format!("cannot be read: {error}"))?;
        return check_elf(&bytes);
    }
    Err(format!("too many nested interpreters: at most {} scripts are allowed before a program", DEPTH - 1))
}

fn own_user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = OsStr::from_bytes(words.next()?);
    if Path::new(first).file_name() == Some(OsStr::new("env")) {
        // `env` starts the program that its arguments name.
        return words.find(|word| !word.starts_with(b"-")).and_then(|word| find(OsStr::from_bytes(word)));
    }
    Some(PathBuf::from(first))
}

fn check_elf(bytes: &[u8]) -> Result<(), String> {
    // Class, byte order and machine must be those of this program, because the library is built for them.
    let own = if cfg!(target_endian = "little") { [2, 1] } else { [2, 2] };
    if !bytes.starts_with(&ELF) {
        return Err("not a program that the dynamic linker starts".to_owned());
    }
    if bytes.get(4..6) != Some(&own) || half(bytes, 18) != Some(MACHINE) {
        return Err("a program for another architecture".to_owned());
    }
    if !has_interpreter(bytes).ok_or("the program's headers are cut off")? {
        return Err("linked statically, so no library can be preloaded".to_owned());
    }
    if bytes.windows(GO_REVERSED.len()).any(|window| window.iter().rev().eq(GO_REVERSED)) {
        return Err("a Go program, which does not use the C library for its connections".to_owned());
    }
    Ok(())
}

/// The ELF machine number (`e_machine`) of the architecture for which this program is built.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(target_arch = "riscv64")]
const MACHINE: u16 = 243;

fn has_interpreter(bytes: &[u8]) -> Option<bool> {
    let table = u64::from_ne_bytes(*bytes.get(32..)?.first_chunk()?) as usize;
    let (size, count) = (half(bytes, 54)?, half(bytes, 56)?);
    for number in 0..count {
        let at = table.checked_add(usize::from(number) * usize::from(size))?;
        if u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_dynamic_linker_can_be_helped_and_no_other() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(check_elf(&own), Ok(()));
        assert_eq!(check(&find(OsStr::new("sh")).unwrap()), Ok(()));
        let refused = |bytes: &[u8], why: &str| {
            let refused = check_elf(bytes).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        };
        refused(b"\x7fEL", "not a program");
        refused(&own[..100], "cut off");
        let go: Vec<u8> = GO_REVERSED.iter().rev().copied().collect();
        refused(&[&own[..], &go].concat(), "a Go program");
        let spoilt = |at: usize, byte| {
            let mut bytes = own.clone();
            bytes[at] = byte;
            bytes
        };
        for (at, byte) in [(4, 1), (5, 9), (18, 40)] {
            refused(&spoilt(at, byte), "another architecture");
        }
        // A file without segments names no dynamic linker.
        refused(&[&own[..56], &[0, 0], &own[58..]].concat(), "linked statically");
    }

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let dir = tempfile::tempdir().unwrap();
        let script = |name: &str, line: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, line).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        assert_eq!(check(&script("a", "#!/usr/bin/env -S sh\n")), Ok(()));
        assert_eq!(check(&script("b", "#! /bin/sh -e\n")), Ok(()));
        let own = script("c", "no program\n");
        assert!(check(&own).unwrap_err().contains("not a program"));
        let endless = dir.path().join("d");
        script("d", &format!("#!{}\n", endless.display()));
        assert!(check(&endless).unwrap_err().contains("too many nested interpreters"));
        assert!(check(&script("e", "#!/no/such/shell\n")).is_err());
    }
}
