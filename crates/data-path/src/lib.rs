//! The data path in the kernel: an XDP program that forwards packets beside a node, with a copy of the node's rules.
//!
//! A driver loads the program ([`DataPath::load`]), attaches it to its interfaces, and passes on each act of the node's
//! mirror ([`node::MirrorAct`]). The program is `bpf/forward.bpf.c`; [`covers`] says exactly which packets it forwards. It passes
//! all others to the node, untouched, and drops none. So the node gets all packets but those that the program forwards.
//!
//! For a route with [`table::Aside`] the program also keeps a copy of the last packets in memory that it shares with this
//! process, and [`DataPath::fetch`] returns them. No packet costs a system call.
//!
//! The program is attached in the generic mode of XDP. In the native mode of veth, a packet is lost without an error if the
//! receiving end has no NAPI, and packets from sockets are copied once more. The kernel detaches the program when this process
//! ends, whatever ends it.

pub mod covers;
mod pool;
mod rings;
mod shapes;
mod shared;

use aya::maps::{HashMap, Map, MapData, PerCpuArray};
use aya::programs::links::FdLink;
use aya::programs::xdp::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use node::{KeptPacket, MirrorAct};
use os::{Attempt, Result};
use rings::Rings;
use shapes::Shapes;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::{fmt, io};
use table::map::{MapKey, MapPolicy, MapPort, MapRoute};
use table::{Aside, Found, RouteKey};
use wire::{Iface, Instant, Mac};

/// The compiled program, or nothing if there was no clang when this crate was built.
const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/forward.bpf.o"));
const PROGRAM: &str = "wayfare_forward";
const WHAT: &str = "the data path in the kernel";

/// The bytes of a route in the kernel: those of [`MapRoute`], the first slot of its ring, and the ring's number of slots.
type RouteBytes = [u8; MapRoute::SIZE + 8];

/// The program in the kernel, and its maps.
pub struct DataPath {
    bpf: Ebpf,
    config: HashMap<MapData, u32, shapes::ConfigBytes>,
    routes: HashMap<MapData, [u8; MapKey::SIZE], RouteBytes>,
    policies: HashMap<MapData, [u8; MapPort::SIZE], [u8; MapPolicy::SIZE]>,
    addresses: HashMap<MapData, [u8; 4], u32>,
    ports: HashMap<MapData, u32, u32>,
    arrivals: HashMap<MapData, u32, [u8; 16]>,
    departures: HashMap<MapData, u32, [u8; 16]>,
    counts: PerCpuArray<MapData, u64>,
    shapes: Shapes,
    rings: Rings,
    devices: BTreeMap<Iface, Device>,
    /// The zero of the node's clock in nanoseconds of `CLOCK_BOOTTIME`; `None` until [`Self::begin`].
    t0: Option<u64>,
    is_allowed: bool,
    /// The version of the configuration that was written last.
    version: u32,
    /// The first change that the kernel refused. Since then the node gets all packets.
    failure: Option<String>,
}

impl fmt::Debug for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shapes, rings, devices, t0, is_allowed, version, failure, .. } = self;
        let mut shown = f.debug_struct("DataPath");
        shown.field("shapes", shapes).field("rings", rings).field("devices", devices).field("t0", t0);
        shown.field("is_allowed", is_allowed).field("version", version).field("failure", failure);
        shown.finish_non_exhaustive()
    }
}

/// An interface of the node.
#[derive(Debug, Default)]
struct Device {
    index: u32,
    /// The link address, while the link is up.
    mac: Option<Mac>,
    /// The MTU that the node has reported.
    mtu: u16,
    /// The attachment of the program. The kernel ends it with this process.
    link: Option<FdLink>,
}

/// What the program has done since it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// The packets that it forwarded.
    pub forwarded: u64,
    /// The packets among these of which it kept a copy.
    pub kept: u64,
    /// The frames that it passed to the node.
    pub passed: u64,
}

/// Returns an error if this executable was built without clang, so that it has no data path in the kernel.
pub fn check_built() -> std::result::Result<(), &'static str> {
    if OBJECT.is_empty() {
        return Err(
            "this program was built without clang, so it has no data path in the kernel; install clang, and build it again",
        );
    }
    Ok(())
}

impl DataPath {
    /// Loads the program and its maps, with `room` bytes for kept packets. Until [`Self::begin`] it passes all packets to the
    /// node. Fails without root (`CAP_BPF` and `CAP_NET_ADMIN`), or if this executable was built
    /// without clang.
    pub fn load(room: usize) -> Result<Self> {
        check_built().map_err(io::Error::other).attempt("load", WHAT)?;
        Self::load_object(OBJECT, room)
    }

    /// Does the same with another compiled program, for example a wrong one in a test.
    pub fn load_object(object: &[u8], room: usize) -> Result<Self> {
        let slots = Rings::slots_in(room);
        let mut loader = EbpfLoader::new();
        loader.map_max_entries("slots", slots.max(1)).map_max_entries("rings", slots.max(1));
        let mut bpf = loader.load(object).map_err(refused).attempt("load", WHAT)?;
        program(&mut bpf)?.load().map_err(refused).attempt("load", WHAT)?;
        let (shared, numbers, news) =
            (shared_map(&bpf, "slots")?, shared_map(&bpf, "rings")?, shared_map(&bpf, "news")?);
        Ok(Self {
            config: hash(&mut bpf, "config")?,
            routes: hash(&mut bpf, "routes")?,
            policies: hash(&mut bpf, "policies")?,
            addresses: hash(&mut bpf, "addresses")?,
            ports: hash(&mut bpf, "ports")?,
            arrivals: hash(&mut bpf, "arrivals")?,
            departures: hash(&mut bpf, "departures")?,
            counts: PerCpuArray::try_from(map(&mut bpf, "counts")?)
                .map_err(refused)
                .attempt("open", "a map")?,
            shapes: Shapes::default(),
            rings: Rings::new(shared, numbers, news, slots),
            devices: BTreeMap::new(),
            t0: None,
            is_allowed: true,
            version: 0,
            failure: None,
            bpf,
        })
    }

    /// Begins to forward packets. `t0` is the zero of the node's clock in nanoseconds of `CLOCK_BOOTTIME`.
    pub fn begin(&mut self, t0: u64) {
        self.t0 = Some(t0);
        self.write_config();
    }

    /// Sets that UDP to this port of this host can be a message to a role of the node ([`node::Node::udp_ports`]).
    pub fn hear(&mut self, port: u16) {
        let done = self.ports.insert(u32::from(port), 1, 0);
        self.note(done);
    }

    /// Sets whether the program forwards packets. If not, the node gets all of them ([`node::Node::opens_aside`]).
    pub fn allow(&mut self, is_allowed: bool) {
        if self.is_allowed != is_allowed {
            self.is_allowed = is_allowed;
            self.write_config();
        }
    }

    /// Returns why the program forwards no packets; `None` if it may.
    pub fn idle_because(&self) -> Option<String> {
        let too_many = || self.shapes.check().err();
        let listens = "a role of this host listens for IP in IP or for all UDP, or intercepts connections";
        let denied = || (!self.is_allowed).then(|| listens.to_owned());
        self.failure.clone().or_else(too_many).or_else(denied)
    }

    /// Attaches the program to the device with this index, as the interface `iface` of the node.
    pub fn attach(&mut self, iface: Iface, index: u32) -> Result<()> {
        let what = format!("{WHAT} to interface number {}", iface.0);
        if let Some(device) = self.devices.get_mut(&iface) {
            device.link = None;
        }
        // Also if the program cannot be attached, packets must not leave by the device that was there before.
        self.place(iface, index);
        let program = program(&mut self.bpf)?;
        let id = program.attach_to_if_index(index, XdpMode::Skb).map_err(refused).attempt("attach", &what)?;
        let link = program.take_link(id).map_err(refused).attempt("attach", &what)?;
        let link = FdLink::try_from(link).map_err(refused).attempt("attach", &what)?;
        self.devices.entry(iface).or_default().link = Some(link);
        Ok(())
    }

    /// Sets the index of the device of an interface, without attaching the program to it.
    pub fn place(&mut self, iface: Iface, index: u32) {
        let device = self.devices.entry(iface).or_default();
        let before = std::mem::replace(&mut device.index, index);
        let is_another = |device: &Device| device.index == before;
        if before != index && !self.devices.values().any(is_another) {
            let removed = self.arrivals.remove(&before);
            self.note_removal(removed);
        }
        self.write_device(iface);
    }

    /// Records that the link of an interface is up, with this link address of the node, or down (`None`).
    pub fn link(&mut self, iface: Iface, mac: Option<Mac>) {
        self.devices.entry(iface).or_default().mac = mac;
        self.write_device(iface);
    }

    /// Changes the copy of the rules.
    pub fn apply(&mut self, now: Instant, act: &MirrorAct) {
        let done = match *act {
            MirrorAct::Route(key, Some((found, used))) => return self.set_route(now, key, &found, used),
            MirrorAct::Route(key, None) => return self.remove_route(now, key),
            MirrorAct::IngressPolicy(port, Some((owner, policy))) => {
                let (port, policy) =
                    (MapPort::new(port).to_bytes(), MapPolicy::new(owner, &policy).to_bytes());
                self.policies.insert(port, policy, 0)
            }
            MirrorAct::IngressPolicy(port, None) => self.policies.remove(&MapPort::new(port).to_bytes()),
            MirrorAct::Address(address, true) => self.addresses.insert(address.octets(), 1, 0),
            MirrorAct::Address(address, false) => self.addresses.remove(&address.octets()),
            MirrorAct::Mtu(iface, mtu) => {
                self.devices.entry(iface).or_default().mtu = mtu;
                return self.write_device(iface);
            }
        };
        self.note(done);
    }

    fn set_route(&mut self, now: Instant, key: RouteKey, found: &Found, used: Instant) {
        let bytes = MapKey::new(&key).to_bytes();
        let packets = found.route.aside.map_or(0, |Aside { packets, .. }| packets);
        let (ring, old) = self.rings.of_route(bytes, packets);
        let mut value: RouteBytes = [0; MapRoute::SIZE + 8];
        let parts = MapRoute::new(found, used)
            .to_bytes()
            .into_iter()
            .chain(ring.map(u32::to_ne_bytes).into_iter().flatten());
        value.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        // The route comes before its shape: a look-up that does not try the shape yet finds what it found before.
        let done = self.routes.insert(bytes, value, 0);
        self.note(done);
        self.rings.retire(now, old);
        if self.shapes.add(bytes) {
            self.write_config();
        }
    }

    fn remove_route(&mut self, now: Instant, key: RouteKey) {
        let bytes = MapKey::new(&key).to_bytes();
        let done = self.routes.remove(&bytes);
        self.note_removal(done);
        let old = self.rings.without_route(bytes);
        self.rings.retire(now, old);
        if self.shapes.remove(&bytes) {
            self.write_config();
        }
    }

    /// Returns the last use of a route by the program, or `None` if it does not have the route.
    pub fn last_use(&self, key: &RouteKey) -> Option<Instant> {
        let value = self.routes.get(&MapKey::new(key).to_bytes(), 0).ok()?;
        Some(Instant(MapRoute::from_bytes(*value.first_chunk()?).used))
    }

    /// Returns whether a packet was kept since the last [`Self::fetch`]. The call reads one number in memory.
    pub fn has_kept(&self) -> bool {
        self.rings.has_news()
    }

    /// Returns the packets that were kept since the last call, in the order of their arrival: of each route the last ones, at
    /// most as many as its ring has.
    pub fn fetch(&mut self, now: Instant) -> Vec<KeptPacket> {
        self.rings.fetch(now)
    }

    /// Returns a number of messages to roles that the driver has not handled, once it has been that number for 1 ms:
    /// the program counts a message a moment before its frame is at the driver's socket. The program passes all
    /// packets behind a message, because it may change the rules. When the driver has handled all frames that its interfaces
    /// had after this call, it calls [`Self::handled`].
    pub fn messages(&mut self, now: Instant) -> Option<u64> {
        self.rings.messages(now)
    }

    /// Ends the wait for the first `messages` messages.
    pub fn handled(&mut self, messages: u64) {
        self.rings.handled(messages);
    }

    /// Returns when [`Self::fetch`] must be called again, because a route was removed: a packet may have been on its way
    /// through the program. Or when [`Self::messages`] must be called again.
    pub fn due(&self) -> Option<Instant> {
        self.rings.due()
    }

    /// Returns what the program has done.
    pub fn counts(&self) -> Counts {
        let sum = |index| self.counts.get(&index, 0).map_or(0, |each| each.iter().sum());
        Counts { forwarded: sum(0), kept: sum(1), passed: sum(2) }
    }

    /// Returns the program's descriptor, for a test run of the kernel.
    pub fn program(&self) -> Option<BorrowedFd<'_>> {
        let program: &Xdp = self.bpf.program(PROGRAM)?.try_into().ok()?;
        Some(program.fd().ok()?.as_fd())
    }

    fn write_device(&mut self, iface: Iface) {
        let Some(Device { index, mac, mtu, .. }) = self.devices.get(&iface) else { return };
        let (index, number) = (*index, u32::from(iface.0));
        let done = match mac.filter(|_| index != 0 && *mtu != 0) {
            Some(Mac(mac)) => {
                let mut value = [0; 16];
                let [a, b, c, d] = index.to_ne_bytes();
                let ([e, f], [g, h]) = (iface.0.to_ne_bytes(), mtu.to_ne_bytes());
                let parts = [a, b, c, d, e, f, g, h].into_iter().chain(mac);
                value.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
                let done = self.departures.insert(number, value, 0);
                done.and_then(|()| self.arrivals.insert(index, value, 0))
            }
            None => {
                let removed = [self.arrivals.remove(&index), self.departures.remove(&number)];
                return removed.into_iter().for_each(|done| self.note_removal(done));
            }
        };
        self.note(done);
    }

    fn write_config(&mut self) {
        let t0 = self.t0.filter(|_| self.idle_because().is_none());
        let done = match t0 {
            Some(t0) => {
                self.version = self.version.wrapping_add(1);
                self.config.insert(0, self.shapes.config(t0, self.version), 0)
            }
            None => return drop(self.config.remove(&0)), // there may be none
        };
        self.note(done);
    }

    /// Records that an element was removed. It need not have been there.
    fn note_removal(&mut self, done: std::result::Result<(), aya::maps::MapError>) {
        match done {
            Err(error) if errno(&error) != Some(libc::ENOENT) => self.note(Err(error)),
            _ => {}
        }
    }

    /// If the kernel has refused a change, its copy of the rules is not that of the node. So the node gets all packets from
    /// now on.
    fn note(&mut self, done: std::result::Result<(), aya::maps::MapError>) {
        if let Err(error) = done
            && self.failure.is_none()
        {
            self.failure = Some(format!("the kernel refused a rule: {}", refused(error)));
            let _ = self.config.remove(&0);
        }
    }
}

fn program(bpf: &mut Ebpf) -> Result<&mut Xdp> {
    let program = bpf.program_mut(PROGRAM).ok_or_else(|| io::Error::other("the program is missing"));
    program.attempt("load", WHAT)?.try_into().map_err(refused).attempt("load", WHAT)
}

fn map(bpf: &mut Ebpf, name: &str) -> Result<Map> {
    bpf.take_map(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)).attempt("open the map", name)
}

fn hash<K: aya::Pod, V: aya::Pod>(bpf: &mut Ebpf, name: &str) -> Result<HashMap<MapData, K, V>> {
    HashMap::try_from(map(bpf, name)?).map_err(refused).attempt("open the map", name)
}

fn shared_map(bpf: &Ebpf, name: &str) -> Result<shared::Shared> {
    let Some(Map::Array(data)) = bpf.map(name) else {
        return Err(io::Error::from(io::ErrorKind::NotFound)).attempt("open the map", name);
    };
    shared::Shared::new(data.fd().as_fd(), &data.info().map_err(refused).attempt("open the map", name)?)
}

fn errno(error: &aya::maps::MapError) -> Option<i32> {
    match error {
        aya::maps::MapError::KeyNotFound => Some(libc::ENOENT),
        aya::maps::MapError::SyscallError(failed) => failed.io_error.raw_os_error(),
        _ => None,
    }
}

/// Converts an error of the loader to one with the text of all its causes.
fn refused(error: impl std::error::Error) -> io::Error {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    io::Error::other(text)
}
