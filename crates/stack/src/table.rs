//! The TCP sockets of one host. The table finds the socket of a segment, and executes what sockets request: it sends
//! segments, reports events to the user, and sets timers.

use crate::icmp::Unreachable;
use crate::path::Paths;
use crate::socket::{Next, Socket};
use crate::{Datagram, Output, reason};
use node::guard::{self, Check, Guards};
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{Addr, Expiry, Guard, MigrateOp, SocketOption, StreamId, StreamOp, Tuple};
use std::collections::BTreeMap;
use std::sync::Arc;
use tcp::{Connection, Ended, Profile, Segment, State};
use wire::ipv4::{self, Header};
use wire::{Duration, Instant, Ipv4Addr, PacketId, Reason, Rng, Seq, SocketAddrV4, TcpState};

/// The largest number of TCP sockets of one host, including those in TIME-WAIT.
const MOST: usize = 4096;
/// The largest number of sockets in a table whose consistency is checked after each call, in debug builds.
const CHECKED: usize = 64;
/// The length of the IP and TCP headers without options, in bytes.
const HEADERS: u16 = (ipv4::HEADER + tcp::HEADER) as u16;

/// The capacity of a relay's pipe to a socket in bytes: that of a Linux pipe, which the daemon's relay uses.
const PIPE: usize = 64 * 1024;
/// The capacity of a relay's pipe to a socket in bytes, if the user has set the socket's send buffer: one page. The
/// bytes in the pipe must move with the connection.
const LITTLE_PIPE: usize = 4096;

/// The socket of a stream: a listener, or a connection.
#[derive(Clone, Copy, Debug)]
enum SocketKey {
    Listens(Addr),
    Connected(Tuple),
}

#[derive(Debug)]
pub(crate) struct Table {
    mtu: u16,
    profile: Arc<Profile>,
    /// The profiles of listeners, and of streams that are not open yet, for which an option was set.
    profiles: BTreeMap<StreamId, Arc<Profile>>,
    rng: Rng,
    streams: BTreeMap<StreamId, SocketKey>,
    listeners: BTreeMap<Addr, StreamId>,
    sockets: BTreeMap<Tuple, Socket>,
    /// The other side of each relayed socket.
    relays: BTreeMap<Tuple, Tuple>,
    due: Expiry<Tuple>,
    guards: Guards,
    paths: Paths,
}

impl Table {
    pub(crate) fn new(mtu: u16, profile: &Arc<Profile>, rng: Rng) -> Self {
        let profile = fitted(profile, mtu, &rng);
        Self {
            mtu,
            profile,
            profiles: BTreeMap::new(),
            rng,
            streams: BTreeMap::new(),
            listeners: BTreeMap::new(),
            sockets: BTreeMap::new(),
            relays: BTreeMap::new(),
            due: Expiry::default(),
            guards: Guards::default(),
            paths: Paths::default(),
        }
    }

    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    pub(crate) fn is_taken(&self, tuple: &Tuple) -> bool {
        self.sockets.contains_key(tuple)
    }

    pub(crate) fn info(&self, id: StreamId) -> Option<tcp::Info> {
        match self.streams.get(&id)? {
            SocketKey::Connected(tuple) => self.sockets.get(tuple).map(|socket| socket.tcp.info()),
            SocketKey::Listens(_) => None,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::sooner(self.due.next(), self.paths.deadline())
    }

    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.guards.holds(each);
    }

    // --- users -----------------------------------------------------------------------------------------------------

    #[inline(never)] // a connection is large, and rarely created
    pub(crate) fn connect(&mut self, now: Instant, id: StreamId, tuple: Tuple, out: &mut Output) {
        let Some(why) = self.full(&tuple) else {
            let profile = self.profile_of(id);
            let tcp = Connection::connect(tuple.local, tuple.remote, self.iss(), &profile);
            self.add(id, tuple, Socket::new(tcp, Some(id), None));
            return self.serve(now, tuple, &mut 0, out);
        };
        out.events.push(OwnedStreamEvent::Closed(id, Some(why.to_owned())));
    }

    pub(crate) fn operate(
        &mut self,
        now: Instant,
        id: StreamId,
        op: StreamOp,
        accepted: &mut u32,
        out: &mut Output,
    ) {
        match (op, self.streams.get(&id).copied()) {
            (StreamOp::Listen { local, .. }, _) => self.listen(id, local, out),
            (StreamOp::Migrate(MigrateOp::Import(state)), _) => self.import(now, id, *state, out),
            (StreamOp::Migrate(MigrateOp::Guard(tuple, guard)), _) => {
                self.guard(now, id, tuple, guard, accepted, out);
            }
            (StreamOp::Migrate(MigrateOp::Join(other, staged)), key) => {
                let other = self.streams.get(&other).copied();
                match self.join(key, other, staged) {
                    Some(tuple) => self.serve(now, tuple, accepted, out),
                    None => out.events.push(OwnedStreamEvent::refused(id, refusal::NOT_JOINABLE)),
                }
            }
            (StreamOp::Migrate(MigrateOp::Part), key) => self.part(now, id, key, accepted, out),
            (StreamOp::Set(knob), None | Some(SocketKey::Listens(_))) => self.set(id, knob),
            (op, Some(SocketKey::Connected(tuple))) => {
                let Some(socket) = self.sockets.get_mut(&tuple) else { return };
                let next = socket.operate(now, id, op, out);
                if next == Next::Rest {
                    return;
                }
                if socket.stream.is_none() {
                    self.streams.remove(&id);
                }
                if next == Next::Forget {
                    self.remove(&tuple);
                }
                self.serve(now, tuple, accepted, out);
            }
            (
                StreamOp::Finish | StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget),
                Some(SocketKey::Listens(at)),
            ) => {
                self.listeners.remove(&at);
                self.streams.remove(&id);
                self.profiles.remove(&id);
                out.events.push(OwnedStreamEvent::Closed(id, None));
            }
            _ => {}
        }
    }

    /// Sets an option of a stream that is not open yet, or of the connections that a listener accepts.
    fn set(&mut self, id: StreamId, knob: SocketOption) {
        // A stream with an id from `SERVED` on was accepted. It cannot be opened after it was closed, so an option for
        // it is ignored.
        if self.profiles.len() < MOST && id.0 < StreamId::SERVED {
            let profile = Arc::make_mut(self.profiles.entry(id).or_insert_with(|| Arc::clone(&self.profile)));
            match knob {
                SocketOption::SendBuffer(bytes) => profile.send_buffer = bytes,
                SocketOption::ReceiveBuffer(bytes) => {
                    (profile.receive_buffer, profile.window_shift) = (bytes, None);
                }
                SocketOption::Nagle(on) => profile.nagle = on,
                SocketOption::DontFragment(_) => {} // segments always have DF
            }
        }
    }

    /// Returns the profile for a stream that is opened now, and removes it from `profiles`.
    fn profile_of(&mut self, id: StreamId) -> Arc<Profile> {
        self.profiles.remove(&id).unwrap_or_else(|| Arc::clone(&self.profile))
    }

    fn listen(&mut self, id: StreamId, local: Addr, out: &mut Output) {
        if self.listeners.contains_key(&local) {
            return out.events.push(OwnedStreamEvent::Closed(id, Some(refusal::IN_USE.to_owned())));
        }
        self.listeners.insert(local, id);
        self.streams.insert(id, SocketKey::Listens(local));
        out.events.push(OwnedStreamEvent::Opened(id, local));
    }

    #[inline(never)] // as for `connect`
    fn import(&mut self, now: Instant, id: StreamId, state: TcpState, out: &mut Output) {
        let tuple = Tuple { local: state.local, remote: state.remote };
        if let Some(why) = self.full(&tuple) {
            return out.events.push(OwnedStreamEvent::Closed(id, Some(why.to_owned())));
        }
        let finishing = state.finishing;
        let tcp = Connection::import(state, now, &self.profile_of(id));
        self.add(id, tuple, Socket::imported(tcp, id, finishing));
        self.fit(tuple);
        out.events.push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Imported));
    }

    fn join(
        &mut self,
        one: Option<SocketKey>,
        other: Option<SocketKey>,
        staged: [Vec<u8>; 2],
    ) -> Option<Tuple> {
        let (Some(SocketKey::Connected(one)), Some(SocketKey::Connected(other))) = (one, other) else {
            return None;
        };
        let free = |tuple| {
            self.sockets.get(tuple).is_some_and(Socket::is_joinable) && !self.relays.contains_key(tuple)
        };
        if one == other || !free(&one) || !free(&other) {
            return None;
        }
        self.relays.extend([(one, other), (other, one)]);
        let [for_other, for_one] = staged;
        for (tuple, staged) in [(other, for_other), (one, for_one)] {
            if let Some(socket) = self.sockets.get_mut(&tuple) {
                let bounded = socket.send_capacity() != self.profile.send_buffer as usize;
                socket.join(staged, if bounded { LITTLE_PIPE } else { PIPE });
            }
        }
        Some(one)
    }

    fn part(
        &mut self,
        now: Instant,
        id: StreamId,
        key: Option<SocketKey>,
        accepted: &mut u32,
        out: &mut Output,
    ) {
        let here = if let Some(SocketKey::Connected(tuple)) = key { Some(tuple) } else { None };
        let Some((here, there)) = here.and_then(|here| Some((here, self.unlink(&here)?))) else {
            return out.events.push(OwnedStreamEvent::refused(id, refusal::NOT_JOINED));
        };
        let back = [(here, there), (there, here)].map(|(from, to)| {
            let mut bytes = self.sockets.get_mut(&to).map_or(Vec::new(), Socket::part);
            bytes.extend(self.sockets.get_mut(&from).map_or(Vec::new(), Socket::leave_behind));
            bytes
        });
        out.events.push(OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Parted(back)));
        self.serve(now, here, accepted, out);
        self.serve(now, there, accepted, out);
    }

    /// Ends a relay. Returns the other side of the socket, or `None` if it has no relay.
    fn unlink(&mut self, tuple: &Tuple) -> Option<Tuple> {
        let other = self.relays.remove(tuple)?;
        self.relays.remove(&other);
        Some(other)
    }

    fn guard(
        &mut self,
        now: Instant,
        id: StreamId,
        tuple: Tuple,
        guard: Option<Guard>,
        accepted: &mut u32,
        out: &mut Output,
    ) {
        let Some(released) = self.guards.set(tuple, guard) else {
            return out.events.push(OwnedStreamEvent::refused(id, refusal::FULL));
        };
        for (packet, bytes) in released {
            let datagram = Datagram::parse(packet, &bytes).map_err(Reason::from);
            let taken = datagram.and_then(|datagram| self.receive(now, datagram, accepted, out));
            if let Err(reason) = taken {
                out.lost.push((packet, reason));
            }
        }
        self.serve(now, tuple, accepted, out);
    }

    /// Returns why no socket with this tuple can be added, or `None` if one can.
    fn full(&self, tuple: &Tuple) -> Option<&'static str> {
        if self.sockets.contains_key(tuple) {
            return Some(refusal::IN_USE);
        }
        (self.sockets.len() >= MOST).then_some(refusal::FULL)
    }

    fn add(&mut self, id: StreamId, tuple: Tuple, socket: Socket) {
        self.streams.insert(id, SocketKey::Connected(tuple));
        self.put(tuple, socket);
    }

    fn put(&mut self, tuple: Tuple, mut socket: Socket) {
        socket.watch = self.profile.traced.then(Box::default);
        self.sockets.insert(tuple, socket);
    }

    fn remove(&mut self, tuple: &Tuple) {
        self.due.stop(*tuple);
        let other = self.unlink(tuple);
        let Some(socket) = self.sockets.remove(tuple) else { return };
        socket.stream.and_then(|user| self.streams.remove(&user));
        // After a clean end, the other side stays marked as relayed.
        let left = other.filter(|_| socket.tcp.ended() != Some(Ended::Finished));
        if let Some(socket) = left.and_then(|other| self.sockets.get_mut(&other)) {
            socket.part();
        }
    }

    /// Checks the number of sockets. In debug builds, also checks that streams, sockets, listeners and relays agree. It
    /// does so only in tables of at most [`CHECKED`] sockets, because the check visits all sockets.
    ///
    /// # Panics
    ///
    /// Streams, sockets, listeners or relays do not agree, or there are too many sockets.
    pub(crate) fn check(&self) {
        assert!(self.sockets.len() <= MOST, "{} sockets", self.sockets.len());
        if !cfg!(debug_assertions) || self.sockets.len() > CHECKED {
            return;
        }
        for (id, key) in &self.streams {
            let has = match key {
                SocketKey::Listens(at) => self.listeners.get(at) == Some(id),
                SocketKey::Connected(tuple) => {
                    self.sockets.get(tuple).is_some_and(|socket| socket.stream == Some(*id))
                }
            };
            assert!(has, "{id:?} is open without a listener or connection: {key:?}");
        }
        let users = self.sockets.values().filter(|socket| socket.stream.is_some()).count();
        assert_eq!(
            users + self.listeners.len(),
            self.streams.len(),
            "streams and their sockets and listeners differ in number"
        );
        for (one, other) in &self.relays {
            let is_mutual = self.relays.get(other) == Some(one) && self.sockets.contains_key(one);
            assert!(
                is_mutual,
                "a relayed socket does not exist, or its other side does not name it: {one:?}"
            );
        }
    }

    fn iss(&mut self) -> Seq {
        Seq(self.rng.draw() as u32)
    }

    // --- the network -----------------------------------------------------------------------------------------------

    /// Receives a segment. It needs the whole datagram, because a guard may hold the datagram.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: Datagram<'_>,
        accepted: &mut u32,
        out: &mut Output,
    ) -> Result<(), Reason> {
        let Datagram { id, bytes, header, payload } = datagram;
        let parsed = Segment::parse(payload, header.src, header.dst);
        let segment = parsed.as_ref().map_err(|malformed| Reason::from(*malformed))?; // large, so borrowed
        let tuple = Tuple {
            local: SocketAddrV4::new(header.dst, segment.dst_port),
            remote: SocketAddrV4::new(header.src, segment.src_port),
        };
        match self.guards.check(&tuple, id, bytes) {
            Check::Pass => {}
            Check::Held => return Ok(()),
            Check::Ends(reason) => {
                if reason == guard::GUARD_RESET {
                    refuse(&header, segment, out);
                }
                return Err(reason);
            }
        }
        match self.sockets.get_mut(&tuple) {
            Some(socket) if socket.frozen => return Err(guard::FROZEN),
            Some(socket) => socket.tcp.receive(now, segment),
            None => self.open(now, tuple, &header, segment, out)?,
        }
        self.serve(now, tuple, accepted, out);
        Ok(())
    }

    /// Receives a segment without a connection: for a listener, or for no socket.
    fn open(
        &mut self,
        now: Instant,
        tuple: Tuple,
        header: &Header,
        segment: &Segment<'_>,
        out: &mut Output,
    ) -> Result<(), Reason> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, tuple.local.port());
        let listener = self.listeners.get(&tuple.local).or_else(|| self.listeners.get(&any)).copied();
        let iss = self.iss();
        let tcp = listener.and_then(|listener| {
            let profile = self.profiles.get(&listener).unwrap_or(&self.profile);
            Connection::accept(now, tuple.local, tuple.remote, segment, iss, profile)
        });
        let Some(tcp) = tcp else {
            refuse(header, segment, out);
            return Err(reason::NO_SOCKET);
        };
        if self.sockets.len() >= MOST {
            return Err(reason::SOCKETS_FULL);
        }
        self.put(tuple, Socket::new(tcp, None, listener));
        Ok(())
    }

    pub(crate) fn icmp(
        &mut self,
        now: Instant,
        payload: &[u8],
        accepted: &mut u32,
        out: &mut Output,
    ) -> Result<(), Reason> {
        let error = Unreachable::parse(payload)?.ok_or(reason::NO_PROTOCOL)?;
        let socket = self.sockets.get_mut(&error.tuple);
        let socket = socket.filter(|socket| socket.tcp.in_flight(error.seq)).ok_or(reason::ICMP_STRANGE)?;
        let Some((len, mtu)) = error.too_big else {
            // On an open connection the failure may be temporary, and the retransmission timer decides (RFC 5461,
            // section 2.2).
            if socket.tcp.state() == State::SynSent {
                let user = socket.stream;
                socket.close(Some(refusal::UNREACHABLE), out);
                user.and_then(|user| self.streams.remove(&user));
                self.remove(&error.tuple);
            } else if error.no_path {
                socket.tcp.unreachable(now, error.seq);
                self.serve(now, error.tuple, accepted, out);
            }
            return Ok(());
        };
        let to = *error.tuple.remote.ip();
        if self.paths.lower(now, to, mtu, len).is_some() {
            self.path_changed(now, to, accepted, out);
        }
        Ok(())
    }

    /// Notifies all connections to `to` of the new path MTU.
    fn path_changed(&mut self, now: Instant, to: Ipv4Addr, accepted: &mut u32, out: &mut Output) {
        let tuples: Vec<Tuple> =
            self.sockets.keys().filter(|tuple| *tuple.remote.ip() == to).copied().collect();
        for tuple in tuples {
            self.fit(tuple);
            self.serve(now, tuple, accepted, out);
        }
    }

    fn fit(&mut self, tuple: Tuple) {
        let mtu = self.paths.mtu(*tuple.remote.ip()).unwrap_or(self.mtu);
        if let Some(socket) = self.sockets.get_mut(&tuple) {
            socket.tcp.path_mss(mtu.saturating_sub(HEADERS));
        }
    }

    // --- time ------------------------------------------------------------------------------------------------------

    pub(crate) fn timeout(&mut self, now: Instant, accepted: &mut u32, out: &mut Output) {
        while let Some(tuple) = self.due.pop(now) {
            let Some(socket) = self.sockets.get_mut(&tuple) else { continue };
            match socket.tcp.deadline() {
                Some(later) if later > now => self.due.set(tuple, later),
                Some(_) => {
                    socket.tcp.timeout(now);
                    self.serve(now, tuple, accepted, out);
                }
                None => {}
            }
        }
        while let Some(to) = self.paths.expired(now) {
            self.path_changed(now, to, accepted, out);
        }
    }

    /// Notifies the user and sends segments after any change of a connection. If the connection has a relay, also moves
    /// data between both sides, and does the same for the other side.
    fn serve(&mut self, now: Instant, tuple: Tuple, accepted: &mut u32, out: &mut Output) {
        let Some(other) = self.relays.get(&tuple).copied() else {
            self.serve_one(now, tuple, accepted, out);
            return;
        };
        self.relay(tuple, other);
        for (one, other) in [(tuple, other), (other, tuple)] {
            let broken = self.serve_one(now, one, accepted, out);
            if broken && let Some(socket) = self.sockets.get_mut(&other) {
                // Bytes may be lost, so the other side must not end cleanly.
                let user = socket.stream;
                if socket.abort(Some(refusal::RESET), out) {
                    self.remove(&other);
                }
                user.and_then(|user| self.streams.remove(&user));
                self.serve_one(now, other, accepted, out);
                return;
            }
        }
    }

    /// Moves data between the sockets of a relay, in both directions.
    fn relay(&mut self, one: Tuple, other: Tuple) {
        let (Some(mut a), Some(mut b)) = (self.sockets.remove(&one), self.sockets.remove(&other)) else {
            return; // removing a socket also ended its relay
        };
        let rest = |socket: &Socket, tuple| socket.frozen || self.guards.has(tuple);
        let (a_rests, b_rests) = (rest(&a, &one), rest(&b, &other));
        if !a_rests {
            a.relay_from(&mut b, b_rests);
        }
        if !b_rests {
            b.relay_from(&mut a, a_rests);
        }
        self.sockets.extend([(one, a), (other, b)]);
    }

    /// Notifies the user of one connection and sends segments. A frozen or guarded connection sends nothing, and its
    /// timers stop. Returns whether the connection is broken: ended, but not because both sides finished.
    fn serve_one(&mut self, now: Instant, tuple: Tuple, accepted: &mut u32, out: &mut Output) -> bool {
        let guarded = self.guards.has(&tuple);
        let serving = self.sockets.get_mut(&tuple).filter(|socket| !socket.frozen && !guarded);
        let Some(mut socket) = serving else {
            self.due.stop(tuple);
            return false;
        };
        let user = socket.stream;
        if socket.tcp.state().synchronized() && !socket.opened {
            let listener = socket.listener.take();
            self.fit(tuple);
            listener.inspect(|listener| self.accept(*listener, tuple, accepted, out));
            let Some(accepted) = self.sockets.get_mut(&tuple) else { return false };
            socket = accepted;
        }
        let done = socket.serve(now, out);
        let broken = socket.tcp.ended().is_some_and(|why| why != Ended::Finished);
        if let (Some(user), None) = (user, socket.stream) {
            self.streams.remove(&user);
        }
        // A cancelled deadline stays set: most deadlines are set again before it. Otherwise its time-out has no effect.
        match socket.tcp.deadline() {
            _ if done => self.remove(&tuple),
            Some(at) => self.due.set_by(tuple, at),
            None => {}
        }
        broken
    }

    /// Passes an established connection to its listener, or aborts it if the listener is gone.
    fn accept(&mut self, listener: StreamId, tuple: Tuple, accepted: &mut u32, out: &mut Output) {
        let Some(socket) = self.sockets.get_mut(&tuple) else { return };
        if !matches!(self.streams.get(&listener), Some(SocketKey::Listens(_))) {
            return socket.tcp.abort();
        }
        let new = StreamId::of_driver(accepted);
        (socket.stream, socket.opened) = (Some(new), true);
        self.streams.insert(new, SocketKey::Connected(tuple));
        out.events.push(OwnedStreamEvent::Accepted { listener, new, local: tuple.local, peer: tuple.remote });
    }
}

/// Returns the profile for this host: segments fit the MTU of its link, and its TCP clock has a random phase.
fn fitted(profile: &Arc<Profile>, mtu: u16, rng: &Rng) -> Arc<Profile> {
    let mss = profile.mss.min(mtu.saturating_sub(HEADERS).max(1));
    let timing = profile.timing.with_phase(|| Duration::from_nanos(rng.fork("ticks").draw()));
    if mss == profile.mss && timing == profile.timing {
        return Arc::clone(profile);
    }
    Arc::new(Profile { mss, timing, ..(**profile).clone() })
}

/// Answers a segment for which there is no connection with a reset, if it may be answered.
pub(crate) fn refuse(header: &Header, segment: &Segment<'_>, out: &mut Output) {
    if let Some(reset) = segment.refusal() {
        out.packets.push(reset.datagram(header.dst, header.src));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcp::{Ticks, Timing};

    fn table() -> (Table, Tuple) {
        let local = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 80);
        let mut table = Table::new(1500, &Profile::linux_like().into(), Rng::new(1));
        let tuple = Tuple { local, remote: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 80) };
        table.connect(Instant::ZERO, StreamId(1), tuple, &mut Output::default());
        table.check();
        (table, tuple)
    }

    #[test]
    #[should_panic(expected = "is open without a listener or connection")]
    fn a_stream_has_a_socket() {
        let (mut table, tuple) = table();
        table.sockets.remove(&tuple);
        table.check();
    }

    #[test]
    #[should_panic(expected = "streams and their sockets and listeners differ in number")]
    fn a_socket_has_its_stream() {
        let (mut table, _) = table();
        table.streams.clear();
        table.check();
    }

    #[test]
    #[should_panic(expected = "a relayed socket does not exist")]
    fn a_relay_has_two_sides() {
        let (mut table, tuple) = table();
        let other = Tuple { local: tuple.remote, remote: tuple.local };
        table.relays.insert(tuple, other);
        table.check();
    }

    #[test]
    #[should_panic(expected = "StreamId(1) may write 99999999 bytes")]
    fn credit_is_room() {
        let (mut table, tuple) = table();
        let socket = table.sockets.get_mut(&tuple).unwrap();
        socket.opened = true;
        socket.plant_credit(99_999_999);
        table.serve(Instant::ZERO, tuple, &mut 0, &mut Output::default());
    }

    /// The clock of each host must have a random phase. Otherwise every periodic move would happen at the same phase of
    /// all clocks.
    #[test]
    fn each_host_draws_when_its_clock_ticks() {
        let phase = |profile: Profile, seed| {
            let fitted = fitted(&Arc::new(profile), 1500, &Rng::new(seed));
            match fitted.timing {
                Timing::Exact => None,
                Timing::Ticks(ticks) => ticks.phase,
                Timing::Wheel(wheel) => wheel.phase,
            }
        };
        for profile in [Profile::bsd44(), Profile::linux()] {
            let drawn = |seed| phase(profile.clone(), seed);
            assert!(drawn(1).is_some() && drawn(1) == drawn(1) && drawn(1) != drawn(2));
        }
        let told = Timing::Ticks(Ticks { phase: Some(Duration::from_millis(7)), ..Ticks::BSD });
        assert_eq!(phase(Profile { timing: told, ..Profile::bsd44() }, 1), Some(Duration::from_millis(7)));
        assert_eq!(phase(Profile::rfc6298_reno(), 1), None);
    }
}
