//! The file of a daemon's records. It contains packets, so it gets the mode 0600. A lock excludes a second daemon. A
//! wrong path destroys no file: a file is replaced only if it is empty or its first line is a record.

use os::{Attempt, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use trace::{HostId, Record};

/// Largest number of bytes that are read of the first line. A record of the largest datagram, in hexadecimal digits, is
/// shorter.
const LONGEST: u64 = 1 << 18;

/// Checks whether records may be written to this path. Changes nothing. A file that does not exist is no error.
pub(super) fn check(path: &Path) -> Result<()> {
    match claim(path, OFlags::empty()) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop).attempt("write", path.display()),
    }
}

/// Opens the file, creates it if necessary, and empties it. A regular file is locked while it is open.
pub(super) fn open(path: &Path) -> Result<File> {
    let open = || {
        let file = claim(path, OFlags::CREATE)?;
        if file.metadata()?.is_file() {
            file.set_len(0)?;
            // The file may have existed with another mode.
            let _ = file.set_permissions(PermissionsExt::from_mode(0o600));
        }
        Ok::<_, io::Error>(file)
    };
    open().attempt("write", path.display())
}

fn claim(path: &Path, flags: OFlags) -> io::Result<File> {
    // Opening some devices would block otherwise.
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let kind = file.metadata()?.file_type();
    if kind.is_char_device() {
        return Ok(file); // such as `/dev/null`
    }
    if !kind.is_file() {
        return Err(io::Error::other("it must be a regular file or a character device"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            return Err(io::Error::other("another daemon writes its records there; choose another path"));
        }
        other => other?,
    }
    let mut line = Vec::new();
    BufReader::new(&file).take(LONGEST).read_until(b'\n', &mut line)?;
    let is_record = std::str::from_utf8(&line).is_ok_and(|line| Record::from_line(HostId(0), line).is_ok());
    if !line.is_empty() && !is_record {
        let why = "the first line of the file is not a record of a daemon, so the file is not replaced; choose another path, or remove that file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use trace::What;
    use wire::{Instant, PacketId};

    #[test]
    fn records_are_replaced_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        std::fs::write(at("notes"), "my notes\n").unwrap();
        assert!(check(&at("notes")).unwrap_err().to_string().contains("not a record"));
        assert!(open(&at("notes")).unwrap_err().to_string().contains("not a record"));
        assert_eq!(text(&at("notes")), "my notes\n");
        assert!(open(dir.path()).is_err());

        check(&at("new")).unwrap();
        assert!(!at("new").exists());
        let mut file = open(&at("new")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let record = Record { at: Instant(7), host: HostId(0), what: What::AppSent(PacketId(1)) };
        writeln!(file, "{}", record.to_line()).unwrap();
        let refused = open(&at("new")).unwrap_err().to_string();
        assert!(refused.contains("another daemon"), "{refused}");
        assert_ne!(text(&at("new")), "");
        drop(file);
        std::fs::set_permissions(at("new"), PermissionsExt::from_mode(0o644)).unwrap();
        check(&at("new")).unwrap();
        assert_ne!(text(&at("new")), "");
        let file = open(&at("new")).unwrap();
        assert_eq!(text(&at("new")), "");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
