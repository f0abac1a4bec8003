//! The messages of DHCP (RFC 2131, section 2) and the options that the roles use (RFC 2132).
//!
//! The options are encoded and decoded by `dhcproto`. The fixed part of a message is not: that crate would draw a random
//! number from the operating system for each message, and it does not check the magic cookie.

use dhcproto::v4::{DhcpOption, DhcpOptions, MessageType, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable, Encoder};
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Mac, Malformed, Reader, udp};

/// The UDP port of servers (RFC 2131, section 4.1).
pub const SERVER_PORT: u16 = 67;
/// The UDP port of clients (RFC 2131, section 4.1).
pub const CLIENT_PORT: u16 = 68;
/// The lease time that means a lease without end (RFC 2131, section 3.3).
pub const INFINITE: u32 = u32::MAX;

/// The length of the fixed part, with the magic cookie.
const FIXED: usize = 240;
/// The shortest message that is sent, in bytes. BOOTP messages have this length (RFC 951), and relay agents may drop
/// shorter ones.
const SHORTEST: usize = 300;
const MAGIC: [u8; 4] = [99, 130, 83, 99];
const ETHERNET: [u8; 2] = [1, 6];
const BROADCAST: u16 = 0x8000;
/// The lengths of the fields `sname` and `file`.
const NAMES: (usize, usize) = (64, 128);
/// The options that are read. All others are skipped, even if their values are malformed.
const KNOWN: &[OptionCode] = &[
    OptionCode::SubnetMask,
    OptionCode::Router,
    OptionCode::RequestedIpAddress,
    OptionCode::AddressLeaseTime,
    OptionCode::OptionOverload,
    OptionCode::MessageType,
    OptionCode::ServerIdentifier,
    OptionCode::ParameterRequestList,
    OptionCode::Renewal,
    OptionCode::Rebinding,
    OptionCode::ClientIdentifier,
];

/// The type of a message (RFC 2131, section 3.1, table 2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A client looks for servers.
    Discover,
    /// A server offers an address.
    Offer,
    /// A client requests an offered address, or the extension of its lease.
    Request,
    /// A client refuses an address, because another host uses the address.
    Decline,
    /// A server grants a lease.
    Ack,
    /// A server refuses a request.
    Nak,
    /// A client gives up its lease.
    Release,
    /// A client asks for parameters only.
    Inform,
}

impl Kind {
    const ALL: [(Self, MessageType); 8] = [
        (Self::Discover, MessageType::Discover),
        (Self::Offer, MessageType::Offer),
        (Self::Request, MessageType::Request),
        (Self::Decline, MessageType::Decline),
        (Self::Ack, MessageType::Ack),
        (Self::Nak, MessageType::Nak),
        (Self::Release, MessageType::Release),
        (Self::Inform, MessageType::Inform),
    ];

    /// Returns the field `op`: 2 for messages of servers, 1 for messages of clients.
    pub const fn op(self) -> u8 {
        match self {
            Self::Offer | Self::Ack | Self::Nak => 2,
            Self::Discover | Self::Request | Self::Decline | Self::Release | Self::Inform => 1,
        }
    }

    /// Returns the name of the message, for example `DHCPDISCOVER`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discover => "DHCPDISCOVER",
            Self::Offer => "DHCPOFFER",
            Self::Request => "DHCPREQUEST",
            Self::Decline => "DHCPDECLINE",
            Self::Ack => "DHCPACK",
            Self::Nak => "DHCPNAK",
            Self::Release => "DHCPRELEASE",
            Self::Inform => "DHCPINFORM",
        }
    }

    fn number(self) -> MessageType {
        Self::ALL
            .into_iter()
            .find(|(kind, _)| *kind == self)
            .map_or(MessageType::Inform, |(_, number)| number)
    }

    fn of(number: MessageType) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, other)| *other == number).map(|(kind, _)| kind)
    }
}

/// A message of DHCP.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// The type of the message.
    pub kind: Kind,
    /// The transaction id (`xid`), chosen by the client and repeated by the server.
    pub transaction: u32,
    /// The seconds since the client began to acquire or renew its address.
    pub seconds: u16,
    /// Whether the client cannot receive unicast before it has an address: servers broadcast their answers.
    pub broadcast: bool,
    /// The address that the client has and uses (`ciaddr`); 0.0.0.0 if it has none.
    pub current: Ipv4Addr,
    /// The address for the client (`yiaddr`), in offers and acknowledgments; otherwise 0.0.0.0.
    pub yours: Ipv4Addr,
    /// The address of the relay agent (`giaddr`); 0.0.0.0 without one.
    pub relay: Ipv4Addr,
    /// The link address of the client (`chaddr`).
    pub client: Mac,
    /// The address that the client requests (option 50).
    pub requested: Option<Ipv4Addr>,
    /// The lease time in seconds (option 51).
    pub lease: Option<u32>,
    /// The server that sent the message, or for which it is (option 54).
    pub server: Option<Ipv4Addr>,
    /// The time until the client renews, T1, in seconds (option 58).
    pub renew: Option<u32>,
    /// The time until the client rebinds, T2, in seconds (option 59).
    pub rebind: Option<u32>,
    /// The length of the link's prefix in bits (option 1).
    pub prefix: Option<u8>,
    /// The router of the link (option 3). Of several, the first.
    pub router: Option<Ipv4Addr>,
    /// The numbers of the options that the client asks for (option 55).
    pub wants: Vec<u8>,
    /// The identifier of the client (option 61); empty if the link address identifies the client.
    pub identifier: Vec<u8>,
}

impl Message {
    /// Returns a message with this type, transaction and link address of the client, and without all other values.
    pub const fn new(kind: Kind, transaction: u32, client: Mac) -> Self {
        Self {
            kind,
            transaction,
            seconds: 0,
            broadcast: false,
            current: Ipv4Addr::UNSPECIFIED,
            yours: Ipv4Addr::UNSPECIFIED,
            relay: Ipv4Addr::UNSPECIFIED,
            client,
            requested: None,
            lease: None,
            server: None,
            renew: None,
            rebind: None,
            prefix: None,
            router: None,
            wants: Vec::new(),
            identifier: Vec::new(),
        }
    }

    /// Parses the message in an IP payload with this header. `port` is the UDP port that the receiver has. It is an error
    /// if the datagram is a fragment, is for another port, or is malformed.
    pub fn of(ip: &Header, payload: &[u8], port: u16) -> Result<Self, Malformed> {
        if ip.is_fragment() {
            return Err(Malformed("dhcp_fragment"));
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst)?;
        if datagram.dst_port != port {
            return Err(Malformed("dhcp_port"));
        }
        Self::parse(datagram.payload)
    }

    /// Returns whether a packet is UDP to this port. Its checksum and its lengths are not checked.
    pub(crate) fn is_for(ip: &Header, payload: &[u8], port: u16) -> bool {
        ip.protocol == ipv4::UDP && ip.offset == 0 && payload.get(2..4) == Some(&port.to_be_bytes()[..])
    }

    /// Parses the UDP payload of a datagram. It is an error if the message is malformed, is not of Ethernet, or has no
    /// valid message type.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("dhcp_truncated"));
        let op = r.u8()?;
        if r.array()? != ETHERNET {
            return Err(Malformed("dhcp_hardware"));
        }
        r.u8()?; // the hops of relay agents
        let (transaction, seconds, flags) = (r.u32()?, r.u16()?, r.u16()?);
        let mut address = || r.array::<4>().map(Ipv4Addr::from);
        let (current, yours, _server, relay) = (address()?, address()?, address()?, address()?);
        let client = Mac(r.array()?);
        r.take(10)?; // the rest of `chaddr`
        let (sname, file) = (r.take(NAMES.0)?, r.take(NAMES.1)?);
        if r.array()? != MAGIC {
            return Err(Malformed("dhcp_cookie"));
        }
        if client.is_group() {
            return Err(Malformed("dhcp_client"));
        }
        let options = options(r.rest(), sname, file)?;
        let kind = options.msg_type().and_then(Kind::of).ok_or(Malformed("dhcp_type"))?;
        if op != kind.op() {
            return Err(Malformed("dhcp_op"));
        }
        let mut message = Self {
            seconds,
            broadcast: flags & BROADCAST != 0,
            current,
            yours,
            relay,
            ..Self::new(kind, transaction, client)
        };
        options.iter().try_for_each(|(_, option)| message.read(option))?;
        Ok(message)
    }

    /// Sets the field of an option.
    fn read(&mut self, option: &DhcpOption) -> Result<(), Malformed> {
        match option {
            DhcpOption::RequestedIpAddress(address) => self.requested = Some(*address),
            DhcpOption::AddressLeaseTime(seconds) => self.lease = Some(*seconds),
            DhcpOption::ServerIdentifier(address) => self.server = Some(*address),
            DhcpOption::Renewal(seconds) => self.renew = Some(*seconds),
            DhcpOption::Rebinding(seconds) => self.rebind = Some(*seconds),
            DhcpOption::SubnetMask(bits) => {
                let len = bits.to_bits().leading_ones() as u8;
                if mask(len) != bits.to_bits() {
                    return Err(Malformed("dhcp_mask"));
                }
                self.prefix = Some(len);
            }
            DhcpOption::Router(routers) => {
                self.router = Some(*routers.first().ok_or(Malformed("dhcp_option_length"))?);
            }
            DhcpOption::ParameterRequestList(codes) => {
                self.wants = codes.iter().copied().map(u8::from).collect();
            }
            DhcpOption::ClientIdentifier(bytes) => self.identifier.clone_from(bytes),
            _ => {}
        }
        Ok(())
    }

    /// Returns the bytes of this message. The field `siaddr` is zero: it names a server of files for the next step of a
    /// boot.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SHORTEST);
        out.push(self.kind.op());
        out.extend_from_slice(&ETHERNET);
        out.push(0);
        out.extend_from_slice(&self.transaction.to_be_bytes());
        out.extend_from_slice(&self.seconds.to_be_bytes());
        out.extend_from_slice(&(if self.broadcast { BROADCAST } else { 0 }).to_be_bytes());
        for address in [self.current, self.yours, Ipv4Addr::UNSPECIFIED, self.relay] {
            out.extend_from_slice(&address.octets());
        }
        out.extend_from_slice(&self.client.0);
        out.resize(FIXED - MAGIC.len(), 0);
        out.extend_from_slice(&MAGIC);
        let mut options = Vec::new();
        let encoded = self.options().encode(&mut Encoder::new(&mut options));
        debug_assert!(encoded.is_ok(), "{encoded:?}");
        out.extend_from_slice(&options);
        out.resize(out.len().max(SHORTEST), 0);
        out
    }

    fn options(&self) -> DhcpOptions {
        let mut options = DhcpOptions::new();
        options.insert(DhcpOption::MessageType(self.kind.number()));
        let all = [
            self.requested.map(DhcpOption::RequestedIpAddress),
            self.lease.map(DhcpOption::AddressLeaseTime),
            self.server.map(DhcpOption::ServerIdentifier),
            self.renew.map(DhcpOption::Renewal),
            self.rebind.map(DhcpOption::Rebinding),
            self.prefix.map(|len| DhcpOption::SubnetMask(Ipv4Addr::from_bits(mask(len)))),
            self.router.map(|router| DhcpOption::Router(vec![router])),
            (!self.wants.is_empty()).then(|| {
                DhcpOption::ParameterRequestList(self.wants.iter().copied().map(OptionCode::from).collect())
            }),
            (!self.identifier.is_empty()).then(|| DhcpOption::ClientIdentifier(self.identifier.clone())),
        ];
        for option in all.into_iter().flatten() {
            options.insert(option);
        }
        options
    }
}

/// Returns the subnet mask of a prefix with `len` bits.
fn mask(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

/// Returns the known options of a message: those of the options field, and those of the fields `file` and `sname` if the
/// option 52 says that they contain options.
fn options(field: &[u8], sname: &[u8], file: &[u8]) -> Result<DhcpOptions, Malformed> {
    let mut all = DhcpOptions::new();
    read_options(field, &mut all)?;
    let overload = match all.get(OptionCode::OptionOverload) {
        None => 0,
        Some(DhcpOption::OptionOverload(fields @ 1..=3)) => *fields,
        Some(_) => return Err(Malformed("dhcp_overload")),
    };
    for (bit, field) in [(1, file), (2, sname)] {
        if overload & bit != 0 {
            read_options(field, &mut all)?;
        }
    }
    Ok(all)
}

/// Adds the known options in `bytes` to `all`. It is an error if an option is truncated, a known option has a value of a
/// wrong length or occurs twice, or the end option is missing.
fn read_options(bytes: &[u8], all: &mut DhcpOptions) -> Result<(), Malformed> {
    const PAD: u8 = 0;
    const END: u8 = 255;
    let mut rest = bytes;
    loop {
        rest = match rest {
            [END, ..] => return Ok(()),
            [PAD, tail @ ..] => tail,
            [_] | [] => return Err(Malformed("dhcp_no_end")),
            [code, len, ..] => {
                let split = rest.split_at_checked(2 + usize::from(*len));
                let (option, tail) = split.ok_or(Malformed("dhcp_option_truncated"))?;
                if KNOWN.contains(&OptionCode::from(*code)) && all.insert(one_option(option)?).is_some() {
                    return Err(Malformed("dhcp_option_twice"));
                }
                tail
            }
        }
    }
}

/// Decodes one option. The decoder ignores what is after the value of a number, so the option is encoded again and
/// compared.
fn one_option(bytes: &[u8]) -> Result<DhcpOption, Malformed> {
    let wrong = Malformed("dhcp_option_length");
    let option = DhcpOption::decode(&mut Decoder::new(bytes)).map_err(|_| wrong)?;
    let mut again = Vec::new();
    option.encode(&mut Encoder::new(&mut again)).map_err(|_| wrong)?;
    if again == bytes { Ok(option) } else { Err(wrong) }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
