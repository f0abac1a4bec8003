//! The control run: frames cross the link emulator while no daemon runs. The thread that sends them sleeps until each
//! frame is due. So no daemon causes the lateness of these frames and of this thread. If a run has a larger lateness,
//! its daemons may be the cause.

use crate::link_emulator::{LinkEmulator, Port};
use daemon::{Ages, Waits};
use link::{Fabric, Faults, PortId, WireSpec};
use os::{
    Attempt, Clock, End, EndPlace, NetNs, Netlink, Offset, Options, PacketSocket, Result, namespace,
    set_ordinary, set_realtime, set_timer_slack,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use trace::HostId;
use wire::{Duration, EtherType, Frame, Iface, Instant, Mac, Rng, ethernet};

/// The results of a control run: how late this machine sends frames, and wakes a thread, while no daemon runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// How late the link emulator sent frames: the kernel's receive stamp at the far end, less the planned time. No
    /// daemon sends or receives these frames. A frame that did not arrive counts as received at the end of the control
    /// run.
    pub frames: Ages,
    /// How late the thread that sends the frames woke: it sleeps until each frame is due.
    pub sleeper: Ages,
    /// Whether the control run came right after the run of this report. If not, it came after an earlier run of the
    /// same process.
    pub follows_this_run: bool,
}

impl Control {
    /// Returns the worst lateness of the frames and of the sending thread, in microseconds.
    pub const fn worst_us(&self) -> f64 {
        self.frames.worst_us.max(self.sleeper.worst_us)
    }

    /// Returns the larger one of two 99th percentiles, in microseconds: of the lateness of the frames, and of that of
    /// the sending thread.
    pub const fn p99_us(&self) -> f64 {
        self.frames.p99_us.max(self.sleeper.p99_us)
    }
}

/// Number of frames that a control run sends.
const FRAMES: u32 = 160;
/// The time from one frame to the next.
const SPACING: Duration = Duration::from_millis(1);
/// The time before the first frame, and the time that the last frame has to arrive.
const MARGIN: Duration = Duration::from_millis(15);
/// The propagation delay of the emulated wire.
const DELAY: Duration = Duration::from_millis(2);
/// Time from the clock's start until the last frame must have arrived. Set-up and tear-down are not included.
const LENGTH: Duration = Duration::from_nanos(
    (2 * MARGIN.as_nanos() + SPACING.as_nanos() * FRAMES as u128 + DELAY.as_nanos()) as u64,
);
/// The veth pairs at both ends of the wire: the name at the link emulator, and the name where a host would be.
const DEVICES: [[&str; 2]; 2] = [["c0", "c0-far"], ["c1", "c1-far"]];
/// The frames' Ethertype, for local experiments (IEEE 802).
const KIND: EtherType = EtherType(0x88b5);
/// Bytes of payload: the frame's number, padded to the shortest Ethernet frame.
const PAYLOAD: usize = 46;

/// Runs the control run in a new network namespace, in about 0.2 s. The link emulator listens at `socket`, a path
/// that must not exist yet.
///
/// # Errors
/// If the kernel refuses the namespace, the veth pairs or the packet sockets.
pub fn measure(socket: &Path) -> Result<Control> {
    NetNs::create()?.run(|| here(socket))?
}

/// Measures in the calling thread's network namespace, which must be used for nothing else.
fn here(socket: &Path) -> Result<Control> {
    set_timer_slack(Duration::from_micros(1))?;
    let mut net = Netlink::open()?;
    let _ = namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    for (pair, [near, far]) in (0..).zip(DEVICES) {
        let end =
            |name, last| End { name, mac: Mac([2, 0x57, 0x46, 0xfc, pair, last]), place: EndPlace::Here };
        net.add_veth(&end(near, 0), &end(far, 1))?;
        net.set_up(far, true)?;
    }
    let ends = [PortId(0), PortId(1)];
    let mut fabric = Fabric::default();
    let (rate, faults) = (1_000_000_000, Faults::default());
    let spec = WireSpec { rate, delay: [DELAY; 2], queue: FRAMES as usize, mtu: 1500, faults };
    fabric.add_wire(ends, &spec, &Rng::new(0));
    let ports = (0..).map(HostId).zip(ends).zip(DEVICES).map(|((host, port), [near, _])| Port {
        port,
        host,
        iface: Iface(1),
        device: near.to_owned(),
    });
    let mut radio = LinkEmulator::new(fabric, ports.collect(), socket)?;
    let options = Options { bypass_qdisc: true, ..Options::default() };
    let [[_, from], [_, to]] = DEVICES;
    let (from, to) = (PacketSocket::open(from, &options)?, PacketSocket::open(to, &options)?);

    let clock = Clock::start();
    let offset = Offset::sample();
    let end = Instant::ZERO + LENGTH;
    let stop = AtomicBool::new(false);
    let (ran, sent) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send_all(&from, clock));
        set_realtime();
        let ran = radio.run(clock, end, &stop);
        set_ordinary();
        let ended = |_| std::io::Error::other("the sending thread ended early");
        (ran, sender.join().map_err(ended).attempt("send the frames of", "the control run"))
    });
    ran?;
    let (sent, sleeper) = sent??;
    let frames = lateness(&to, clock, offset, &sent, end)?;
    Ok(Control { frames, sleeper: sleeper.summary(), follows_this_run: false })
}

/// Sleeps until each frame is due, then sends it. Returns when each frame was sent, and how late the thread woke.
fn send_all(from: &PacketSocket, clock: Clock) -> Result<(Vec<Instant>, Waits)> {
    set_realtime();
    set_timer_slack(Duration::from_micros(1))?;
    let (mut sent, mut sleeper) = (Vec::new(), Waits::default());
    for number in 0..FRAMES {
        let due = Instant::ZERO + MARGIN + SPACING * number;
        let left = due.since(clock.now());
        if !left.is_zero() {
            os::pause(left);
        }
        sleeper.add(clock.now().since(due));
        let mut payload = [0; PAYLOAD];
        for (to, byte) in payload.iter_mut().zip(number.to_be_bytes()) {
            *to = byte;
        }
        let link = Frame { dst: Mac::BROADCAST, src: Mac([2, 0x57, 0x46, 0xfc, 0, 1]), kind: KIND };
        sent.push(clock.now());
        from.send(&ethernet::emit(&link, &payload))?;
    }
    Ok((sent, sleeper))
}

/// Returns a summary of how late the frames arrived, by the kernel's receive stamp. A frame that did not arrive counts
/// as received at `end`.
fn lateness(to: &PacketSocket, clock: Clock, offset: Offset, sent: &[Instant], end: Instant) -> Result<Ages> {
    let mut arrived: Vec<Option<Instant>> = vec![None; sent.len()];
    let mut frame = [0; 2048];
    while let Some(received) = to.receive(&mut frame)? {
        let Ok((link, bytes)) = ethernet::parse(frame.get(..received.len).unwrap_or_default()) else {
            continue;
        };
        let Some(number) = bytes.first_chunk().filter(|_| link.kind == KIND) else { continue };
        if let Some(at) = arrived.get_mut(u32::from_be_bytes(*number) as usize) {
            *at = Some(clock.instant(received.at, offset));
        }
    }
    let mut waits = Waits::default();
    for (sent, arrived) in sent.iter().zip(arrived) {
        waits.add(arrived.unwrap_or(end).since(*sent + DELAY - crate::link_emulator::WAKE));
    }
    Ok(waits.summary())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_sandbox;

    #[test]
    fn every_frame_and_every_sleep_is_counted_in_two_tenths_of_a_second() {
        assert!(LENGTH < Duration::from_millis(200), "{LENGTH:?}");
        in_sandbox(|| {
            let dir = tempfile::tempdir().unwrap();
            let control = measure(&dir.path().join("control.sock")).unwrap();
            let Control { frames, sleeper, .. } = control;
            assert_eq!((frames.count, sleeper.count), (u64::from(FRAMES), u64::from(FRAMES)));
            // An emulated wire is never early, and a frame takes some microseconds.
            assert!(frames.median_us > 1.0 && sleeper.median_us > 0.0, "{control:?}");
            assert!(frames.median_us <= frames.p99_us && frames.p99_us <= frames.worst_us, "{control:?}");
        });
    }
}
