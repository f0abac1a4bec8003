//! Cellular IP: route-updates and update-requests.

use super::Names;
use ::cellular_ip::message::{self, RouteUpdate};
use ::cellular_ip::update_request::UPDATE_REQUEST;
use scenario::Plan;
use std::fmt;
use wire::Ipv4Addr;
use wire::ipv4::Header;

/// A control message: its ICMP code, and its route-update or the reason why it has no route-update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message {
    code: u8,
    says: Result<RouteUpdate, &'static str>,
}

impl Message {
    /// Returns the control message in an IP packet, and the address of the mobile host that the message is about.
    pub(super) fn of(ip: &Header, payload: &[u8]) -> Option<(Ipv4Addr, Self)> {
        let code = message::control_code(ip, payload)?;
        let says = RouteUpdate::parse(ip, payload).map_err(|malformed| malformed.0);
        let host = if code == UPDATE_REQUEST { ip.dst } else { ip.src };
        Some((host, Self { code, says }))
    }

    pub(super) fn is_semisoft(&self) -> bool {
        self.says.as_ref().is_ok_and(|update| update.semisoft)
    }

    /// Returns why the message cannot be read; `None` if it can. An update-request has no route-update.
    pub(super) fn unreadable(&self) -> Option<&'static str> {
        self.says.as_ref().err().copied().filter(|_| self.code != UPDATE_REQUEST)
    }

    pub(super) fn constant(&self, fields: &mut Vec<(&'static str, String)>) {
        fields.push(("type", message::ICMP_TYPE.to_string()));
        fields.push(("code", self.code.to_string()));
        match &self.says {
            Ok(update) => {
                let serving = update.serving_bs.map_or_else(|| "none".to_owned(), |id| id.to_string());
                fields.push(("S", u8::from(update.semisoft).to_string()));
                fields.push(("serving bs", serving));
                fields.push(("key generation", update.auth.key_gen.to_string()));
                fields.push(("R_MH", trace::hex(&update.auth.r_mh)));
                fields.push(("attached since", update.attached_since().is_some().to_string()));
                fields.push(("other information", format!("{:?}", update.skipped.others())));
            }
            Err(_) => fields.extend(self.unreadable().map(|why| ("unreadable", why.to_owned()))),
        }
    }

    pub(super) fn detail(&self, names: &Names<'_>) -> String {
        let Ok(update) = &self.says else { return String::new() };
        let serving =
            update.serving_bs.map_or_else(String::new, |id| format!(" to {}", station(names.plan, id)));
        format!("{serving}, timestamp {}, key {}", names.since_begin(update.timestamp), update.auth.key_gen)
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, src: Ipv4Addr, dst: Ipv4Addr) -> fmt::Result {
        match &self.says {
            Ok(update) => write!(f, "route-update S={} {src} > {dst}", u8::from(update.semisoft)),
            Err(_) if self.code == UPDATE_REQUEST => write!(f, "update-request {src} > {dst}"),
            Err(why) => {
                write!(f, "Cellular IP message with code {} {src} > {dst}, unreadable: {why}", self.code)
            }
        }
    }
}

/// Returns the name of the host whose base station or gateway has this id, or `station ID` if there is none.
fn station(plan: &Plan, id: u32) -> String {
    use roles::RoleConfig::{CellularIpGateway, CellularIpStation};
    let serves = |role: &roles::RoleConfig| matches!(role, CellularIpStation(config) | CellularIpGateway(config) if config.id == id);
    let host = plan.hosts.iter().find(|host| host.config.roles.iter().any(serves));
    host.map_or_else(|| format!("station {id}"), |host| host.config.name.clone())
}
