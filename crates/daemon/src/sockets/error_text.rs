//! The texts of errors that users of streams get.

use node::stream::refusal;
use rustix::io::Errno;

/// Returns the text of an error: that of [`refusal`], which both backends use, or the kernel's.
pub(super) fn error_text(error: Errno) -> String {
    match error {
        Errno::CONNREFUSED => refusal::REFUSED.to_owned(),
        Errno::CONNRESET | Errno::PIPE => refusal::RESET.to_owned(),
        Errno::TIMEDOUT => refusal::TIMED_OUT.to_owned(),
        Errno::HOSTUNREACH | Errno::NETUNREACH => refusal::UNREACHABLE.to_owned(),
        Errno::ADDRINUSE => refusal::IN_USE.to_owned(),
        Errno::ADDRNOTAVAIL => refusal::NOT_OURS.to_owned(),
        Errno::NFILE | Errno::MFILE => refusal::FULL.to_owned(),
        other => other.to_string(),
    }
}
