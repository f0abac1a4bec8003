//! The words of a transcript's effects.

use super::{EF, is_data};
use cellular_ip::message::RouteUpdate;
use node::{Act, Action, Class, Hop, IngressPolicy, Lifetime, Mark, NextHop, Route, RouteKey, Span, Value};
use wire::ipv4::Header;
use wire::{Iface, Mac, Packet, Prefix};

/// One act in words; `interfaces` are the node's, by number from 1.
pub(crate) fn act(act: &Act, interfaces: &[&str]) -> String {
    match act {
        Act::Transmit(Iface::HOST, packet) => format!("hand {} to this host", packet_name(packet)),
        Act::Transmit(iface, packet) => {
            format!("send {} to {}", packet_name(packet), neighbor(*iface, packet.link.dst, interfaces))
        }
        Act::Drop(iface, packet, reason) => {
            format!("drop {} from {}: {reason}", packet_name(packet), interface(*iface, interfaces))
        }
        Act::Route(key, route) => {
            format!("route {}: {}", key_name(*key), route_name(route.as_ref(), interfaces))
        }
        Act::IngressPolicy(port, policy) => {
            format!("gate {}: {}", interface(port.iface, interfaces), policy_name(*policy))
        }
        Act::Tune(_, cell) => format!("tune to cell {}", cell.0),
        Act::SendInCell(_, cell, packet) => format!("visit cell {} with {}", cell.0, packet_name(packet)),
        Act::Mark(mark) => mark_name(mark),
        Act::Answer(_, Ok(answer)) => format!("answer {}", value(answer)),
        Act::Answer(_, Err(why)) => format!("refuse: {why}"),
        Act::Neighbor(..) | Act::Address(..) | Act::Store(..) | Act::Served(_) | Act::Delivered(_) => {
            "what no role of this protocol asks for".to_owned()
        }
        Act::Stream(..) => "a stream, which no role of this protocol uses".to_owned(),
    }
}

/// The route-update in a packet, if it is one.
pub(crate) fn route_update(packet: &Packet) -> Option<RouteUpdate> {
    let (ip, icmp) = Header::parse(&packet.bytes).ok()?;
    RouteUpdate::parse(&ip, icmp).ok()
}

fn packet_name(packet: &Packet) -> String {
    if let Some(update) = route_update(packet) {
        let station = update.serving_bs.unwrap_or_default();
        return format!("route-update S={} for bs {station}", u8::from(update.semisoft));
    }
    match Header::parse(&packet.bytes) {
        Ok((header, _)) if is_data(&header) => {
            format!("{}data {}", if header.tos == EF { "EF " } else { "" }, packet.id.0)
        }
        _ => "something else".to_owned(),
    }
}

fn interface(iface: Iface, interfaces: &[&str]) -> String {
    let index = usize::from(iface.0).checked_sub(1);
    index.and_then(|index| interfaces.get(index)).map_or("host".to_owned(), |name| (*name).to_owned())
}

fn neighbor(iface: Iface, mac: Mac, interfaces: &[&str]) -> String {
    match mac.0 {
        [2, 0, 0, 0, 0, last] if u16::from(last) == iface.0 => interface(iface, interfaces),
        [2, 0, 0, 0, 0, last @ 0xb0..=0xbf] => format!("b{}", last - 0xb0),
        _ => format!("{mac} by {}", interface(iface, interfaces)),
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class(0) => "this host's own",
        Class(1) => "incoming",
        Class(16) => "upward",
        Class(17) => "downward",
        _ => "other",
    }
}

fn key_name(key: RouteKey) -> String {
    let to = if key.dst == Prefix::ANY { "any".to_owned() } else { key.dst.address().to_string() };
    format!("{} to {to}", key.class.map_or("all", class))
}

fn route_name(route: Option<&Route>, interfaces: &[&str]) -> String {
    let Some(Route { action, lifetime }) = route else { return "removed".to_owned() };
    let action = match action {
        Action::Forward(Hop { iface, to: NextHop::Mac(mac) }) => {
            format!("by {}", neighbor(*iface, *mac, interfaces))
        }
        Action::Forward(Hop { iface, .. }) => format!("by {}", interface(*iface, interfaces)),
        Action::Punt => "to the role".to_owned(),
        Action::Tunnel(encap) => format!("in a tunnel to {}", encap.dst),
        Action::Open(class) => format!("opened as class {}", class.0),
        Action::Drop(reason) => format!("drop, {reason}"),
        Action::Host => "to this host".to_owned(),
    };
    match lifetime {
        Lifetime::Permanent => action,
        Lifetime::Until(end) => format!("{action}, until {end}"),
        Lifetime::SoftState(span) => format!("{action}, until {span:?} after data from there"),
        Lifetime::ReportIdle(span) => format!("{action}, told when unused for {span:?}"),
    }
}

fn policy_name(policy: Option<IngressPolicy>) -> String {
    let Some(policy) = policy else { return "removed".to_owned() };
    let check = policy.check.map_or(String::new(), |back| {
        format!(", must come from where {} leads, {} strays a second", class(back), policy.punts)
    });
    format!("{}{check}", class(policy.class))
}

fn mark_name(mark: &Mark) -> String {
    let fields: Vec<String> =
        mark.fields.iter().map(|(name, field)| format!(" {name}={}", value(field))).collect();
    let span = match mark.span {
        Some(Span::Begins(stage)) => format!(", begins {stage}"),
        Some(Span::Ends(stage)) => format!(", ends {stage}"),
        None => String::new(),
    };
    format!("mark {}{}{span}", mark.name, fields.concat())
}

/// A value as text for a person.
pub(crate) fn value(of: &Value) -> String {
    match of {
        Value::None => "none".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::List(values) => values.iter().map(value).collect::<Vec<_>>().join(", "),
        Value::Map(entries) => {
            let fields: Vec<String> =
                entries.iter().map(|(name, field)| format!("{name}={}", value(field))).collect();
            format!("{{{}}}", fields.join(" "))
        }
    }
}
