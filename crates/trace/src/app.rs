//! The JSON form of an event of an application's stream.

use crate::intern::intern;
use node::{AppChange, AppEvent, StreamId, Transport};
use serde::{Deserialize, Serialize};
use wire::SocketAddrV4;

/// The fields of the JSON object. All fields except `stream` and `change` are optional.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppLine {
    stream: u32,
    change: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    transport: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    local: Option<SocketAddrV4>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    peer: Option<SocketAddrV4>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    new: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    why: Option<String>,
}

const UDP: &str = "udp";
const TCP: &str = "tcp";

pub(crate) fn line(event: &AppEvent) -> AppLine {
    let base =
        |change: &str| AppLine { stream: event.stream.0, change: change.to_owned(), ..AppLine::default() };
    match &event.change {
        AppChange::Asked { role, by, local, peer } => AppLine {
            role: Some((*role).to_owned()),
            transport: Some(transport_name(*by).to_owned()),
            local: *local,
            peer: *peer,
            ..base("asked")
        },
        AppChange::Opened(local) => AppLine { local: Some(*local), ..base("opened") },
        AppChange::Accepted { new, local, peer } => {
            AppLine { new: Some(new.0), local: Some(*local), peer: Some(*peer), ..base("accepted") }
        }
        AppChange::Read(bytes) => AppLine { bytes: Some(*bytes), ..base("read") },
        AppChange::Finished => base("finished"),
        AppChange::Closed(why) => AppLine { why: why.clone(), ..base("closed") },
    }
}

pub(crate) fn event(line: &AppLine) -> Option<AppEvent> {
    let change = match line.change.as_str() {
        "asked" => AppChange::Asked {
            role: intern(line.role.as_deref()?),
            by: transport(line.transport.as_deref()?),
            local: line.local,
            peer: line.peer,
        },
        "opened" => AppChange::Opened(line.local?),
        "accepted" => AppChange::Accepted { new: StreamId(line.new?), local: line.local?, peer: line.peer? },
        "read" => AppChange::Read(line.bytes?),
        "finished" => AppChange::Finished,
        "closed" => AppChange::Closed(line.why.clone()),
        _ => return None,
    };
    Some(AppEvent { stream: StreamId(line.stream), change })
}

const fn transport_name(by: Transport) -> &'static str {
    match by {
        Transport::Udp => UDP,
        Transport::Tcp => TCP,
        Transport::Role(name) => name,
    }
}

fn transport(name: &str) -> Transport {
    match name {
        UDP => Transport::Udp,
        TCP => Transport::Tcp,
        role => Transport::Role(intern(role)),
    }
}
