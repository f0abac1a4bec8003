//! Plays scripts to roles and nodes, and checks the laws after each step.

use crate::laws::player::{Arrival, Script, Step, Talk};
use crate::laws::serving::Served;
use node::{
    Act, Action, CommandId, Effect, FailedAct, Input, MirrorAct, Node, Outbox, PuntReason, Rng, Role, Rx,
    StreamId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use table::map::{MapKey, MapPolicy, MapPort, MapRoute};
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, Packet, PacketId, tunnel};

/// The largest number of effects of one input, because each input of a script is small.
const MOST_EFFECTS: usize = 1_000;

/// A violation: the number of the law, and a description.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) law: u8,
    pub(crate) what: String,
}

/// The subject of a test: a role alone, or a node with one role.
pub(crate) trait Subject {
    fn give(&mut self, now: Instant, input: Input<'_>) -> Vec<Effect>;
    fn deadline(&self) -> Option<Instant>;
    fn holds(&self, each: &mut dyn FnMut(PacketId));
    /// Returns the whole state of the subject as text.
    fn show(&self) -> String;
    /// Returns the number by which a driver knows a stream; `id` is the number that the role gave it.
    fn stream(&self, id: StreamId) -> StreamId;
    /// Returns whether the effects of the last step caused further effects without end.
    fn ran_away(&self) -> bool {
        false
    }
    /// Returns whether the subject is a role without a node. Then the script does what a node does itself: it reports
    /// idle routes, and requests streams.
    fn is_alone(&self) -> bool;
}

pub(crate) struct Alone {
    role: Box<dyn Role>,
    out: Outbox,
}

impl Alone {
    pub(crate) fn new(role: Box<dyn Role>) -> Self {
        Self { role, out: Outbox::default() }
    }
}

impl Subject for Alone {
    fn give(&mut self, now: Instant, input: Input<'_>) -> Vec<Effect> {
        self.role.handle(now, input, &mut self.out);
        self.out.drain_effects().collect()
    }
    fn deadline(&self) -> Option<Instant> {
        self.role.deadline()
    }
    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.role.holds(each);
    }
    fn show(&self) -> String {
        format!("{:?} {:?}", self.role, self.role.status())
    }
    fn stream(&self, id: StreamId) -> StreamId {
        id
    }
    fn is_alone(&self) -> bool {
        true
    }
}

pub(crate) struct Within {
    node: Node,
    out: Outbox,
    ran_away: bool,
}

impl Within {
    /// Returns a node with a mirror, so that the node checks after each step that it has reported each change of its
    /// rules.
    pub(crate) fn new(mut node: Node) -> Self {
        node.begin_mirror();
        Self { node, out: Outbox::default(), ran_away: false }
    }
}

/// Returns whether an entry of the rules survives the conversion to its form in a kernel map.
fn fits_a_map(act: &MirrorAct) -> bool {
    match *act {
        MirrorAct::Route(key, Some((found, used))) => {
            let reason = |code| match found.route.action {
                Action::Drop(reason) if reason.code() == code => Some(reason),
                _ => None,
            };
            let bytes = MapRoute::new(&found, used).to_bytes();
            MapKey::new(&key).read() == Ok(key)
                && MapRoute::from_bytes(bytes).read(reason) == Ok((found, used))
        }
        MirrorAct::IngressPolicy(port, Some(policy)) => {
            let bytes = MapPolicy::new(policy.0, &policy.1).to_bytes();
            MapPort::new(port).read() == Ok(port) && MapPolicy::from_bytes(bytes).read() == Ok(policy)
        }
        MirrorAct::Route(_, None)
        | MirrorAct::IngressPolicy(_, None)
        | MirrorAct::Address(..)
        | MirrorAct::Mtu(..) => true,
    }
}

impl Subject for Within {
    fn give(&mut self, now: Instant, input: Input<'_>) -> Vec<Effect> {
        match input {
            Input::Stored(_) => self.node.resume(now, 1, &mut self.out),
            Input::Failed(fault) if matches!(fault.act, FailedAct::Store(_)) => {
                self.node.withdraw(now, &fault.why, &mut self.out);
            }
            other => self.node.handle(now, other, &mut self.out),
        }
        self.ran_away = self.out.take_runaway().is_some();
        while let Some(act) = self.node.next_mirror_act() {
            assert!(fits_a_map(&act), "{act:?}");
        }
        std::iter::from_fn(|| self.out.next_act()).map(|(_, act)| Effect::Do(act)).collect()
    }
    fn deadline(&self) -> Option<Instant> {
        self.node.deadline()
    }
    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.node.holds(each);
    }
    fn show(&self) -> String {
        format!("{:?} {:?}", self.node, self.node.status())
    }
    fn ran_away(&self) -> bool {
        self.ran_away
    }
    fn stream(&self, id: StreamId) -> StreamId {
        if id.0 >= StreamId::DRIVER { id } else { StreamId(id.0 | 1 << 16) }
    }
    fn is_alone(&self) -> bool {
        false
    }
}

/// Plays one script to two instances, and checks the laws for both.
pub(crate) fn play<S: Subject>(one: S, two: S, talk: &Talk, rng: Rng, steps: usize) -> Result<(), Broken> {
    let mut bench = Bench { pair: [one, two], now: Instant::ZERO, served: Served::default() };
    let mut script = Script::new(talk, rng);
    for _ in 0..steps {
        let subject = &bench.pair[0];
        let step = script.next(bench.now, subject.deadline(), subject.is_alone());
        let effects = bench.step(&step)?;
        script.heed(&effects);
    }
    Ok(())
}

/// Plays one script and collects the effects, without checking the laws.
pub(crate) fn watch<S: Subject>(
    subject: S,
    talk: &Talk,
    rng: Rng,
    steps: usize,
    seen: &mut BTreeSet<String>,
) {
    let mut bench = Bench { pair: [subject], now: Instant::ZERO, served: Served::default() };
    let mut script = Script::new(talk, rng);
    for _ in 0..steps {
        let step = script.next(bench.now, bench.pair[0].deadline(), true);
        let effects = bench.carry_out(&step).swap_remove(0);
        script.heed(&effects);
        seen.extend(effects.iter().map(|effect| format!("{effect:?}")));
    }
}

struct Bench<S, const N: usize> {
    pair: [S; N],
    now: Instant,
    served: Served,
}

impl<S: Subject> Bench<S, 2> {
    fn step(&mut self, step: &Step) -> Result<Vec<Effect>, Broken> {
        let before = self.pair.each_ref().map(Subject::show);
        let held = kept(&self.pair[0]);
        let effects = catch_unwind(AssertUnwindSafe(|| self.carry_out(step)));
        let Ok(mut effects) = effects else { return broken(3, step, "panicked") };
        let after = self.pair.each_ref().map(Subject::show);
        if matches!(step, Step::Early(_)) && (after != before || !effects[0].is_empty()) {
            return broken(1, step, &format!("{:?}, {} is now {}", effects[0], before[0], after[0]));
        }
        if effects[0] != effects[1] || after[0] != after[1] {
            return broken(4, step, &format!("{effects:?}, {after:?}"));
        }
        if matches!(step, Step::Due(_)) && self.pair[0].deadline().is_some_and(|due| due <= self.now) {
            return broken(2, step, &format!("still due at {:?}", self.pair[0].deadline()));
        }
        let effects = effects.swap_remove(0);
        if self.pair[0].ran_away() || effects.len() > MOST_EFFECTS {
            return broken(9, step, &format!("{} effects of one input", effects.len()));
        }
        let is_noted = !effects.is_empty() || after[0] != before[0];
        if self.pair[0].is_alone() {
            heeds_failure(step, is_noted, &effects)?; // a node fails all records together, and at the first step
        }
        answered(step, &effects)?;
        self.accounted(step, held, &effects)?;
        if let Err(what) = self.served.judge(step, &effects) {
            return broken(8, step, &what);
        }
        Ok(effects)
    }

    /// Checks law 6: each copy of a packet that was held or received is still held, or has left.
    fn accounted(&self, step: &Step, mut owed: Copies, effects: &[Effect]) -> Result<(), Broken> {
        if let Step::Packet(_, packet) = step {
            *owed.entry(packet.id).or_default() += 1;
        }
        let mut seen = kept(&self.pair[0]);
        for id in effects.iter().filter_map(gone) {
            *seen.entry(id).or_default() += 1;
        }
        match owed.iter().find(|(id, count)| seen.get(id).is_none_or(|seen| seen < *count)) {
            Some((id, _)) => broken(6, step, &format!("{id:?} vanished; {effects:?}")),
            None => Ok(()),
        }
    }
}

impl<S: Subject, const N: usize> Bench<S, N> {
    fn carry_out(&mut self, step: &Step) -> Vec<Vec<Effect>> {
        match step {
            Step::Wait(at) | Step::Early(at) | Step::Due(at) => self.now = *at,
            _ => {}
        }
        let now = self.now;
        self.pair.iter_mut().map(|subject| give(subject, now, step)).collect()
    }
}

fn give(subject: &mut impl Subject, now: Instant, step: &Step) -> Vec<Effect> {
    match step {
        Step::Wait(_) => Vec::new(),
        Step::Early(_) | Step::Due(_) => subject.give(now, Input::Timeout),
        Step::Start(boot) => subject.give(now, Input::Start(boot)),
        Step::Packet(arrival, packet) => receive(subject, now, *arrival, packet.clone()),
        Step::Link(iface, link) => subject.give(now, Input::Link(*iface, *link)),
        Step::Idle(key, used) => subject.give(now, Input::Idle(*key, *used)),
        Step::Stream(id, event) => {
            let id = subject.stream(*id);
            subject.give(now, Input::Stream(id, *event))
        }
        Step::Command(id, command) => subject.give(now, Input::Command(*id, command)),
        Step::Serve(id, op) => subject.give(now, Input::Serve(*id, op.clone())),
        Step::Stored(key) => subject.give(now, Input::Stored(key)),
        Step::Failed(fault) => subject.give(now, Input::Failed(fault)),
        Step::Wall(wall) => subject.give(now, Input::Wall(*wall)),
        Step::Notification(news) => subject.give(now, Input::Notification(news)),
    }
}

/// Gives a packet to the subject. A role without a node gets no packet with a malformed header, because a node would
/// drop the packet.
fn receive(subject: &mut impl Subject, now: Instant, arrival: Arrival, packet: Packet) -> Vec<Effect> {
    let Arrival { iface, why } = arrival;
    // A node opens a tunnel before its route gives the packet to a role.
    if subject.is_alone()
        && why == PuntReason::Action
        && let Ok((outer, inner)) = tunnel::decapsulate(&packet.bytes)
    {
        let packet = Packet { bytes: inner.into_owned(), ..packet };
        return match Rx::parse(iface, why, &packet) {
            Ok(rx) => {
                let rx = Rx { tunnel: Some((outer.src, outer.dst)), ..rx };
                subject.give(now, Input::Packet(rx, packet))
            }
            Err(malformed) => vec![Effect::Discard(iface, packet, malformed.into())],
        };
    }
    match Rx::parse(iface, why, &packet) {
        Ok(rx) => subject.give(now, Input::Packet(rx, packet)),
        Err(malformed) if subject.is_alone() => vec![Effect::Discard(iface, packet, malformed.into())],
        Err(_) => {
            let unread = Header::new(0, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
            subject.give(now, Input::Packet(Rx::new(iface, why, unread), packet))
        }
    }
}

type Copies = BTreeMap<PacketId, usize>;

fn kept(subject: &impl Subject) -> Copies {
    let mut copies = Copies::new();
    subject.holds(&mut |id| *copies.entry(id).or_default() += 1);
    copies
}

/// Returns the packet that an effect sends, passes on or discards.
fn gone(effect: &Effect) -> Option<PacketId> {
    match effect {
        Effect::Send(_, packet)
        | Effect::Pass(_, packet)
        | Effect::Discard(_, packet, _)
        | Effect::Do(Act::Transmit(_, packet) | Act::Drop(_, packet, _) | Act::SendInCell(_, _, packet)) => {
            Some(packet.id)
        }
        _ => None,
    }
}

/// Checks law 10: a failure must have a consequence, which is not the same request again. A driver would fail that
/// request again.
fn heeds_failure(step: &Step, is_noted: bool, effects: &[Effect]) -> Result<(), Broken> {
    let Step::Failed(fault) = step else { return Ok(()) };
    if !is_noted {
        return broken(10, step, "nothing follows");
    }
    let is_asked_again = |effect: &Effect| match (effect, &fault.act) {
        (Effect::Do(Act::Store(key, _)), FailedAct::Store(failed)) => key.ends_with(failed),
        (Effect::Do(Act::Address(iface, address, is_added)), act) => {
            *act == FailedAct::Address(*iface, *address, *is_added)
        }
        _ => false,
    };
    if effects.iter().any(is_asked_again) { broken(10, step, "asked for again at once") } else { Ok(()) }
}

/// Checks law 5: each command gets one answer, and no other input gets one.
fn answered(step: &Step, effects: &[Effect]) -> Result<(), Broken> {
    let answers: Vec<CommandId> = effects
        .iter()
        .filter_map(|effect| if let Effect::Do(Act::Answer(id, _)) = effect { Some(*id) } else { None })
        .collect();
    let due: Vec<CommandId> = if let Step::Command(id, _) = step { vec![*id] } else { Vec::new() };
    if answers == due { Ok(()) } else { broken(5, step, &format!("answers {answers:?}, due {due:?}")) }
}

fn broken<T>(law: u8, step: &Step, what: &str) -> Result<T, Broken> {
    Err(Broken { law, what: format!("{step:?}: {what}") })
}
