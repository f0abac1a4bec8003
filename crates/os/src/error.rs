//! The error of this crate: what was attempted, on what, and why it failed.

use std::fmt::Display;
use std::io;

/// A failed operation: what was attempted, on what, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt} {subject}: {cause}")]
pub struct Error {
    /// What was attempted, as a verb: "open the packet socket on".
    pub attempt: &'static str,
    /// The object of the attempt, for example a device, a path or a process.
    pub subject: String,
    /// Why the attempt failed. If the kernel refused it, the text ends with the kernel's error number.
    pub cause: io::Error,
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the `errno`, or `None` if the error is not the kernel's.
    pub fn errno(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }
}

/// Adds to an error what was attempted.
pub trait Attempt<T> {
    /// Converts an error to [`Error`]: `attempt` is the verb, `subject` the object of the attempt.
    fn attempt(self, attempt: &'static str, subject: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, attempt: &'static str, subject: impl Display) -> Result<T> {
        self.map_err(|cause| Error { attempt, subject: subject.to_string(), cause: cause.into() })
    }
}

/// Converts the C convention to a `Result`: a negative value means that `errno` is set.
pub fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_attempt_the_subject_and_the_number() {
        let refused: Result<()> =
            Err(io::Error::from_raw_os_error(libc::EPERM)).attempt("set the MTU of", "eth0");
        let refused = refused.unwrap_err();
        assert_eq!(refused.errno(), Some(libc::EPERM));
        assert_eq!(refused.to_string(), "cannot set the MTU of eth0: Operation not permitted (os error 1)");
    }
}
