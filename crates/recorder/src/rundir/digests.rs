//! `SHA256SUMS`: a digest of every other file of a run directory, in the form that `sha256sum --check` reads.
//!
//! A digest shows that a file was edited, damaged or taken from another run. The digests are no signature: if a program
//! changes a file and its digest, the change is not detected.

use super::ReadError;
use super::files::former_files;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub(super) const NAME: &str = "SHA256SUMS";

/// Files that [`super::read`] needs. The other files may be removed, for example to save space.
const NEEDED: [&str; 2] = ["run.json", "records.jsonl"];

/// The number of bytes that are read at a time.
const CHUNK: usize = 1 << 16;

/// Writes the digests of all other files below `dir` to `SHA256SUMS`, in the order of their names.
pub(super) fn write(dir: &Path) -> io::Result<()> {
    let mut text = String::new();
    for file in files(dir, Path::new(""))?.iter().filter(|file| *file != Path::new(NAME)) {
        let _ = writeln!(text, "{}  {}", digest(&dir.join(file))?, file.display());
    }
    fs::write(dir.join(NAME), text)
}

/// Compares each file in `SHA256SUMS` with its digest. Returns an error that names a file if it was changed or cannot
/// be read, or if `run.json` lists it and `SHA256SUMS` does not. Files that [`super::read`] does not need may be
/// missing.
pub(super) fn check(dir: &Path) -> Result<(), ReadError> {
    let sums = dir.join(NAME);
    let text = fs::read_to_string(&sums).map_err(|error| ReadError::File(sums.clone(), error))?;
    let listed = |line| parse(line).ok_or_else(|| ReadError::Changed(sums.clone()));
    let mut digests: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        let (name, digest) = listed(line)?;
        // With two lines for a file, programs that read the list would differ in the one that they believe.
        if digests.insert(name, digest).is_some() {
            return Err(ReadError::Changed(sums));
        }
    }
    let mut names = former_files(dir);
    names.extend(NEEDED.map(str::to_owned));
    if let Some(unlisted) = names.iter().find(|name| *name != NAME && !digests.contains_key(name.as_str())) {
        return Err(ReadError::Changed(dir.join(unlisted)));
    }
    for (name, expected) in digests {
        let path = dir.join(name);
        // Only regular files are accepted: a symbolic link could refer to a file outside of the directory.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(ReadError::Changed(path));
        }
        match digest(&path) {
            Ok(found) if found == expected => {}
            Ok(_) => return Err(ReadError::Changed(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !NEEDED.contains(&name) => {}
            Err(error) => return Err(ReadError::File(path, error)),
        }
    }
    Ok(())
}

/// Returns the file name and the digest in a line of `SHA256SUMS`. Returns `None` if the line is malformed or the file
/// is outside of the directory.
fn parse(line: &str) -> Option<(&str, &str)> {
    let (digest, name) = line.split_once("  ")?;
    let inside = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    (digest.len() == 64 && inside).then_some((name, digest))
}

/// Returns the SHA-256 digest of a file as 64 hexadecimal digits, or an error if the file cannot be read.
pub fn digest(path: &Path) -> io::Result<String> {
    digest_of(&mut File::open(path)?)
}

/// Returns the SHA-256 digest of all bytes that `source` returns until its end, as 64 hexadecimal digits.
pub fn digest_of(source: &mut impl Read) -> io::Result<String> {
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let read = source.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        hash.update(chunk.get(..read).unwrap_or_default());
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

/// Returns all files below `dir`/`folder`, relative to `dir`, in the order of their names.
fn files(dir: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() { found.extend(files(dir, &path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}
