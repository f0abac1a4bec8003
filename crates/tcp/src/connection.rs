//! A connection: the application's calls, segments that arrive, segments to send (RFC 9293, section 3.10).

use crate::challenge::Challenge;
use crate::options::{self, Blocks};
use crate::receive::Receiver;
use crate::send::acknowledge::Ack;
use crate::send::timers::Timer;
use crate::send::{Fin, Sender};
use crate::timestamps::Clocks;
use crate::{Ended, Flags, Info, Options, Profile, Segment, Seq, State};
use wire::{Instant, SocketAddrV4};

/// One end of a TCP connection. The documentation of the crate shows in which order a caller uses the functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    pub(crate) profile: Profile,
    pub(crate) local: SocketAddrV4,
    pub(crate) remote: SocketAddrV4,
    pub(crate) state: State,
    pub(crate) send: Sender,
    pub(crate) receive: Receiver,
    /// The sequence number of the peer's SYN.
    pub(crate) irs: Seq,
    /// The state of the timestamps; `None` if they are not used.
    pub(crate) clocks: Option<Clocks>,
    /// Whether both ends support selective acknowledgments.
    pub(crate) sack: bool,
    pub(crate) syn_due: bool,
    pub(crate) reset: Option<Segment<'static>>,
    pub(crate) challenge: Challenge,
    pub(crate) time_wait: Option<Instant>,
    pub(crate) ended: Option<Ended>,
}

impl Connection {
    pub(crate) fn new(local: SocketAddrV4, remote: SocketAddrV4, iss: Seq, profile: &Profile) -> Self {
        Self {
            profile: profile.clone(),
            local,
            remote,
            state: State::Closed,
            send: Sender::new(profile, iss),
            receive: Receiver::new(profile, Seq(0), 0),
            irs: Seq(0),
            clocks: None,
            sack: false,
            syn_due: false,
            reset: None,
            challenge: Challenge::default(),
            time_wait: None,
            ended: None,
        }
    }

    // --- calls of the application ----------------------------------------------------------------------------------

    /// Queues the first bytes of `bytes` to be sent, at most [`Self::room`]. Returns their number.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.state == State::Closed { 0 } else { self.send.write(bytes) }
    }

    /// Returns the number of bytes that `write` would take; 0 after `finish` and in CLOSED.
    pub fn room(&self) -> usize {
        if self.state == State::Closed { 0 } else { self.send.room() }
    }

    /// Returns the size of the send buffer, in bytes. The buffer holds written data until the peer acknowledges it.
    pub const fn send_buffer(&self) -> usize {
        self.send.capacity
    }

    /// Returns the number of bytes that were written and are not acknowledged, sent or not.
    pub fn unacknowledged(&self) -> usize {
        self.send.buffer.len()
    }

    /// Removes and returns the next bytes of the peer's stream, at most `most`. Reading frees room for the window.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        self.read_for(most, Vec::new())
    }

    /// Removes and returns the next bytes of the peer's stream, at most `most`. `buffer` must be empty. If all unread
    /// bytes are returned, `buffer` becomes the storage for later bytes.
    pub fn read_for(&mut self, most: usize, buffer: Vec<u8>) -> Vec<u8> {
        self.receive.read(most, buffer)
    }

    /// Returns the number of bytes that can be read now.
    pub fn readable(&self) -> usize {
        self.receive.unread.len()
    }

    /// Returns whether the peer's FIN has arrived and all data was read.
    pub fn at_end(&self) -> bool {
        self.receive.finished && self.receive.unread.is_empty()
    }

    /// Ends the stream of this end: a FIN follows the last byte. The peer may continue to send. In SYN-SENT, a
    /// connection without data to send is closed.
    pub fn finish(&mut self) {
        if self.send.fin == Fin::No {
            self.send.fin = Fin::Queued;
        }
        // RFC 9293, section 3.10.4, deletes a connection in SYN-SENT. Here, the connection is kept if there is data to
        // send.
        if self.state == State::SynSent && self.send.buffer.is_empty() {
            self.end(Ended::Finished);
        }
    }

    /// Aborts the connection (RFC 9293, section 3.10.5). Then `poll` returns a reset for the peer, unless the state was
    /// SYN-SENT, TIME-WAIT or CLOSED.
    pub fn abort(&mut self) {
        if self.state == State::SynReceived || (self.state.synchronized() && self.state != State::TimeWait) {
            self.receive.acknowledged();
            self.reset = Some(self.plain(self.send.bare(), Flags::RST));
        }
        if self.state != State::Closed {
            self.end(Ended::Aborted);
        }
    }

    /// Sets the size of the send buffer, in bytes. Data that the buffer already holds is kept.
    pub fn set_send_buffer(&mut self, bytes: u32) {
        self.send.capacity = bytes as usize;
    }

    /// Sets the size of the receive buffer, in bytes, as far as the agreed window shift can express it. A window that
    /// was announced is not taken back.
    pub fn set_receive_buffer(&mut self, bytes: u32) {
        self.receive.set_capacity(bytes);
    }

    /// Sets whether small segments wait while data is unacknowledged (Nagle; RFC 9293, section 3.7.4). With the
    /// profile's `minshall`, they wait only while another small segment is unacknowledged.
    pub const fn set_nagle(&mut self, on: bool) {
        self.send.nagle = on;
    }

    /// Sets the largest segment that the path to the peer carries, in bytes: options and payload. It may be smaller
    /// than before, or larger, but not larger than the ends agreed on. If it is smaller, the profile's `too_big`
    /// decides whether segments that are too big are sent again at once (RFC 1191, section 6.4).
    pub fn path_mss(&mut self, mss: u16) {
        self.send.path_mss(u32::from(mss));
    }

    /// Returns whether `seq` is sent and not acknowledged. An ICMP message that quotes another number is forged or old
    /// (RFC 5927, section 4.1).
    pub const fn in_flight(&self, seq: Seq) -> bool {
        seq.since(self.send.una) < self.send.max.since(self.send.una)
    }

    /// Returns the state of the connection (RFC 9293, section 3.3.2).
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns why the connection is closed; `None` while it is not.
    pub const fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Returns the address and port of this end.
    pub const fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// Returns the peer's address and port.
    pub const fn remote(&self) -> SocketAddrV4 {
        self.remote
    }

    /// Returns the largest payload of a segment to the peer, in bytes, as the path permits now.
    pub const fn mss(&self) -> u32 {
        self.send.mss
    }

    /// Returns a snapshot of the connection, for graphs and reports.
    pub fn info(&self) -> Info {
        Info {
            state: self.state,
            cwnd: self.send.congestion.cwnd,
            ssthresh: self.send.congestion.ssthresh,
            recovering: self.send.congestion.recovering(),
            rto: self.send.rto.current(),
            srtt: self.send.rto.smoothed().map(|(srtt, _)| srtt),
            rttvar: self.send.rto.smoothed().map(|(_, rttvar)| rttvar),
            flight: self.send.flight(),
            window: self.send.window,
            mss: self.send.mss,
            retransmissions: self.send.retransmissions,
            timeouts: self.send.timeouts,
            fast_retransmits: self.send.fast_retransmits,
            probes: self.send.probes_sent,
        }
    }

    // --- timers ----------------------------------------------------------------------------------------------------

    /// Returns when the caller must call `timeout`; `None` if no timer runs.
    pub fn deadline(&self) -> Option<Instant> {
        Instant::sooner(Instant::sooner(self.send.timer.at(), self.receive.delayed), self.time_wait)
    }

    /// Handles the timers that are due at `now`. A call before the deadline has no effect.
    pub fn timeout(&mut self, now: Instant) {
        if self.receive.delayed.is_some_and(|at| at <= now) {
            self.receive.delayed = None;
            self.receive.due = true;
        }
        if self.time_wait.is_some_and(|at| at <= now) {
            self.end(Ended::Finished);
        }
        let waited = self.send.timer != Timer::Off;
        if self.send.timeout(now) {
            self.end(Ended::TimedOut);
        } else if waited && self.send.timer == Timer::Off && !self.send.open {
            self.syn_due = true;
        }
        self.check();
    }

    // --- segments to send ------------------------------------------------------------------------------------------

    /// Returns the next segment to be sent, or `None` if no segment may be sent now. The caller repeats the call until
    /// `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Segment<'_>> {
        if self.reset.is_some() {
            return self.reset.take();
        }
        if std::mem::take(&mut self.syn_due) {
            return Some(self.syn(now));
        }
        if !self.state.synchronized() {
            return None;
        }
        if self.receive.duplicates > 0 {
            self.receive.duplicates -= 1;
            return Some(self.bare(now));
        }
        let blocks = Blocks::wire_len(self.blocks().as_slice().len()) as u32;
        if let Some(chunk) = self.send.next(now, blocks) {
            if chunk.fin {
                self.fin_sent();
            }
            let push = if chunk.last && !chunk.bytes.is_empty() { Flags::PSH } else { Flags::default() };
            let fin = if chunk.fin { Flags::FIN } else { Flags::default() };
            let header = self.segment(now, chunk.seq, push.with(fin));
            return Some(Segment { payload: self.send.bytes(chunk.bytes), ..header });
        }
        if self.receive.due {
            return Some(self.bare(now));
        }
        self.send.watch_window(now);
        None
    }

    fn fin_sent(&mut self) {
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    fn bare(&mut self, now: Instant) -> Segment<'static> {
        self.segment(now, self.send.bare(), Flags::default())
    }

    /// Returns a segment after the handshake, without its payload. The segment acknowledges, announces the window, and
    /// has the options that were agreed on.
    pub(crate) fn segment(&mut self, now: Instant, seq: Seq, flags: Flags) -> Segment<'static> {
        let sack = self.blocks();
        self.receive.acknowledged();
        let ack = self.receive.next;
        let timestamps = self.clocks.as_mut().map(|clocks| clocks.stamp(now, ack));
        let options = Options { timestamps, sack, ..Options::default() };
        Segment { options, ..self.plain(seq, flags) }
    }

    pub(crate) fn plain(&mut self, seq: Seq, flags: Flags) -> Segment<'static> {
        Segment {
            src_port: self.local.port(),
            dst_port: self.remote.port(),
            seq,
            ack: self.receive.next,
            flags: flags.with(Flags::ACK),
            window: self.receive.announce(),
            ..Segment::default()
        }
    }

    /// Returns the SACK blocks: first data that arrived twice, then data beyond gaps. As many blocks are returned as
    /// fit beside the timestamps and one byte of payload (RFC 2018, section 3; RFC 2883, section 4).
    #[inline]
    fn blocks(&self) -> Blocks {
        let nothing = !self.receive.has_gap() && self.receive.duplicate.is_none();
        if nothing || !self.sack { Blocks::default() } else { self.blocks_beyond() }
    }

    #[inline(never)] // keeps the fast path for segments in order small
    fn blocks_beyond(&self) -> Blocks {
        let fin = self.receive.fin.filter(|_| !self.receive.finished);
        let beyond = self.receive.beyond.blocks(fin);
        let mut blocks: Blocks =
            self.receive.duplicate.into_iter().chain(beyond.as_slice().iter().copied()).collect();
        let room =
            options::MOST.min(self.send.agreed_mss as usize - 1).saturating_sub(self.send.overhead as usize);
        while Blocks::wire_len(blocks.as_slice().len()) > room {
            blocks.keep(blocks.as_slice().len() - 1);
        }
        blocks
    }

    // --- segments that arrive --------------------------------------------------------------------------------------

    /// Handles an ICMP report that there is no path for the sent segment `seq` (destination unreachable, codes 0 and
    /// 1). The report itself does not end the connection. It has an effect only with per-segment recovery, after a
    /// time-out, and if `seq` is the oldest unacknowledged number. Then one doubling of the time-out is undone (RFC
    /// 6069).
    pub fn unreachable(&mut self, now: Instant, seq: Seq) {
        if seq == self.send.una {
            self.send.unreachable(now);
        }
    }

    /// Handles a segment from the peer. The addresses and ports of the segment must be those of this connection.
    pub fn receive(&mut self, now: Instant, segment: &Segment<'_>) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.answered(now, segment),
            _ => self.arrived(now, segment),
        }
        self.check();
    }

    /// Checks that the sequence numbers of both halves are consistent, and panics if they are not.
    fn check(&self) {
        self.send.check();
        self.receive.check();
    }

    /// Handles a segment in the states after SYN-SENT, in the order of RFC 9293, section 3.10.7.4.
    fn arrived(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.state == State::SynReceived && self.repeated_syn(now, segment) {
            return;
        }
        if self.clocks.is_some() && !self.is_fresh(now, segment) {
            return;
        }
        // A closed window accepts no data, but the control bits and the acknowledgment of a segment are processed.
        let closed = self.receive.window() == 0 && segment.seq == self.receive.next;
        let known = self.is_known(segment);
        if !closed && !known && !self.receive.acceptable(segment.seq, segment.len()) {
            self.unacceptable(now, segment);
            return;
        }
        if segment.has(Flags::RST) {
            self.reset_came(now, segment);
            return;
        }
        if let (Some(clocks), Some(theirs)) = (&mut self.clocks, segment.options.timestamps) {
            clocks.note(now, segment, theirs); // RFC 7323, section 5.3, R3
        }
        if segment.has(Flags::SYN) {
            self.dispute(now); // RFC 5961, section 4
            return;
        }
        if !segment.has(Flags::ACK) || !self.acknowledged(now, segment) {
            return;
        }
        if !known {
            self.data(now, segment, closed);
        } else if !segment.is_empty() {
            self.unacceptable(now, segment);
        }
    }

    /// Returns whether a segment ends below the window, but not below the last acknowledgment sent, so that the peer may
    /// not have got an acknowledgment of it. Returns false without the profile's `echo_duplicates`.
    fn is_known(&self, segment: &Segment<'_>) -> bool {
        let Some(clocks) = self.clocks.as_ref().filter(|_| self.profile.echo_duplicates) else {
            return false;
        };
        let end = segment.seq.plus(segment.len());
        let old = segment.seq.before(self.receive.next) && !end.after(self.receive.next);
        let open = self.state.synchronized() && self.state != State::TimeWait;
        open && old && !end.before(clocks.last_ack)
    }

    /// Returns whether the timestamp of a segment permits its processing (RFC 7323). A segment without a timestamp is
    /// dropped (section 3.2). An old segment is only acknowledged (section 5.3, R1). Resets are exempt (section 5.2).
    fn is_fresh(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if segment.has(Flags::RST) {
            return true;
        }
        let Some(theirs) = segment.options.timestamps else { return false };
        let old = self.clocks.as_ref().is_some_and(|clocks| clocks.is_old(now, theirs));
        if old {
            self.unacceptable(now, segment);
        }
        !old
    }

    /// Handles a segment that is outside the window, or old by its timestamp. A FIN restarts TIME-WAIT, because our
    /// last acknowledgment may have been lost.
    fn unacceptable(&mut self, now: Instant, segment: &Segment<'_>) {
        if segment.has(Flags::RST) {
            return;
        }
        if self.time_wait.is_some() && segment.has(Flags::FIN) {
            self.time_wait = Some(self.quiet_after(now));
        }
        if segment.is_empty() {
            self.dispute(now);
        } else {
            self.receive.is_old(segment.seq, segment.len());
            self.owe_duplicate();
        }
    }

    fn owe_duplicate(&mut self) {
        self.receive.duplicates = self.receive.duplicates.saturating_add(1);
    }

    /// Makes an acknowledgment due for a peer whose segment contradicts our state, within the limit of RFC 5961,
    /// section 7.
    fn dispute(&mut self, now: Instant) {
        if self.challenge.allow(now) {
            self.owe_duplicate();
        }
    }

    /// Handles a reset (RFC 9293, section 3.10.7.4, second check; RFC 5961, section 3). A reset must have exactly the
    /// next expected number. Otherwise an acknowledgment is sent, so that the peer can confirm the reset.
    fn reset_came(&mut self, now: Instant, segment: &Segment<'_>) {
        if segment.seq == self.receive.next {
            self.end(if self.state == State::TimeWait { Ended::Finished } else { Ended::Reset });
        } else {
            self.dispute(now);
        }
    }

    /// Handles the acknowledgment of a segment (RFC 9293, section 3.10.7.4, fifth check). Returns whether the segment's
    /// data is to be processed.
    fn acknowledged(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if self.state == State::SynReceived && !self.completed(now, segment) {
            return false;
        }
        let (una, max) = (self.send.una, self.send.max);
        // RFC 5961, section 5: the acknowledged number was never sent, or is older than any window.
        if segment.ack.after(max) || segment.ack.before(una.minus(self.send.largest_window)) {
            self.dispute(now);
            return false;
        }
        let ack = Ack {
            seq: segment.seq,
            below: segment.ack,
            window: u32::from(segment.window) << self.send.scale,
            pure: segment.is_empty(),
            blocks: segment.options.sack.as_slice(),
            echoed: self.echoed(now, segment),
        };
        if segment.ack.before(una) {
            self.send.answer_overtaken(now, &ack);
            return true;
        }
        self.send.acknowledge(now, ack);
        if self.send.fin == Fin::Acknowledged {
            match self.state {
                State::FinWait1 => self.state = State::FinWait2,
                State::Closing => self.wait(now),
                State::LastAck => self.end(Ended::Finished),
                _ => {}
            }
        }
        true
    }

    /// Returns when the segment was sent whose timestamp `segment` echoes; `None` without a valid echo.
    pub(crate) fn echoed(&self, now: Instant, segment: &Segment<'_>) -> Option<Instant> {
        self.clocks.as_ref()?.left(now, segment.options.timestamps?)
    }

    /// Handles the data and the FIN of a segment (RFC 9293, section 3.10.7.4, seventh and eighth checks). `closed`: our
    /// window is closed.
    fn data(&mut self, now: Instant, segment: &Segment<'_>, closed: bool) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) || segment.is_empty()
        {
            return;
        }
        let fin = segment.has(Flags::FIN);
        if closed && !(fin && segment.payload.is_empty()) {
            self.owe_duplicate();
            return;
        }
        if let (Some(left), Some(growth)) = (self.echoed(now, segment), &mut self.receive.growth) {
            let echo = segment.options.timestamps.map_or(0, |stamps| stamps.echo);
            growth.echoed(now, segment.payload.len(), echo, left);
        }
        if segment.seq == self.receive.next && !segment.payload.is_empty() {
            self.receive.came_in_order(now, segment.payload.len(), self.send.rto.current());
        }
        if !self.receive.take(now, segment.seq, &segment.payload, fin) {
            return;
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now),
            _ => {}
        }
    }

    fn wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.send.timer = Timer::Off;
        self.time_wait = Some(self.quiet_after(now));
    }

    fn quiet_after(&self, now: Instant) -> Instant {
        self.profile.timing.after(now, self.profile.time_wait)
    }

    pub(crate) fn end(&mut self, why: Ended) {
        self.state = State::Closed;
        self.ended = Some(why);
        self.send.timer = Timer::Off;
        self.receive.delayed = None;
        self.time_wait = None;
        self.syn_due = false;
    }
}
