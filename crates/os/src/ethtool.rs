//! The offloads of a device, and how to switch them off.

use crate::error::{Attempt, Result, check};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// The ioctl that takes an ethtool command (`linux/sockios.h`).
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The offloads: name, command that reads, command that sets (`linux/ethtool.h`). An offload that depends on a checksum
/// offload comes before it. Otherwise the kernel would switch it off together with the checksum offload, and would not
/// always switch it on again.
const OFFLOADS: [(&str, u32, u32); 5] = [
    ("tso", 0x1e, 0x1f),
    ("gso", 0x23, 0x24),
    ("gro", 0x2b, 0x2c),
    ("tx checksum", 0x16, 0x17),
    ("rx checksum", 0x14, 0x15),
];

/// Switches segmentation, merging and checksum offloads of `device` off, so that every frame on it is one whole packet
/// with a finished checksum. The device is looked up in the calling thread's network namespace. Fails if the device
/// keeps an offload on.
pub fn offloads_off(device: &str) -> Result<()> {
    let socket = any_socket().attempt("open a socket to set the offloads of", device)?;
    for (name, get, set) in OFFLOADS {
        let left = switch_off(&socket, device, get, set);
        left.attempt("switch off an offload of", format_args!("{device} ({name})"))?;
    }
    Ok(())
}

/// Returns the names of the offloads of `device` that are on, for [`switch_on`]. The device is looked up in the calling
/// thread's network namespace. Fails if one of the offloads cannot be read.
pub fn offloads(device: &str) -> Result<Vec<&'static str>> {
    let socket = any_socket().attempt("open a socket to read the offloads of", device)?;
    let mut on = Vec::new();
    for (name, get, _) in OFFLOADS {
        let value = value(&socket, device, get, 0)
            .attempt("read an offload of", format_args!("{device} ({name})"))?;
        if value != 0 {
            on.push(name);
        }
    }
    Ok(on)
}

/// Switches on the offloads with these names, as [`offloads`] returned them. An offload that the device no longer
/// supports is ignored.
pub fn switch_on(device: &str, names: &[String]) -> Result<()> {
    let socket = any_socket().attempt("open a socket to set the offloads of", device)?;
    // The order is reversed, because the other offloads can be switched on only after the checksum offloads.
    for (name, _, set) in OFFLOADS.iter().rev().filter(|(name, ..)| names.iter().any(|wanted| wanted == name))
    {
        match value(&socket, device, *set, 1) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
                Err(error).attempt("switch on an offload of", format_args!("{device} ({name})"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Switches one offload off. An offload that the device does not support counts as off. Fails if the device keeps the
/// offload on.
fn switch_off(socket: &OwnedFd, device: &str, get: u32, set: u32) -> io::Result<()> {
    match value(socket, device, get, 0) {
        Ok(0) => return Ok(()),
        Err(unknown) if unknown.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(()),
        other => other?,
    };
    value(socket, device, set, 0)?;
    match value(socket, device, get, 0)? {
        0 => Ok(()),
        _ => Err(io::Error::other("the device keeps the offload on")),
    }
}

/// Executes an ethtool command with a `struct ethtool_value` that contains `data`. Returns the value that the struct
/// contains after the call.
fn value(socket: &OwnedFd, device: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut exchange = [command, data];
    // SAFETY: all zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = exchange.as_mut_ptr().cast();
    // SAFETY: `exchange` has the layout of `struct ethtool_value` and outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    let [_, value] = exchange;
    Ok(value)
}

/// Opens a socket, which the ioctl needs only to find the network namespace.
fn any_socket() -> rustix::io::Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_sandbox, veth};

    #[test]
    fn a_veth_has_offloads_until_they_are_switched_off() {
        in_sandbox(|| {
            veth("a0", "b0");
            assert!(offloads("a0").unwrap().contains(&"tx checksum"));
            offloads_off("a0").unwrap();
            assert_eq!(offloads("a0").unwrap(), Vec::<&str>::new());
            offloads_off("a0").unwrap();
            // The other end of the veth pair is a separate device.
            assert!(offloads("b0").unwrap().contains(&"tx checksum"));
        });
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let refused = offloads_off("no-such-dev").unwrap_err();
        assert_eq!(refused.errno(), Some(libc::ENODEV));
        assert!(refused.to_string().contains("no-such-dev"), "{refused}");
        assert_eq!(offloads("a name longer than names may be").unwrap_err().errno(), Some(libc::ENODEV));
    }
}
