//! Configurations, and messages that are signed with a test key, for the tests of one role.

use auth::Key;
use cellular_ip::config::StationConfig;
use cellular_ip::message::{Authentication, RouteUpdate, Skipped, session_key};
use node::config::Interfaces;
use serde::de::DeserializeOwned;
use wire::{Instant, Ipv4Addr, Mac, WallTime};

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub(crate) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
/// The address of the node under test.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// The wall time when a test begins: 2000-01-01 00:00 UTC.
pub(crate) const WALL: WallTime = WallTime(946_684_800_000_000_000);

const NETWORK_KEY: &str = "000102030405060708090a0b0c0d0e0f";
const R_MH: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A node of the network with three downlink neighbors, two by wire and one in its cell.
const STATION: &str = r#"
    id = 1
    gateway = "10.1.0.1"
    uplink = { interface = "up", mac = "02:00:00:00:00:01" }
    downlinks = ["left", "right"]
    radio = "air"
    network_key = "000102030405060708090a0b0c0d0e0f"
"#;

/// Returns a configuration with some values changed. Each value is written as in a file.
pub(crate) fn configured<T: DeserializeOwned>(base: &str, changes: &str) -> T {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table).try_into().unwrap()
}

/// Returns the configuration of [`STATION`] with changes, on a host with the addresses of a gateway and of the node.
pub(crate) fn station_config(changes: &str) -> StationConfig {
    let config: StationConfig = configured(STATION, changes);
    StationConfig { own: vec![GATEWAY, NODE], ..config }
}

pub(crate) fn station<T>(
    new: fn(StationConfig, Interfaces<'_>) -> Result<T, node::config::ConfigError>,
    changes: &str,
) -> T {
    let names = ["up", "left", "right", "air"].map(str::to_owned);
    new(station_config(changes), Interfaces(&names)).unwrap()
}

/// Returns the session key that `host` would get when it registers.
pub(crate) fn key_of(host: Ipv4Addr) -> Key {
    session_key(&NETWORK_KEY.parse().unwrap(), 1, host, R_MH)
}

/// Returns the link address of a neighbor. Its last byte is the number of the interface that leads to the neighbor.
pub(crate) fn neighbor(iface: u16) -> Mac {
    Mac([2, 0, 0, 0, 0, iface as u8])
}

/// Returns the timestamp of a host whose clock is right.
pub(crate) fn stamp(at: Instant) -> u64 {
    WALL.plus(at.since(Instant::ZERO)).to_ntp()
}

/// Returns an unsigned route-update that [`HOST`] sends at `at`.
pub(crate) fn update(at: Instant, semisoft: bool) -> RouteUpdate {
    RouteUpdate {
        mobile: HOST,
        gateway: GATEWAY,
        timestamp: stamp(at),
        semisoft,
        auth: Authentication::unsigned(1, R_MH),
        serving_bs: Some(1),
        skipped: Skipped::default(),
    }
}

/// Returns a route-update as a datagram, signed by the host that it names.
pub(crate) fn signed(mut update: RouteUpdate) -> Vec<u8> {
    update.sign(&key_of(update.mobile));
    update.emit()
}
