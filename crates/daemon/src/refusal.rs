//! Why the kernel refused a packet.

use std::io::ErrorKind;

/// The reason why the kernel refused a packet of the daemon. Records contain the reason's name ([`Refusal::name`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// An interface has no room (`ENOBUFS`).
    NoBuffers,
    /// The queue of a packet socket is full (`EAGAIN`).
    QueueFull,
    /// The interface is down (`ENETDOWN`), or gone (`ENXIO`, `ENODEV`).
    LinkDown,
    /// The frame is longer than the interface's MTU (`EMSGSIZE`).
    TooLong,
    /// A filter refused the packet at the interface (`EPERM`).
    Filtered,
    /// There is no route at the interface (`ENETUNREACH`, `EHOSTUNREACH`).
    Unreachable,
    /// Any other error at an interface.
    Failed,
    /// The send buffer of an application's socket is full.
    SocketFull,
    /// A filter refused the packet of an application's socket.
    SocketFiltered,
    /// There is no route for an application's socket.
    SocketUnreachable,
    /// Any other error at an application's socket.
    SocketFailed,
}

impl Refusal {
    const ALL: [Self; 11] = [
        Self::NoBuffers,
        Self::QueueFull,
        Self::LinkDown,
        Self::TooLong,
        Self::Filtered,
        Self::Unreachable,
        Self::Failed,
        Self::SocketFull,
        Self::SocketFiltered,
        Self::SocketUnreachable,
        Self::SocketFailed,
    ];

    /// Returns the reason as it is written in records, for example `send_queue_full`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoBuffers => "send_no_buffers",
            Self::QueueFull => "send_queue_full",
            Self::LinkDown => "send_link_down",
            Self::TooLong => "send_too_long",
            Self::Filtered => "send_refused_by_filter",
            Self::Unreachable => "send_unreachable",
            Self::Failed => "send_failed",
            Self::SocketFull => "socket_send_full",
            Self::SocketFiltered => "socket_send_refused_by_filter",
            Self::SocketUnreachable => "socket_send_unreachable",
            Self::SocketFailed => "socket_send_failed",
        }
    }

    /// Returns the refusal whose [`name`](Self::name) is `reason`; `None` if there is none.
    pub fn named(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.name() == reason)
    }

    /// Returns whether an interface refused the packet, not an application's socket.
    pub const fn is_of_interface(self) -> bool {
        !matches!(
            self,
            Self::SocketFull | Self::SocketFiltered | Self::SocketUnreachable | Self::SocketFailed
        )
    }

    /// Converts the error of an interface's packet socket.
    pub fn of_interface(error: &os::Error) -> Self {
        match error.errno() {
            Some(libc::ENOBUFS) => Self::NoBuffers,
            Some(libc::EAGAIN) => Self::QueueFull,
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => Self::LinkDown,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::EPERM) => Self::Filtered,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => Self::Unreachable,
            _ => Self::Failed,
        }
    }

    /// Converts the error of an application's socket.
    pub(crate) fn of_socket(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock => Self::SocketFull,
            ErrorKind::PermissionDenied => Self::SocketFiltered,
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => Self::SocketUnreachable,
            _ => Self::SocketFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_back_from_its_name_and_from_no_other() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::named(refusal.name()), Some(refusal));
            assert_eq!(refusal.is_of_interface(), refusal.name().starts_with("send_"), "{refusal:?}");
        }
        for reason in ["queue_full", "send_", "send_queue", "socket_send_"] {
            assert_eq!(Refusal::named(reason), None, "{reason}");
        }
    }
}
