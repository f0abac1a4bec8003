//! The scenario files that a hunt writes.

use crate::Failure;
use hunt::{Draft, Judge, write};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates a folder if it is missing. Returns an error if no file can be written in the folder.
pub(super) fn check(out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))?;
    tempfile::tempfile_in(out).map(drop).map_err(|error| cannot_write(out, &error))
}

/// Writes the scenario of a violation to a new file, and returns the path. An existing file is not replaced; if it has
/// the same text, its path is returned.
pub(super) fn keep(out: &Path, smallest: &Draft, judge: Judge, what: &str) -> Result<PathBuf, Failure> {
    let (protocol, seed) = (smallest.protocol, smallest.seed);
    let text = format!(
        "# {judge}: {what}\n\
         # `wayfare run FILE --seed {seed}` runs this scenario without checks.\n\
         # `wayfare hunt {protocol} --seeds 1 --seed {seed}` checks the scenario before it was shrunk (with\n\
         # `--on linux` if it was found on Linux).\n{}",
        write::scenario(smallest)
    );
    let names = (1..).map(|number: u32| match number {
        1 => format!("{protocol}-{judge}-{seed}.toml"),
        number => format!("{protocol}-{judge}-{seed}-{number}.toml"),
    });
    for path in names.map(|name| out.join(name)) {
        match fs::File::create_new(&path) {
            Ok(mut file) => {
                io::Write::write_all(&mut file, text.as_bytes())
                    .map_err(|error| cannot_write(&path, &error))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                    return Ok(path);
                }
            }
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
    Err(Failure::Machine(format!("{}: all names for the scenario file are in use", out.display())))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write {}: {error}; name another directory with --out", path.display());
    match error.kind() {
        // The path of the folder, or a part of it, is a file.
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => Failure::Usage(text),
        _ => Failure::Machine(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hunt::draft::Protocol;
    use hunt::draw::{Size, draw};

    #[test]
    fn an_edited_file_is_left_as_it_is() {
        let out = tempfile::tempdir().unwrap();
        let smallest = draw(Protocol::Sigma, 1, &Size::SIMULATOR);
        let keep = |what| keep(out.path(), &smallest, Judge::Stream, what).ok().unwrap();
        let first = keep("one");
        assert_eq!(keep("one"), first, "the same again");
        fs::write(&first, "edited").unwrap();
        let second = keep("one");
        assert_ne!(second, first);
        assert_eq!(fs::read_to_string(first).unwrap(), "edited");
        assert!(fs::read_to_string(second).unwrap().starts_with("# stream: one\n"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_said_at_once() {
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(check(&file).is_err());
        assert!(check(&out.path().join("new")).is_ok());
    }
}
