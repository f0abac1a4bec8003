//! The keys of smooth handoffs that the home agent distributes.

use super::{Args, MobileIp, association};
use mobile_ip::message::{
    Association, Between, Binding, BufferControl, DistributedKey, KeyScope, Numbers, Registration, Reply,
    Request,
};
use wire::ipv4::Header;
use wire::{tunnel, udp};

/// Adds to the home agent's reply what the step says: the key of the registration (`key`), and the authentication for the
/// foreign agent (`by_ha`). `appended`: the key is behind this authentication.
pub(super) fn give(reply: &mut Reply, request: &Request, args: &Args<'_>) {
    if !["key", "by_ha", "appended"].iter().any(|name| args.has(name)) {
        return;
    }
    let foreign = association(Between::ForeignHome);
    let scope = KeyScope::of(request).unwrap();
    let key = DistributedKey::new(&scope, &association(Between::MobileHome), &foreign);
    let extension = key.extension(&Numbers::default());
    if args.has("key") {
        reply.extensions.push(extension.clone());
    }
    if args.has("by_ha") {
        reply.sign(Between::ForeignHome, &foreign);
    }
    if args.has("appended") {
        reply.extensions.push(extension);
    }
}

impl MobileIp {
    /// Records a request, once for each Identification.
    pub(super) fn note(&mut self, request: &Request) {
        if !self.requests.iter().any(|other| other.identification == request.identification) {
            self.requests.push(request.clone());
        }
    }

    /// Returns the keys of all requests, each with the number of the request, from 1.
    fn keys(&self) -> impl Iterator<Item = (usize, Association)> {
        let scopes = self.requests.iter().map(KeyScope::of);
        (1..).zip(scopes).filter_map(|(number, scope)| {
            Some((number, scope?.association(&association(Between::MobileHome))))
        })
    }

    /// Returns the key of the request that the step names by `key-of`; `None` if it names none.
    pub(super) fn key(&self, args: &Args<'_>) -> Option<Association> {
        let wanted: usize = args.get("key-of", 0);
        self.keys().find(|(number, _)| *number == wanted).map(|(_, key)| key)
    }

    /// Returns the text about distributed keys in a registration message; empty if there is none.
    pub(super) fn keys_of(&self, message: &Registration) -> String {
        let numbers = Numbers::default();
        match message {
            Registration::Request(request) => {
                let Some(Ok(previous)) = request.previous_agent(&numbers) else { return String::new() };
                let update = previous.update(request, &numbers);
                let subtype = numbers.smooth_authentication;
                let signer = self.keys().find(|(_, key)| update.verify(subtype, key, &numbers));
                signer.map_or_else(String::new, |(number, _)| format!(", by the key of request {number}"))
            }
            Registration::Reply(reply) => match reply.distributed_key(&numbers) {
                Ok(Some(key)) => {
                    let foreign = association(Between::ForeignHome);
                    let is_it = |(number, own): &(usize, Association)| {
                        let scope = self.requests.get(number - 1).and_then(KeyScope::of);
                        scope.is_some_and(|scope| key.association(&scope, &foreign) == *own)
                    };
                    let number = self.keys().find(is_it).map(|(number, _)| number.to_string());
                    format!(", with the key of request {}", number.unwrap_or_else(|| "unknown".to_owned()))
                }
                Ok(None) => String::new(),
                Err(malformed) => format!(", with a key that is no key ({})", malformed.0),
            },
        }
    }

    /// Returns the text of a message of a smooth handoff that a distributed key authenticates; `None` for others. It may be in a
    /// tunnel.
    pub(super) fn signed_by_key(&self, bytes: &[u8]) -> Option<String> {
        if let Ok((outer, inner)) = tunnel::decapsulate(bytes) {
            return self.signed_by_key(&inner).map(|name| format!("{name} in a tunnel to {}", outer.dst));
        }
        let (header, payload) = Header::parse(bytes).ok()?;
        let datagram = udp::Datagram::parse(payload, header.src, header.dst).ok()?;
        let (numbers, to) = (Numbers::default(), header.dst);
        let subtype = numbers.smooth_authentication;
        if let Some(Ok(control)) = BufferControl::parse(datagram.payload, &numbers) {
            let (number, _) = self.keys().find(|(_, key)| control.verify(key, &numbers))?;
            return Some(format!(
                "buffer control to {to}: {:?}, by the key of request {number}",
                control.asks
            ));
        }
        let message = Binding::parse(datagram.payload, &numbers)?.ok()?;
        let is_signed = |(_, key): &(usize, Association)| match &message {
            Binding::Update(update) => update.verify(subtype, key, &numbers),
            Binding::Acknowledge(said) => said.verify(subtype, key, &numbers),
            _ => false,
        };
        let (number, _) = self.keys().find(is_signed)?;
        let text = match &message {
            Binding::Update(update) => {
                format!("update to {to}: {} at {} for {} s", update.home, update.care_of, update.lifetime)
            }
            Binding::Acknowledge(said) => format!("acknowledge to {to}: {}", said.status.meaning()),
            _ => return None,
        };
        Some(format!("{text}, by the key of request {number}"))
    }
}
