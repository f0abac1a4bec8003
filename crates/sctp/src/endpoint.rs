//! All associations of one host, and packets that belong to no association (RFC 9260, sections 5.1, 8.4 and 8.5).

use crate::association::handshake::{acceptable, init_ack};
use crate::association::{Association, Open, Transmit};
use crate::cookie::Cookie;
use crate::event::{AssociationEvent, State};
use crate::keys::Keys;
use crate::message::{Action, Address, Asconf, Cause, Chunk, Code, Init, Packet, Request, authenticated};
use crate::secret_rng::SecretRng;
use crate::unicast::unicast;
use crate::{Config, association};
use auth::Key;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wire::{Instant, Ipv4Addr, Malformed, Reader, Reason, Rng};

/// The number of an association of an endpoint, from 0 in order of creation. A number is not reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub u32);

/// An ICMP error about a packet that we sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// ICMP type 3, code 2: the host has no SCTP.
    ProtocolUnreachable,
    /// ICMP type 3, code 4: the packet is too large for the next link. The value is the MTU of that link, in bytes.
    TooBig(u16),
}

/// The largest number of used cookies that are remembered.
const SPENT: usize = 1024;

/// The largest number of associations that a listening port accepts with one confirmed address of a peer. One host must
/// not take all associations of the endpoint. The limit is not from an RFC.
const OF_ADDRESS: usize = 256;

/// Parameters of a listening port.
#[derive(Clone, Debug)]
struct Listener {
    addresses: Vec<Ipv4Addr>,
}

/// All SCTP associations and listening ports of a host, without I/O. The crate's documentation shows how to drive it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    rng: SecretRng,
    listeners: BTreeMap<u16, Listener>,
    /// Addresses that this host has now. All listening ports accept associations at these addresses.
    here: Vec<Ipv4Addr>,
    associations: BTreeMap<AssociationId, Association>,
    /// Associations by our port, an address of the peer, and its port.
    index: BTreeMap<(u16, Ipv4Addr, u16), AssociationId>,
    /// Associations by our port, a former address of the peer, and the peer's port. Several associations may have had
    /// the same address, one after the other.
    former: BTreeSet<((u16, Ipv4Addr, u16), AssociationId)>,
    next: u32,
    /// The cookies that were used last: for each the end of its life, our tag and the peer's tag. COOKIE ECHO with a
    /// used cookie makes no second association, even after the first association has ended.
    spent: VecDeque<(Instant, u32, u32)>,
    /// Associations that may have packets to send (`ready`) or events (`told`).
    ready: BTreeSet<AssociationId>,
    told: BTreeSet<AssociationId>,
    timers: BTreeSet<(Instant, AssociationId)>,
    armed: BTreeMap<AssociationId, Instant>,
    outbox: VecDeque<Transmit>,
}

impl Endpoint {
    /// Creates an endpoint without associations. `secret` must be unknown to other hosts: it authenticates cookies,
    /// and makes random numbers unpredictable. `rng` makes them repeatable.
    pub fn new(config: Config, secret: Key, rng: Rng) -> Self {
        Self {
            config: Arc::new(config),
            rng: SecretRng::new(secret, rng),
            listeners: BTreeMap::new(),
            here: Vec::new(),
            associations: BTreeMap::new(),
            index: BTreeMap::new(),
            former: BTreeSet::new(),
            next: 0,
            spent: VecDeque::new(),
            ready: BTreeSet::new(),
            told: BTreeSet::new(),
            timers: BTreeSet::new(),
            armed: BTreeMap::new(),
            outbox: VecDeque::new(),
        }
    }

    // --- calls of the user -----------------------------------------------------------------------------------------

    /// Accepts associations to `port` of this host at `addresses`, at least one. Replaces the addresses of an earlier
    /// call.
    pub fn listen(&mut self, port: u16, addresses: &[Ipv4Addr]) {
        self.listeners.insert(port, Listener { addresses: addresses.to_vec() });
    }

    /// Sets the addresses that this host has now, at most `max_addresses`; more are ignored. Each listening port
    /// accepts associations at these addresses, in addition to those of [`Self::listen`]. Such an association has only
    /// one address of ours, the destination of COOKIE ECHO. So a peer can look up a mobile host by name, and connect to
    /// its present address.
    pub fn accept_at(&mut self, addresses: &[Ipv4Addr]) {
        self.here = addresses.iter().copied().take(self.config.max_addresses).collect();
    }

    /// Accepts no more associations to `port`. Associations that exist are not affected.
    pub fn ignore(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Opens an association. `None` if an association with the same two ports and an address of `open.peer` exists and
    /// has not ended, if `max_associations` exist, or if one of the ends has no address.
    pub fn open(&mut self, now: Instant, open: &Open) -> Option<AssociationId> {
        let taken =
            open.peer.iter().any(|peer| self.index.contains_key(&(open.local_port, *peer, open.peer_port)));
        if taken || self.associations.len() >= self.config.max_associations {
            return None;
        }
        let association = Association::open(now, &self.config, self.rng.fork(), open)?;
        Some(self.adopt(association))
    }

    /// Returns an association, or `None` if it was released.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.associations.get(&id)
    }

    /// Returns an association for calls of its user, or `None` if it was released. The packets that result are
    /// returned by [`Self::poll_transmit`].
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let association = self.associations.get_mut(&id)?;
        self.ready.insert(id);
        self.told.insert(id);
        Some(association)
    }

    /// Returns all associations in ascending order of their numbers, including ended ones that are not released.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.associations.iter().map(|(id, association)| (*id, association))
    }

    /// Removes an association, and aborts it if it has not ended. Packets that it has queued, such as the ABORT, are
    /// still sent.
    pub fn release(&mut self, id: AssociationId) {
        let Some(mut association) = self.associations.remove(&id) else { return };
        association.abort();
        self.outbox.append(&mut association.outbox);
        self.index.retain(|_, other| *other != id);
        self.former.retain(|(_, other)| *other != id);
        self.ready.remove(&id);
        self.told.remove(&id);
        self.arm(id, None);
    }

    fn adopt(&mut self, association: Association) -> AssociationId {
        let id = AssociationId(self.next);
        self.next += 1;
        self.associations.insert(id, association);
        self.touched(id);
        id
    }

    /// Updates the index of addresses, the timer and the lists to poll, after a call of an association.
    fn touched(&mut self, id: AssociationId) {
        self.ready.insert(id);
        self.told.insert(id);
        let deadline = self.associations.get(&id).and_then(Association::deadline);
        self.arm(id, deadline);
        let Some(association) = self.associations.get_mut(&id) else { return };
        if std::mem::take(&mut association.moved) {
            self.index.retain(|_, other| *other != id);
            self.former.retain(|(_, other)| *other != id);
            if association.state == State::Closed {
                return;
            }
            let (local, peer) = association.ports();
            for address in association.all_addresses() {
                self.index.entry((local, address, peer)).or_insert(id);
            }
            self.former.extend(association.asconf_in.former().map(|address| ((local, address, peer), id)));
        }
    }

    fn arm(&mut self, id: AssociationId, deadline: Option<Instant>) {
        let before = match deadline {
            Some(at) => self.armed.insert(id, at),
            None => self.armed.remove(&id),
        };
        if let Some(before) = before {
            self.timers.remove(&(before, id));
        }
        self.timers.extend(deadline.map(|at| (at, id)));
    }

    // --- packets, events and timers --------------------------------------------------------------------------------

    /// Returns the next packet to send, or `None` if there is none. After each other call, the caller polls until
    /// `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(transmit) = self.outbox.pop_front() {
            return Some(transmit);
        }
        while let Some(id) = self.ready.first().copied() {
            let transmit = self.associations.get_mut(&id).and_then(|it| it.poll_transmit(now));
            if transmit.is_some() {
                return transmit;
            }
            self.touched(id);
            self.ready.remove(&id);
        }
        None
    }

    /// Returns the next event and its association, or `None` if there is none. The caller polls until `None`.
    pub fn poll_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        while let Some(id) = self.told.first().copied() {
            match self.associations.get_mut(&id).and_then(Association::poll_event) {
                Some(event) => return Some((id, event)),
                None => self.told.remove(&id),
            };
        }
        None
    }

    /// Returns when to call [`Self::on_timeout`] next, or `None` if no timer runs. Valid only after `poll_transmit`
    /// has returned `None`.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles all timers that are due at `now`. A call before the deadline has no effect.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, id));
            self.armed.remove(&id);
            if let Some(association) = self.associations.get_mut(&id) {
                association.on_timeout(now);
            }
            self.touched(id);
        }
    }

    /// Handles the payload of an IP packet of protocol 132. Returns the reason if the packet or a part of it was
    /// refused. A chunk without meaning in the present state is ignored without an error.
    pub fn receive(
        &mut self,
        now: Instant,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        bytes: &[u8],
    ) -> Result<(), Reason> {
        let (packet, flaw) = Packet::parse_up_to_flaw(bytes).map_err(|Malformed(why)| Reason(why))?;
        let verdict = self.packet(now, (src, dst), &packet, bytes);
        // Chunks before the malformed one were processed, and chunks behind it were not.
        flaw.map_or(verdict, |Malformed(why)| Err(Reason(why)))
    }

    fn packet(
        &mut self,
        now: Instant,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        bytes: &[u8],
    ) -> Result<(), Reason> {
        if !unicast(src) || !unicast(dst) {
            return Err(Reason("sctp_not_unicast"));
        }
        let found = self.find(src, packet);
        if let [Chunk::Init(init)] = packet.chunks.as_slice() {
            return self.init(now, (src, dst), packet, init, found);
        }
        // COOKIE ECHO must be the first chunk (RFC 9260, section 5.1, C), or follow AUTH. In other places it is
        // ignored.
        let cookie = match packet.chunks.as_slice() {
            [Chunk::CookieEcho(_), ..] => Some(0),
            [Chunk::Auth(_), Chunk::CookieEcho(_), ..] => Some(1),
            _ => None,
        };
        if let Some(at) = cookie {
            return self.cookie_echo(now, (src, dst), packet, bytes, at, found);
        }
        let Some(id) = found.or_else(|| self.named(src, packet)) else {
            return self.out_of_the_blue(src, dst, packet);
        };
        self.hand_over(now, (src, dst), packet, bytes, id)
    }

    fn hand_over(
        &mut self,
        now: Instant,
        addresses: (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        bytes: &[u8],
        id: AssociationId,
    ) -> Result<(), Reason> {
        let taken = self.taken(packet, id);
        let Some(association) = self.associations.get_mut(&id) else { return Ok(()) };
        let verdict = association.receive(now, addresses, packet, bytes, &taken);
        self.touched(id);
        verdict
    }

    /// Handles an ICMP error about a packet that this host sent to `dst`. `quoted`: the begin of that packet behind its
    /// IP header: at least 8 bytes, or 20 bytes of a packet with INIT. Returns an error, and ignores the ICMP error, if
    /// `quoted` is too short, matches no association, or has a wrong tag (RFC 9260, section 10).
    pub fn icmp_error(
        &mut self,
        now: Instant,
        dst: Ipv4Addr,
        quoted: &[u8],
        rejection: Rejection,
    ) -> Result<(), Reason> {
        let mut r = Reader::new(quoted, Malformed("sctp_icmp_quote"));
        let mut read = || Ok((r.u16()?, r.u16()?, r.u32()?));
        let (local, peer, tag) = read().map_err(|Malformed(why)| Reason(why))?;
        let id = self.index.get(&(local, dst, peer)).copied().ok_or(Reason("sctp_icmp_unknown"))?;
        let association = self.associations.get_mut(&id).ok_or(Reason("sctp_icmp_unknown"))?;
        // A packet with INIT has tag 0. Our own tag is then in the quoted INIT, four bytes behind the checksum.
        let mut in_init = || {
            r.take(8).ok()?;
            r.u32().ok()
        };
        let unreachable = rejection == Rejection::ProtocolUnreachable;
        let matches = match tag {
            0 => {
                let quoted = in_init();
                let second = quoted.filter(|_| unreachable);
                if second.is_some_and(|quoted| association.second_unreachable_at(now, quoted, dst)) {
                    self.touched(id);
                    return Ok(());
                }
                association.state == State::CookieWait && quoted == Some(association.local_tag)
            }
            tag => tag == association.peer_tag,
        };
        if !matches {
            return Err(Reason("sctp_icmp_tag"));
        }
        match rejection {
            Rejection::ProtocolUnreachable => association.unreachable_at(now, dst),
            Rejection::TooBig(mtu) => association.too_big(dst, mtu),
        }
        self.touched(id);
        Ok(())
    }

    // --- the association of a packet -------------------------------------------------------------------------------

    /// Finds the association of a packet by its verification tag, as several associations may have had the same
    /// address. The association must have the source of the packet, or an address that INIT ACK lists or ASCONF names
    /// (RFC 5061, section 5.2). Present addresses of peers are searched first, and then former addresses. Former
    /// addresses are for late packets, and for an ASCONF that is repeated because its answer was lost: such packets are
    /// not out of the blue (RFC 9260, section 8.4). If no association has the tag, returns the association whose peer
    /// now has the source address.
    fn find(&self, src: Ipv4Addr, packet: &Packet) -> Option<AssociationId> {
        let key = |address| (packet.dst_port, address, packet.src_port);
        let is_its = |id: &AssociationId| {
            self.associations.get(id).is_some_and(|association| association.has_tag(packet.tag))
        };
        let now = |address| self.index.get(&key(address)).copied().filter(is_its);
        let before = |address| self.had(key(address)).find(is_its);
        Self::find_by(src, packet, now)
            .or_else(|| Self::find_by(src, packet, before))
            .or_else(|| self.index.get(&key(src)).copied())
    }

    /// Finds the association that an ASCONF names, whatever the packet's tag. The association drops a packet with a
    /// wrong tag without an answer (RFC 9260, section 8.5). An ABORT instead would show any host whether it has
    /// guessed the tag.
    fn named(&self, src: Ipv4Addr, packet: &Packet) -> Option<AssociationId> {
        packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Asconf(_))).then_some(())?;
        let key = |address| (packet.dst_port, address, packet.src_port);
        let has = |address| self.index.get(&key(address)).copied().or_else(|| self.had(key(address)).next());
        Self::find_by(src, packet, has)
    }

    /// Finds the association that `cookie` has created already.
    fn made_by(&self, cookie: &Cookie) -> Option<AssociationId> {
        let key = (cookie.local_port, cookie.remote, cookie.remote_port);
        let made = |id: &AssociationId| {
            let association = self.associations.get(id);
            association.is_some_and(|it| it.local_tag == cookie.tag && it.peer_tag == cookie.init.tag)
        };
        self.index.get(&key).copied().into_iter().chain(self.had(key)).find(made)
    }

    /// Returns the associations whose peer formerly had an address. `key`: our port, the address, and the port of the
    /// peer.
    fn had(&self, key: (u16, Ipv4Addr, u16)) -> impl Iterator<Item = AssociationId> {
        let all = (key, AssociationId(0))..=(key, AssociationId(u32::MAX));
        self.former.range(all).map(|(_, id)| *id)
    }

    fn find_by(
        src: Ipv4Addr,
        packet: &Packet,
        of: impl Fn(Ipv4Addr) -> Option<AssociationId>,
    ) -> Option<AssociationId> {
        of(src).or_else(|| {
            packet.chunks.iter().find_map(|chunk| match chunk {
                Chunk::InitAck(ack) => ack.addresses().find_map(&of),
                Chunk::Asconf(Asconf { lookup: Address::Ipv4(address), .. }) => of(*address),
                _ => None,
            })
        })
    }

    /// Returns the addresses that a packet would add to association `id` and that another association has.
    fn taken(&self, packet: &Packet, id: AssociationId) -> Vec<Ipv4Addr> {
        let asconfs = packet.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Asconf(asconf) => Some(asconf),
            _ => None,
        });
        let added = asconfs.flat_map(|asconf| &asconf.requests).filter_map(|request| match request {
            Request::Change { action: Action::Add, address: Address::Ipv4(address), .. } => Some(*address),
            _ => None,
        });
        let other = |address: &Ipv4Addr| {
            self.index.get(&(packet.dst_port, *address, packet.src_port)).is_some_and(|owner| *owner != id)
        };
        added.filter(other).collect()
    }

    // --- the opening of associations -------------------------------------------------------------------------------

    /// Handles INIT. An INIT that matches no association is answered without keeping state (RFC 9260, section 5.1, B).
    fn init(
        &mut self,
        now: Instant,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        init: &Init,
        found: Option<AssociationId>,
    ) -> Result<(), Reason> {
        let (src_port, dst_port) = (packet.dst_port, packet.src_port);
        let answer = |endpoint: &mut Self, chunk: Chunk| {
            let bytes = Packet { src_port, dst_port, tag: init.tag, chunks: vec![chunk] }.emit();
            endpoint.outbox.push_back(Transmit::new(dst, src, bytes));
        };
        if init.tag == 0 {
            // RFC 9260, section 3.3.2: INIT with the initiate tag 0 is dropped without an answer.
            return Err(Reason("sctp_init_refused"));
        }
        if let Err(cause) = acceptable(init) {
            answer(self, Chunk::Abort { reflected: false, causes: vec![cause] });
            return Err(Reason("sctp_init_refused"));
        }
        let named =
            init.addresses().find_map(|address| self.index.get(&(src_port, address, dst_port)).copied());
        if let Some(id) = found.or(named)
            && let Some(association) = self.associations.get_mut(&id)
        {
            association.init_came(now, src, dst, init);
            self.touched(id);
            return Ok(());
        }
        let listener = self.listeners.get(&packet.dst_port);
        let is_named = listener.is_some_and(|listener| listener.addresses.contains(&dst));
        let Some(listener) = listener.filter(|_| is_named || self.here.contains(&dst)) else {
            // RFC 9260, section 8.4, 3: ABORT has the initiate tag of the INIT, and not the T bit.
            answer(self, Chunk::Abort { reflected: false, causes: Vec::new() });
            return Err(Reason("sctp_no_listener"));
        };
        let lists = is_named && listener.addresses.len() > 1;
        let locals = if lists { listener.addresses.clone() } else { Vec::new() };
        let cookie = Cookie {
            made: now,
            remote: src,
            local_port: packet.dst_port,
            remote_port: packet.src_port,
            ties: (0, 0),
            tag: self.rng.tag(),
            tsn: self.rng.u64() as u32,
            random: self.rng.bytes(),
            locals,
            init: init.clone(),
        };
        let ack = init_ack(&self.config, &cookie, &self.rng);
        answer(self, Chunk::InitAck(ack));
        Ok(())
    }

    /// Handles COOKIE ECHO (RFC 9260, sections 5.1.5 and 5.2.4).
    fn cookie_echo(
        &mut self,
        now: Instant,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        bytes: &[u8],
        at: usize,
        found: Option<AssociationId>,
    ) -> Result<(), Reason> {
        let Some(Chunk::CookieEcho(sealed)) = packet.chunks.get(at) else { return Ok(()) };
        let cookie = Cookie::open(sealed, &self.rng).map_err(|Malformed(why)| Reason(why))?;
        let ports = (cookie.local_port, cookie.remote_port) == (packet.dst_port, packet.src_port);
        if !ports || cookie.tag != packet.tag {
            return Err(Reason("sctp_tag"));
        }
        self.authenticate(packet, bytes, &cookie)?;
        let found = self.made_by(&cookie).or(found);
        let known = found.and_then(|id| self.associations.get(&id));
        let duplicate = known.is_some_and(|it| it.local_tag == cookie.tag && it.peer_tag == cookie.init.tag);
        let age = now.since(cookie.made);
        if age > self.config.cookie_life && !duplicate {
            let over =
                u32::try_from(age.saturating_sub(self.config.cookie_life).as_micros()).unwrap_or(u32::MAX);
            let chunks = vec![Chunk::Error(vec![Cause::new(Code::STALE_COOKIE, over.to_be_bytes())])];
            self.answer(src, dst, packet, cookie.init.tag, chunks);
            return Err(Reason("sctp_cookie_stale"));
        }
        let id = match found {
            Some(id) => {
                let Some(association) = self.associations.get_mut(&id) else { return Ok(()) };
                let goes_on = association.cookie_came(now, src, dst, &cookie);
                self.touched(id);
                if !goes_on {
                    return Err(Reason("sctp_cookie_unexpected"));
                }
                id
            }
            None => self.accept(now, (src, dst), packet, &cookie)?,
        };
        if packet.chunks.len() > at + 1 {
            // DATA may follow COOKIE ECHO (RFC 9260, section 5.1). The association verifies AUTH again.
            return self.hand_over(now, (src, dst), packet, bytes, id);
        }
        Ok(())
    }

    fn accept(
        &mut self,
        now: Instant,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        cookie: &Cookie,
    ) -> Result<AssociationId, Reason> {
        if !self.listeners.contains_key(&cookie.local_port) {
            return Err(Reason("sctp_no_listener"));
        }
        let too_many = if self.associations.len() >= self.config.max_associations {
            Some(Reason("sctp_too_many"))
        } else {
            let takes_more = self.takes_more_of(cookie.local_port, cookie.remote);
            (!takes_more).then_some(Reason("sctp_too_many_of_address"))
        };
        if let Some(reason) = too_many {
            let chunks =
                vec![Chunk::Abort { reflected: false, causes: vec![Cause::new(Code::OUT_OF_RESOURCE, [])] }];
            self.answer(src, dst, packet, cookie.init.tag, chunks);
            return Err(reason);
        }
        if self.is_spent(now, cookie) {
            // The association of the cookie has ended here. If the peer still waits for COOKIE ACK, the ABORT ends
            // its opening. Otherwise the ABORT has no effect at the peer.
            let chunks = vec![Chunk::Abort { reflected: false, causes: Vec::new() }];
            self.answer(src, dst, packet, cookie.init.tag, chunks);
            return Err(Reason("sctp_cookie_spent"));
        }
        let rng = self.rng.fork();
        let mut association = Association::accept(now, &self.config, rng, cookie, dst);
        association.greet(src, dst);
        Ok(self.adopt(association))
    }

    /// Returns whether `port` accepts another association with a peer at `address`. Only associations in which
    /// `address` is confirmed are counted. The source of COOKIE ECHO and the addresses in INIT prove nothing, as a
    /// host can forge them.
    fn takes_more_of(&self, port: u16, address: Ipv4Addr) -> bool {
        let there = self.index.range((port, address, 0)..=(port, address, u16::MAX)).map(|(_, id)| id);
        let proved = there.filter(|id| {
            let path = self.associations.get(id).and_then(|association| association.paths.get(address));
            path.is_some_and(|path| path.confirmed)
        });
        proved.take(OF_ADDRESS).count() < OF_ADDRESS
    }

    /// Returns whether `cookie` has created an association already, and marks it as used.
    fn is_spent(&mut self, now: Instant, cookie: &Cookie) -> bool {
        // A cookie is stale when its age is more than its life (RFC 9260, section 5.1.5, 4). If the age is exactly
        // its life, the cookie is still valid.
        self.spent.retain(|(until, ..)| *until >= now);
        if self.spent.iter().any(|(_, ours, theirs)| (*ours, *theirs) == (cookie.tag, cookie.init.tag)) {
            return true;
        }
        if self.spent.len() >= SPENT {
            self.spent.pop_front();
        }
        self.spent.push_back((cookie.made + self.config.cookie_life, cookie.tag, cookie.init.tag));
        false
    }

    /// Verifies the AUTH chunk before COOKIE ECHO, with the key that the cookie gives (RFC 4895, section 6.3).
    /// Without a pair key, AUTH is not required.
    fn authenticate(&self, packet: &Packet, bytes: &[u8], cookie: &Cookie) -> Result<(), Reason> {
        if self.config.pair_key.is_none() {
            return Ok(());
        }
        let ours =
            association::introduction(&self.config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
        let keys = Keys::derive(&self.config, &ours, &cookie.init).ok_or(Reason("sctp_unauthenticated"))?;
        let (Some(Chunk::Auth(auth)), Some(covered)) = (packet.chunks.first(), authenticated(bytes)) else {
            return Err(Reason("sctp_unauthenticated"));
        };
        keys.verify(auth, covered).map_err(|_| Reason("sctp_auth_code"))
    }

    // --- packets out of the blue -----------------------------------------------------------------------------------

    /// Handles a packet without an association (RFC 9260, section 8.4). A packet with ABORT, SHUTDOWN COMPLETE,
    /// COOKIE ACK, INIT ACK or a stale cookie error is not answered.
    fn out_of_the_blue(&mut self, src: Ipv4Addr, dst: Ipv4Addr, packet: &Packet) -> Result<(), Reason> {
        let silent = packet.chunks.iter().any(|chunk| match chunk {
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::InitAck(_) => {
                true
            }
            Chunk::Error(causes) => causes.iter().any(|cause| cause.code == Code::STALE_COOKIE),
            _ => false,
        });
        if !silent {
            let done = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::ShutdownAck));
            let chunk = if done {
                Chunk::ShutdownComplete { reflected: true }
            } else {
                Chunk::Abort { reflected: true, causes: Vec::new() }
            };
            self.answer(src, dst, packet, packet.tag, vec![chunk]);
        }
        Err(Reason("sctp_no_association"))
    }

    fn answer(&mut self, src: Ipv4Addr, dst: Ipv4Addr, packet: &Packet, tag: u32, chunks: Vec<Chunk>) {
        let (src_port, dst_port) = (packet.dst_port, packet.src_port);
        let bytes = Packet { src_port, dst_port, tag, chunks }.emit();
        self.outbox.push_back(Transmit::new(dst, src, bytes));
    }
}
