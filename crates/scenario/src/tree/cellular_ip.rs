//! A tree of Cellular IP. The root is a host of the Internet, and the router between the access networks. Each router
//! directly below the root is the gateway of an access network. All other routers are base stations, and each of the
//! lowest routers has a cell. The hosts are mobile hosts in these cells.
//!
//! ```text
//!   root ── 10 gateways ── 100 nodes ── 1000 base stations ))) mobile hosts
//!           └──────── ten access networks ────────┘
//! ```

use super::{Shape, Tree};
use ::cellular_ip::config::{MobileConfig, Neighbor, Station, StationConfig};
use ::cellular_ip::message::session_key;
use auth::Key;
use link::{Air, CellSpec, Fabric, Faults, Listening, PortId, RadioSpec};
use roles::RoleConfig;
use std::sync::{Arc, OnceLock};
use toml::Table;
use trace::HostId;
use wire::{Cell, Duration, Iface, Mac, Rng};

/// The parameters of the air, the same for each cell: the keys of `[tree.air]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellAir {
    /// Bits per second that all radios of a cell share.
    pub(crate) rate: u64,
    /// The time that each frame takes besides its bits.
    pub(crate) per_frame: Duration,
    /// The largest number of frames that wait at a radio.
    pub(crate) queue: usize,
}

/// How the radios of mobile hosts tune: the keys of `[radio]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) retune: Duration,
    pub(crate) attach: Option<Duration>,
    pub(crate) excursion: Duration,
    pub(crate) association: Duration,
    pub(crate) drain: Duration,
    pub(crate) queue: Option<u32>,
}

/// The Cellular IP part of a tree.
#[derive(Clone, Debug)]
pub(crate) struct CellularIp {
    air: CellAir,
    radio: Tuning,
    key: Key,
    /// The common parts of the configurations: `station` of all base stations, `mobile` of all mobile hosts.
    station: StationConfig,
    mobile: MobileConfig,
    /// For each cell, the list of base stations in the configuration of its mobile hosts: only the base station of
    /// the cell. The index is the base station's place in its level ([`Shape::place`]).
    stations: OnceLock<Vec<Arc<[Station]>>>,
}

impl CellularIp {
    /// Builds the Cellular IP part from `air` of the tree, `[radio]` of the scenario, and the network key with its
    /// generation.
    pub(crate) fn new(
        air: CellAir,
        radio: Tuning,
        network_key: &Key,
        generation: u8,
    ) -> Result<Self, String> {
        let key = trace::hex(network_key.as_bytes());
        let station = format!(
            "kind = 'cellular-ip/station'\nid = 0\ngateway = '0.0.0.0'\nnetwork_key = '{key}'\n\
             key_generation = {generation}\nuplink = {{ interface = '', mac = '00:00:00:00:00:00' }}"
        );
        let mobile = format!(
            "kind = 'cellular-ip/mobile'\naddress = '0.0.0.0'\ngateway = '0.0.0.0'\ninterface = '{}'\n\
             key_generation = {generation}\nstations = []\nsession_key = '{key}'\nr_mh = '0000000000000000'",
            Shape::AIR
        );
        match (read(&station)?, read(&mobile)?) {
            (RoleConfig::CellularIpStation(station), RoleConfig::CellularIpMobile(mobile)) => {
                let (key, stations) = (network_key.clone(), OnceLock::new());
                Ok(Self { air, radio, key, station, mobile, stations })
            }
            _ => Err("internal error: a role of Cellular IP was read as another kind".to_owned()),
        }
    }

    /// Adds the cells and all radios to the fabric. The radios of mobile hosts begin to listen one after the other,
    /// spread over the time `spread`.
    pub(super) fn lay(&self, tree: &Tree, fabric: &mut Fabric, rng: &Rng) {
        let shape = &tree.shape;
        let CellAir { rate, per_frame, queue } = self.air;
        for station in base_stations(shape) {
            let (delay, mtu, faults, air) =
                (Duration::ZERO, tree.wire.mtu, Faults::default(), Air::default());
            let cell = cell_of(shape, station);
            let (duplex, is_segment) = (link::Duplex::Half, false);
            let spec = CellSpec { cell, rate, per_frame, delay, queue, mtu, faults, air, duplex, is_segment };
            fabric.add_cell(&spec, rng);
            self.add_radio(tree, station, Some(cell), fabric);
        }
        for mobile in (shape.start(shape.depth() + 1)..shape.len()).map(HostId) {
            self.add_radio(tree, mobile, None, fabric);
        }
    }

    fn add_radio(&self, tree: &Tree, host: HostId, cell: Option<Cell>, fabric: &mut Fabric) {
        let iface = Iface(tree.shape.interfaces(host));
        let Some(port) = tree.shape.port(host, iface) else { return };
        let Tuning { retune, excursion, .. } = self.radio;
        let attach = self.radio.attach.unwrap_or(retune) + tree.lateness(host);
        let listening = Listening {
            association: self.radio.association,
            drain: self.radio.drain,
            ..Listening::default()
        };
        let listening = if cell.is_none() { listening } else { Listening::default() };
        let queue = if cell.is_none() { self.radio.queue } else { None };
        let mac = Shape::mac(port);
        fabric.add_radio(port, RadioSpec { mac, cell, retune, attach, excursion, listening, queue });
    }

    /// Returns the Cellular IP role of a host. `None` for the root, which is in no access network.
    pub(super) fn role(&self, tree: &Tree, host: HostId) -> Option<RoleConfig> {
        let shape = &tree.shape;
        match shape.level(host) {
            0 => None,
            level if level > shape.depth() => Some(RoleConfig::CellularIpMobile(self.mobile(tree, host)?)),
            1 => Some(RoleConfig::CellularIpGateway(self.station(tree, host)?)),
            _ => Some(RoleConfig::CellularIpStation(self.station(tree, host)?)),
        }
    }

    fn station(&self, tree: &Tree, host: HostId) -> Option<StationConfig> {
        let shape = &tree.shape;
        let name = |iface| shape.interface_name(host, Iface(iface));
        let has_cell = shape.level(host) == shape.depth();
        let uplink =
            Neighbor { interface: name(1), mac: Shape::mac(Shape::peer(shape.port(host, Iface(1))?)) };
        let down = 2..=shape.interfaces(host);
        Some(StationConfig {
            id: host.0,
            gateway: tree.address(gateway(shape, host)?),
            uplink,
            downlinks: if has_cell { Vec::new() } else { down.map(name).collect() },
            radio: has_cell.then(|| Shape::AIR.to_owned()),
            ..self.station.clone()
        })
    }

    fn mobile(&self, tree: &Tree, host: HostId) -> Option<MobileConfig> {
        let shape = &tree.shape;
        let (station, _) = shape.parent(host)?;
        let (address, r_mh) = (tree.address(host), u64::from(host.0));
        let stations = self.stations.get_or_init(|| stations(shape)).get(shape.place(station) as usize)?;
        let generation = self.mobile.key_generation;
        Some(MobileConfig {
            address,
            gateway: tree.address(gateway(shape, host)?),
            stations: Arc::clone(stations),
            session_key: session_key(&self.key, generation, address, r_mh.to_be_bytes()),
            r_mh,
            ..self.mobile.clone()
        })
    }
}

/// Returns the gateway of a host's access network. `None` for the root.
fn gateway(shape: &Shape, host: HostId) -> Option<HostId> {
    std::iter::successors(Some(host), |at| Some(shape.parent(*at)?.0)).find(|at| shape.level(*at) == 1)
}

/// Returns the base stations that have cells, ordered by place.
fn base_stations(shape: &Shape) -> impl Iterator<Item = HostId> {
    (0..shape.stations()).map(|place| HostId(shape.start(shape.depth()) + place))
}

/// Returns, for each cell, the list of base stations in the configuration of its mobile hosts.
fn stations(shape: &Shape) -> Vec<Arc<[Station]>> {
    let known = |station| {
        let mac: Option<Mac> = station_air(shape, station).map(Shape::mac);
        let cell = cell_of(shape, station).0;
        mac.map(|mac| Station { name: shape.name(station), id: station.0, cell, mac })
    };
    base_stations(shape).map(|station| known(station).into_iter().collect()).collect()
}

/// Returns the cell of a base station. Cells have numbers from 1.
fn cell_of(shape: &Shape, station: HostId) -> Cell {
    Cell(shape.place(station) as u16 + 1)
}

fn station_air(shape: &Shape, station: HostId) -> Option<PortId> {
    shape.port(station, Iface(shape.interfaces(station)))
}

fn read(text: &str) -> Result<RoleConfig, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    RoleConfig::read(table).map_err(|error| format!("{}: {}", error.path, error.problem))
}
