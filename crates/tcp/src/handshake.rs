//! The handshake that opens a connection (RFC 9293, sections 3.5 and 3.10.7.2 to 3.10.7.4).

use crate::options;
use crate::receive::Receiver;
use crate::timestamps::Clocks;
use crate::{Connection, Ended, Flags, Options, Profile, Segment, Seq, State, Timestamps};
use wire::{Instant, SocketAddrV4};

/// The MSS of a peer that sends no MSS option (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The smallest MSS of a peer, in bytes: a smaller one is raised to this value. Otherwise a segment would be almost
/// only header (Linux: `tcp_min_snd_mss`).
const LEAST_MSS: u16 = 48;
/// The largest window shift (RFC 7323, section 2.3).
const MOST_SCALE: u8 = 14;

impl Connection {
    /// Opens a connection actively: `poll` returns the SYN. `iss` is the sequence number of the SYN, which the caller
    /// draws at random (RFC 6528).
    pub fn connect(local: SocketAddrV4, remote: SocketAddrV4, iss: Seq, profile: &Profile) -> Self {
        let mut connection = Self::new(local, remote, iss, profile);
        connection.state = State::SynSent;
        connection.syn_due = true;
        connection
    }

    /// Opens a connection passively, for a SYN that arrived at a listener at `now`. Returns `None` if `syn` is no SYN,
    /// or has ACK or RST. In this case, the caller answers with [`Segment::refusal`].
    pub fn accept(
        now: Instant,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        syn: &Segment<'_>,
        iss: Seq,
        profile: &Profile,
    ) -> Option<Self> {
        if !syn.has(Flags::SYN) || syn.has(Flags::ACK) || syn.has(Flags::RST) {
            return None;
        }
        let mut connection = Self::new(local, remote, iss, profile);
        connection.peer_syn(now, syn);
        connection.state = State::SynReceived;
        connection.syn_due = true;
        Some(connection)
    }

    /// Takes the initial sequence number and the options of the peer's SYN.
    fn peer_syn(&mut self, now: Instant, syn: &Segment<'_>) {
        self.irs = syn.seq;
        let most = syn.options.mss.unwrap_or(DEFAULT_MSS).max(LEAST_MSS);
        // Timestamps and SACK are used only if both ends support them (RFC 7323, section 3.2; RFC 2018, section 2).
        let stamps = syn.options.timestamps.filter(|_| self.profile.timestamps);
        let ours = Clocks::new(&self.profile, self.send.una);
        self.clocks = stamps.map(|theirs| ours.met(now, theirs.value, syn.seq.plus(1)));
        self.sack = syn.options.sack_permitted && self.profile.sack;
        let overhead = if self.clocks.is_some() { options::TIMESTAMPS } else { 0 };
        self.send.agree(u32::from(self.profile.mss.min(most)).max(1), overhead);
        // Windows are scaled in both directions or in neither (RFC 7323, section 2.2).
        let ours = match syn.options.window_scale.filter(|_| self.profile.window_scale) {
            Some(theirs) => {
                self.send.scale = theirs.min(MOST_SCALE);
                scale(&self.profile)
            }
            None => 0,
        };
        self.receive = Receiver::new(&self.profile, syn.seq.plus(1), ours);
    }

    /// Returns our SYN, and notes it as sent. In SYN-RECEIVED it has an acknowledgment. The window field of a SYN is
    /// not scaled (RFC 7323, section 2.2).
    pub(crate) fn syn(&mut self, now: Instant) -> Segment<'static> {
        let answer = self.state == State::SynReceived;
        let seq = self.send.una;
        self.send.syn_sent(now);
        self.receive.acknowledged();
        let scales = self.profile.window_scale && (!answer || self.receive.scale > 0 || self.send.scale > 0);
        let options = Options {
            mss: Some(self.profile.mss),
            window_scale: scales.then(|| scale(&self.profile)),
            sack_permitted: self.profile.sack && (!answer || self.sack),
            timestamps: self.syn_stamps(now, answer),
            ..Options::default()
        };
        let window = self.receive.window().min(u32::from(u16::MAX)) as u16;
        let plain = self.plain(seq, Flags::SYN);
        if answer {
            return Segment { window, options, ..plain };
        }
        Segment { window, options, flags: Flags::SYN, ack: Seq(0), ..plain }
    }

    /// Returns the timestamps option of our SYN (RFC 7323, section 3.2). A SYN-ACK has the option only if the peer's
    /// SYN had it, and echoes the peer's timestamp. In the SYN of an active open, the echo is zero.
    fn syn_stamps(&mut self, now: Instant, answer: bool) -> Option<Timestamps> {
        if answer {
            let next = self.receive.next;
            return self.clocks.as_mut().map(|clocks| clocks.stamp(now, next));
        }
        let ours = Clocks::new(&self.profile, self.send.una);
        self.profile.timestamps.then(|| Timestamps { value: ours.value(now), echo: 0 })
    }

    /// Handles a segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(crate) fn answered(&mut self, now: Instant, segment: &Segment<'_>) {
        let acknowledges = segment.has(Flags::ACK);
        let ours = segment.ack.after(self.send.una) && !segment.ack.after(self.send.max);
        if acknowledges && !ours {
            self.reset = segment.refusal();
            return;
        }
        if segment.has(Flags::RST) {
            if acknowledges {
                self.end(Ended::Refused);
            }
            return;
        }
        if !segment.has(Flags::SYN) {
            return;
        }
        self.peer_syn(now, segment);
        if acknowledges {
            self.established(now, segment, 0);
            self.receive.due = true;
        } else {
            self.state = State::SynReceived; // simultaneous open: RFC 9293, figure 7
            self.syn_due = true;
        }
    }

    /// Handles a repeated SYN of the peer in SYN-RECEIVED. Returns whether `segment` is a repeated SYN.
    pub(crate) fn repeated_syn(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if !segment.has(Flags::SYN) || segment.has(Flags::RST) || segment.seq != self.irs {
            return false;
        }
        if !segment.has(Flags::ACK) {
            self.syn_due = true;
        } else if self.completed(now, segment) {
            self.receive.due = true;
        }
        true
    }

    /// Handles an acknowledgment in SYN-RECEIVED. Returns whether `segment` acknowledges our SYN: then the connection
    /// is established. Otherwise a reset answers the segment.
    pub(crate) fn completed(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if segment.ack != self.send.max || self.send.flight() == 0 {
            self.reset = segment.refusal();
            return false;
        }
        let shift = if segment.has(Flags::SYN) { 0 } else { self.send.scale };
        self.established(now, segment, shift);
        true
    }

    fn established(&mut self, now: Instant, segment: &Segment<'_>, shift: u8) {
        self.state = State::Established;
        self.syn_due = false;
        let echoed = self.echoed(now, segment);
        self.send.opened(now, &self.profile, self.sack, echoed);
        self.send.window = u32::from(segment.window) << shift;
        self.send.largest_window = self.send.window;
        (self.send.wl1, self.send.wl2) = (segment.seq, segment.ack);
    }
}

/// Returns the window shift of the profile, or the smallest with which a window field can express the whole buffer.
fn scale(profile: &Profile) -> u8 {
    let fits = |shift: &u8| u16::try_from(profile.receive_buffer >> shift).is_ok();
    profile.window_shift.or_else(|| (0..MOST_SCALE).find(fits)).unwrap_or(MOST_SCALE)
}
