//! The messages of route optimization (draft-ietf-mobileip-optim-09) and of buffers (draft-mkhalil-mobileip-buffer-00) field by
//! field. Later RFCs use their numbers for other messages; this module reads them as the drafts do.

use super::{Layer, Problem, flags, identification, in_bytes, lifetime, position, rest};
use ::mobile_ip::message::{
    Acknowledge, Asks, Binding, BufferControl, Generalized, Numbers, Update, Warning,
};
use wire::Malformed;

/// The letters of the flags of a Binding Update, from the highest bit (draft-ietf-mobileip-optim-09, section 4.3).
const UPDATE_FLAGS: [&str; 8] = ["A", "I", "M", "G", "4", "5", "6", "7"];

/// The letters of the flags of a Buffer Control Request, from the highest bit (draft-mkhalil-mobileip-buffer-00, section 4.1).
const CONTROL_FLAGS: [&str; 8] = ["A", "B", "F", "I", "K", "L", "D", "7"];

/// A message of one of the drafts.
enum Message {
    Binding(Binding),
    Control(BufferControl),
}

/// Parses a message. `None` if its type is none of the drafts'.
fn parse(payload: &[u8], numbers: &Numbers) -> Option<Result<Message, Malformed>> {
    let control = BufferControl::parse(payload, numbers).map(|parsed| parsed.map(Message::Control));
    control.or_else(|| Some(Binding::parse(payload, numbers)?.map(Message::Binding)))
}

/// Returns the fields of a message of one of the drafts, which begins at the offset `at`. `None` if the bytes begin with
/// another type.
pub(super) fn message(payload: &[u8], at: usize, numbers: &Numbers) -> Option<(Layer, Option<Problem>)> {
    let parsed = parse(payload, numbers)?;
    let kind = payload.first().copied().unwrap_or_default();
    let name = [
        (numbers.warning, "binding warning"),
        (numbers.request, "binding request"),
        (numbers.update, "binding update"),
        (numbers.acknowledge, "binding acknowledge"),
        (numbers.buffer_control, "buffer control request"),
    ];
    let name = name.iter().find(|(number, _)| *number == kind).map_or("message", |(_, name)| *name);
    let mut layer = Layer::new(format!("Mobile IP {name}"), at);
    layer.push(0, "type", kind);
    match parsed {
        Ok(message) => {
            match &message {
                Message::Binding(message) => fields(&mut layer, message, payload),
                Message::Control(message) => control(&mut layer, message, payload, numbers),
            }
            Some((layer, None))
        }
        Err(refused) => {
            let found =
                position(payload, refused, |begin| parse(begin, numbers).unwrap_or(Err(refused)).map(drop));
            rest(&mut layer, payload, 1);
            Some((layer, Some(Problem { reason: refused.0.to_owned(), at: at + found.at })))
        }
    }
}

fn control(layer: &mut Layer, message: &BufferControl, bytes: &[u8], numbers: &Numbers) {
    let set = bytes.get(1).copied().unwrap_or_default();
    let asks = match message.asks {
        Asks::Keep => ": keep packets",
        Asks::Forward => ": the packets are for another agent",
        Asks::Stop => ": keep no more packets",
    };
    layer.push(1, "flags", flags(u16::from(set) << 8, &CONTROL_FLAGS, 2) + asks);
    layer.push(4, "home address", message.home);
    layer.push(8, "identification", identification(message.identification));
    let mut end = 16;
    if !message.named.is_empty() {
        let length = usize::from(bytes.get(17).copied().unwrap_or_default());
        layer.push(16, "extension", format!("IP Filter (type {}), {}", numbers.ip_filter, in_bytes(length)));
        for (source, id) in &message.named {
            layer.push(18, "  received packet", format!("source {source}, identification {id}"));
        }
        end += 2 + length;
    }
    authenticated(layer, end, message.authentication.as_ref());
}

fn fields(layer: &mut Layer, message: &Binding, bytes: &[u8]) {
    match message {
        Binding::Warning(Warning { home, targets }) => {
            layer.push(4, "home address", home);
            for (place, target) in targets.iter().enumerate() {
                layer.push(8 + 4 * place, "target", target);
            }
        }
        Binding::Request(request) => {
            layer.push(4, "home address", request.home);
            layer.push(8, "identification", identification(request.identification));
            authenticated(layer, 16, request.authentication.as_ref());
        }
        Binding::Update(update) => {
            let set = bytes.get(1).copied().unwrap_or_default();
            layer.push(1, "flags", flags(u16::from(set) << 8, &UPDATE_FLAGS, 2));
            let deletes = if update.deletes() { ": deletes the binding" } else { "" };
            layer.push(2, "lifetime", lifetime(update.lifetime) + deletes);
            let Update { home, care_of, identification: id, authentication, .. } = update;
            layer.push(4, "home address", home);
            layer.push(8, "care-of address", care_of);
            let end = end(layer, 12, *id);
            authenticated(layer, end, authentication.as_ref());
        }
        Binding::Acknowledge(answer) => {
            let Acknowledge { status, home, identification: id, authentication } = answer;
            layer.push(3, "status", format!("{}: {}", status.0, status.meaning()));
            layer.push(4, "home address", home);
            let end = end(layer, 8, *id);
            authenticated(layer, end, authentication.as_ref());
        }
    }
}

/// Adds the Identification at the offset `at`, if there is one. Returns the offset of the next field.
fn end(layer: &mut Layer, at: usize, value: Option<u64>) -> usize {
    match value {
        Some(value) => {
            layer.push(at, "identification", identification(value));
            at + 8
        }
        None => at,
    }
}

fn authenticated(layer: &mut Layer, at: usize, found: Option<&Generalized>) {
    let Some(Generalized { subtype, spi, authenticator }) = found else { return };
    layer.push(at, "extension", format!("Generalized Authentication (type 36), subtype {subtype}"));
    layer.push(at + 4, "  SPI", spi);
    layer.push(at + 8, "  authenticator", trace::hex(authenticator));
}
