//! The two stacks with a common interface, each with its application: the first end writes, and the second immediately
//! reads everything that has arrived.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use std::collections::VecDeque;
use tcp::{Connection, PROTOCOL, Profile, Segment, Seq};
use wire::ipv4::{self, Header};
use wire::{Duration, Instant, Ipv4Addr, SocketAddrV4};

pub(crate) const ADDRESSES: [SocketAddrV4; 2] =
    [SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000), SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 80)];
/// The largest payload. Two segments of this size are smoltcp's initial window of 2048 bytes.
pub(crate) const MSS: u16 = 1024;
/// The size of both buffers, in bytes. It is a multiple of the segment size, because smoltcp cuts a segment where its
/// ring ends. It is below 64 KiB, at which smoltcp caps the congestion window.
pub(crate) const BUFFER: u32 = 44 * MSS as u32;
pub(crate) const DELAYED_ACK: Duration = Duration::from_millis(200);

/// The configuration that both stacks support.
pub(crate) fn profile() -> Profile {
    Profile {
        mss: MSS,
        initial_window: 2,
        delayed_ack: Some(DELAYED_ACK),
        send_buffer: BUFFER,
        receive_buffer: BUFFER,
        ..Profile::rfc6298_reno()
    }
}

/// One end: the first connects and writes, the second listens and reads.
pub(crate) trait End {
    /// Handles a segment that arrives.
    fn hear(&mut self, now: Instant, segment: &Segment<'_>);
    /// Runs the application and the timers. Returns the segments to send.
    fn work(&mut self, now: Instant) -> Vec<Segment<'static>>;
    /// Returns when `work` must be called next; `None` if no timer runs.
    fn deadline(&mut self, now: Instant) -> Option<Instant>;
    /// Returns the bytes that the application has read.
    fn got(&self) -> &[u8];
    /// Returns whether a loss ever halved less than the outstanding data: the window, or in a recovery twice the
    /// threshold. RFC 5681 halves the outstanding data (section 3.1, equation 4: "no more than").
    fn has_halved_window(&self) -> bool {
        false
    }
}

// --- our TCP -----------------------------------------------------------------------------------------------------------

pub(crate) struct Ours {
    who: usize,
    tcp: Option<Connection>,
    data: Vec<u8>,
    written: usize,
    got: Vec<u8>,
    /// Whether the retransmission timer expired since data was last acknowledged.
    again: bool,
    has_halved_window: bool,
}

impl Ours {
    pub(crate) fn new(who: usize, data: Vec<u8>) -> Self {
        let connect = || Connection::connect(ADDRESSES[0], ADDRESSES[1], Seq(u32::MAX - 9000), &profile());
        Self {
            who,
            tcp: (who == 0).then(connect),
            data,
            written: 0,
            got: Vec::new(),
            again: false,
            has_halved_window: false,
        }
    }

    /// Executes a step, and notes whether the threshold was computed from the window.
    fn watched(&mut self, happens: impl FnOnce(&mut Connection)) {
        let Some(tcp) = &mut self.tcp else { return };
        let before = tcp.info();
        happens(tcp);
        let after = tcp.info();
        let network = if before.recovering { before.ssthresh.saturating_mul(2) } else { before.cwnd };
        let timed_out = after.timeouts > before.timeouts;
        let halved = after.fast_retransmits > before.fast_retransmits || (timed_out && !self.again);
        self.again = timed_out || (self.again && after.flight >= before.flight);
        if halved && before.flight > network {
            self.has_halved_window = true;
        }
    }
}

impl End for Ours {
    fn hear(&mut self, now: Instant, segment: &Segment<'_>) {
        let (local, remote) = (ADDRESSES[self.who], ADDRESSES[1 - self.who]);
        if self.tcp.is_none() {
            self.tcp = Connection::accept(now, local, remote, segment, Seq(5), &profile());
        } else {
            self.watched(|tcp| tcp.receive(now, segment));
        }
    }

    fn work(&mut self, now: Instant) -> Vec<Segment<'static>> {
        if self.deadline(now).is_some_and(|at| at <= now) {
            self.watched(|tcp| tcp.timeout(now));
        }
        let Some(tcp) = &mut self.tcp else { return Vec::new() };
        self.got.extend(tcp.read(usize::MAX));
        self.written += tcp.write(&self.data[self.written..]);
        std::iter::from_fn(|| tcp.poll(now).map(Segment::into_owned)).collect()
    }

    fn deadline(&mut self, _: Instant) -> Option<Instant> {
        self.tcp.as_ref().and_then(Connection::deadline)
    }

    fn got(&self) -> &[u8] {
        &self.got
    }

    fn has_halved_window(&self) -> bool {
        self.has_halved_window
    }
}

// --- smoltcp -----------------------------------------------------------------------------------------------------------

pub(crate) struct Smoltcp {
    who: usize,
    interface: Interface,
    device: Device,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    data: Vec<u8>,
    written: usize,
    got: Vec<u8>,
}

impl Smoltcp {
    pub(crate) fn new(who: usize, data: Vec<u8>) -> Self {
        let mut device = Device::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = 7 + who as u64;
        let mut interface = Interface::new(config, &mut device, in_micros(Instant::ZERO));
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(address(who), 24)).unwrap());
        let buffer = || SocketBuffer::new(vec![0; BUFFER as usize]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Reno);
        socket.set_ack_delay(Some(smoltcp::time::Duration::from_micros(DELAYED_ACK.as_micros() as u64)));
        let ports = ADDRESSES.map(|end| end.port());
        if who == 0 {
            socket.connect(interface.context(), (address(1), ports[1]), ports[0]).unwrap();
        } else {
            socket.listen(ports[1]).unwrap();
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self { who, interface, device, sockets, handle, data, written: 0, got: Vec::new() }
    }

    fn apply(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        while socket.can_recv() {
            socket.recv(|bytes| (bytes.len(), self.got.extend_from_slice(bytes))).unwrap();
        }
        while socket.can_send() && self.written < self.data.len() {
            self.written += socket.send_slice(&self.data[self.written..]).unwrap();
        }
    }
}

impl End for Smoltcp {
    fn hear(&mut self, now: Instant, segment: &Segment<'_>) {
        let [src, dst] = [1 - self.who, self.who].map(|end| *ADDRESSES[end].ip());
        self.device.rx.push_back(Header::new(PROTOCOL, src, dst).emit(&segment.emit(src, dst)));
        self.interface.poll_ingress_single(in_micros(now), &mut self.device, &mut self.sockets);
    }

    fn work(&mut self, now: Instant) -> Vec<Segment<'static>> {
        self.apply();
        loop {
            let said = self.device.tx.len();
            self.interface.poll_egress(in_micros(now), &mut self.device, &mut self.sockets);
            self.apply();
            if self.device.tx.len() == said {
                break;
            }
        }
        std::mem::take(&mut self.device.tx).iter().map(|datagram| segment(datagram).into_owned()).collect()
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(in_micros(now), &self.sockets)?;
        Some(Instant(at.total_micros() as u64 * 1000).max(now))
    }

    fn got(&self) -> &[u8] {
        &self.got
    }
}

fn segment(datagram: &[u8]) -> Segment<'_> {
    let (header, payload) = Header::parse(datagram).unwrap();
    assert_eq!(header.protocol, PROTOCOL);
    assert_eq!(datagram.len(), ipv4::total_len(datagram));
    Segment::parse(payload, header.src, header.dst).unwrap()
}

fn address(who: usize) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from_octets(ADDRESSES[who].ip().octets()))
}

fn in_micros(at: Instant) -> smoltcp::time::Instant {
    assert_eq!(at.0 % 1000, 0, "smoltcp counts in microseconds");
    smoltcp::time::Instant::from_micros(i64::try_from(at.0 / 1000).unwrap())
}

/// A device without a link layer.
#[derive(Default)]
struct Device {
    rx: VecDeque<Vec<u8>>,
    tx: Vec<Vec<u8>>,
}

struct Rx(Vec<u8>);
struct Tx<'a>(&'a mut Vec<Vec<u8>>);

impl phy::Device for Device {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Rx, Tx<'_>)> {
        let datagram = self.rx.pop_front()?;
        Some((Rx(datagram), Tx(&mut self.tx)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = usize::from(MSS) + 40;
        capabilities
    }
}

impl phy::RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl phy::TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut datagram = vec![0; len];
        let result = fill(&mut datagram);
        self.0.push(datagram);
        result
    }
}
