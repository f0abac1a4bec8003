use super::*;
use crate::association::asconf_out::outcomes;
use crate::message::Init;
use crate::secret_rng::SecretRng;
use crate::{ChangeOutcome, Config, PathState};
use auth::Key;
use std::sync::Arc;
use wire::Rng;

const US: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);

const fn peer(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, last)
}

/// Returns an open association with a peer at `peer(1)`. The first ASCONF of the peer has the serial number 100.
fn association(config: Config) -> Association {
    let rng = SecretRng::new(Key::new([1; 32]), Rng::new(1));
    let config = Arc::new(config);
    let ours = Init { tag: 1, tsn: 1, ..Init::default() };
    let mut it = Association::new(Instant::ZERO, &config, rng, ours, &[US], peer(1), (80, 4000));
    let theirs = Init { tag: 2, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: 100, parameters: Vec::new() };
    it.adopt(Instant::ZERO, &theirs, peer(1));
    it.established(Instant::ZERO, peer(1));
    it.events.clear();
    it
}

const fn wish(action: Action, correlation: u32, address: Ipv4Addr) -> Request {
    Request::Change { action, correlation, address: Address::Ipv4(address) }
}

/// Returns the answers of the association to an ASCONF from `src`.
fn answers(
    it: &mut Association,
    at: u64,
    src: Ipv4Addr,
    serial: u32,
    requests: &[Request],
) -> Vec<AsconfAck> {
    let taken = [peer(66)];
    let mut context = PacketContext::new(Instant::from_millis(at), src, US, &taken);
    let asconf = Asconf { serial, lookup: Address::Ipv4(peer(1)), requests: requests.to_vec() };
    it.asconf_came(&mut context, &asconf);
    let acks = context.replies.into_iter().map(|chunk| match chunk {
        Chunk::AsconfAck(ack) => ack,
        other => panic!("{other:?}"),
    });
    acks.collect()
}

/// Sends one request to the association. Returns the code of the refusal, or `None` if the request was applied.
fn verdict(it: &mut Association, serial: u32, request: &Request) -> Option<Code> {
    let before: Vec<Ipv4Addr> = it.paths.iter().map(|path| path.address).collect();
    let acks = answers(it, 0, peer(1), serial, std::slice::from_ref(request));
    assert_eq!((acks.len(), acks[0].serial), (1, serial));
    match &acks[0].responses[..] {
        [Response::Success(number)] if *number == request.correlation() => None,
        [Response::Refused(number, causes)] if *number == request.correlation() => {
            assert_eq!(causes[0].info, request.emit(), "the cause contains the request");
            let after: Vec<Ipv4Addr> = it.paths.iter().map(|path| path.address).collect();
            assert_eq!(before, after, "what is refused changes nothing");
            Some(causes[0].code)
        }
        other => panic!("{other:?}"),
    }
}

/// Each refused request gets the error cause that RFC 5061, sections 4.3 and 5.3, requires. The refusals of IPv6,
/// wildcard and non-unicast addresses are rules of this implementation.
#[test]
fn each_refusal_has_its_cause() {
    let mut it = association(Config::default());
    let any = Ipv4Addr::UNSPECIFIED;
    let v6 = |action| Request::Change { action, correlation: 5, address: Address::Ipv6([1; 16]) };
    let unknown = Request::Unknown { kind: 0xc00f, correlation: 6, value: vec![1, 2, 3, 4] };
    let cases = [
        (wish(Action::Delete, 1, peer(1)), Some(Code::DELETE_LAST_ADDRESS)),
        (wish(Action::SetPrimary, 2, peer(2)), Some(Code::UNRESOLVABLE_ADDRESS)),
        (wish(Action::Delete, 3, peer(2)), Some(Code::UNRESOLVABLE_ADDRESS)),
        (wish(Action::Add, 4, any), Some(Code::NO_AUTHORIZATION)),
        (wish(Action::Delete, 4, any), Some(Code::NO_AUTHORIZATION)),
        (wish(Action::SetPrimary, 4, any), Some(Code::NO_AUTHORIZATION)),
        (wish(Action::Add, 5, Ipv4Addr::BROADCAST), Some(Code::UNRESOLVABLE_ADDRESS)),
        (wish(Action::Add, 5, Ipv4Addr::new(224, 0, 0, 1)), Some(Code::UNRESOLVABLE_ADDRESS)),
        (wish(Action::Add, 5, peer(66)), Some(Code::NO_AUTHORIZATION)),
        (v6(Action::Add), Some(Code::UNRESOLVABLE_ADDRESS)),
        (unknown, Some(Code::UNRECOGNIZED_PARAMETERS)),
        (wish(Action::Add, 7, peer(2)), None),
        (wish(Action::Add, 8, peer(2)), None),
        (wish(Action::Delete, 9, peer(1)), Some(Code::DELETE_SOURCE_ADDRESS)),
        (wish(Action::Delete, 10, peer(2)), None),
    ];
    for (serial, (request, expected)) in (100..).zip(cases) {
        assert_eq!(verdict(&mut it, serial, &request), expected, "{request:?}");
    }
}

/// RFC 5061, section 5.2, E1 to E5: the next ASCONF is applied, the last one is answered again, and all others are
/// dropped.
#[test]
fn numbers_are_carried_out_once_and_in_order() {
    let mut it = association(Config::default());
    let add = [wish(Action::Add, 1, peer(2))];
    assert_eq!(answers(&mut it, 0, peer(1), 101, &add), [], "too early");
    assert_eq!(answers(&mut it, 0, peer(1), 99, &add), [], "before the first");
    let first = answers(&mut it, 0, peer(1), 100, &add);
    assert_eq!(first[0].responses, [Response::Success(1)]);
    let other = [wish(Action::Delete, 1, peer(2))];
    assert_eq!(answers(&mut it, 0, peer(1), 100, &other), first, "from memory, whatever it says now");
    assert_eq!(it.paths.len(), 2);
    answers(&mut it, 0, peer(1), 101, &other);
    assert_eq!(it.paths.len(), 1);
    assert_eq!(answers(&mut it, 0, peer(1), 100, &add), [], "that one is forgotten");
    assert_eq!(it.paths.len(), 1);
}

/// RFC 5061, section 5.3, F11: after an address was refused for lack of resources, no later address of the chunk is
/// added or deleted. At most `added_per_minute` unconfirmed addresses are added in a minute.
#[test]
fn addresses_have_a_bound_and_a_rate() {
    let mut it = association(Config { max_addresses: 3, ..Config::default() });
    let wishes = [
        wish(Action::Add, 1, peer(2)),
        wish(Action::Add, 2, peer(3)),
        wish(Action::Add, 3, peer(4)),
        wish(Action::Delete, 4, peer(2)),
    ];
    let responses = &answers(&mut it, 0, peer(1), 100, &wishes)[0].responses;
    let refused = |response: &Response| matches!(response, Response::Refused(_, causes) if causes[0].code == Code::RESOURCE_SHORTAGE);
    assert_eq!(responses.iter().map(refused).collect::<Vec<_>>(), [false, false, true, true]);
    let mut it = association(Config { added_per_minute: 2, ..Config::default() });
    let mut outcomes = Vec::new();
    for (serial, second) in (100..).step_by(2).zip([0, 10, 20, 59, 60, 61, 70]) {
        let add = answers(&mut it, second * 1000, peer(1), serial, &[wish(Action::Add, 1, peer(2))]);
        outcomes.push(!refused(&add[0].responses[0]));
        answers(&mut it, second * 1000, peer(1), serial + 1, &[wish(Action::Delete, 1, peer(2))]);
    }
    assert_eq!(outcomes, [true, true, false, false, true, false, true]);
}

/// One chunk from a new address replaces the only address of a peer (RFC 5061, section 5.3.2). SIGMA does so if the
/// old link is lost before the new one is up.
#[test]
fn a_single_address_is_replaced_from_the_new_one() {
    let mut it = association(Config::default());
    let wishes = [
        wish(Action::Add, 1, peer(2)),
        wish(Action::SetPrimary, 2, peer(2)),
        wish(Action::Delete, 3, peer(1)),
    ];
    let responses = &answers(&mut it, 0, peer(2), 100, &wishes)[0].responses;
    assert!(responses.iter().all(|response| matches!(response, Response::Success(_))), "{responses:?}");
    assert_eq!(it.paths.primary, peer(2));
    assert_eq!(it.paths.get(peer(2)).map(|path| path.state), Some(PathState::Unconfirmed));
    it.outbound.write(0, 0, false, b"not yet");
    assert_eq!(it.outbound.destination(&it.paths), None, "no end has proved that it exists");
    it.confirm(Instant::ZERO, peer(2));
    assert_eq!(it.outbound.destination(&it.paths), Some(peer(2)));
}

/// RFC 5061, section 5.1.1, C5: the answer fits one packet. All requests are processed, and the peer learns the
/// result of each request: requests without a response follow a refusal, and were refused.
#[test]
fn an_answer_that_is_too_long_is_cut() {
    let mut it = association(Config::default());
    let mut requests = vec![wish(Action::Add, 0, peer(2))];
    requests.extend((1..70).map(|number| wish(Action::Delete, number, peer(200))));
    requests.push(wish(Action::Add, 70, peer(3)));
    let mut context = PacketContext::new(Instant::ZERO, peer(1), US, &[]);
    let asconf = Asconf { serial: 100, lookup: Address::Ipv4(peer(1)), requests };
    it.outbox.clear();
    it.asconf_came(&mut context, &asconf);
    it.answer(context);
    let answer = it.outbox.pop_front().unwrap();
    assert!(20 + answer.bytes.len() <= 1500, "{}", answer.bytes.len());
    let packet = crate::message::Packet::parse(&answer.bytes).unwrap();
    let [Chunk::AsconfAck(ack)] = &packet.chunks[..] else { panic!("{packet:?}") };
    assert_eq!((ack.serial, &ack.responses[0]), (100, &Response::Success(0)));
    assert!((45..70).contains(&ack.responses.len()), "{}", ack.responses.len());
    assert!(it.paths.get(peer(3)).is_some(), "all requests are applied");
    let done: Vec<bool> =
        outcomes(&asconf, ack).iter().map(|outcome| *outcome == ChangeOutcome::Done).collect();
    assert_eq!(done, (0..=70).map(|number| number == 0 || number == 70).collect::<Vec<_>>());
}

/// A cut answer of any length reports the true result of each request. RFC 5061, section 5.1, A7: a request without a
/// response was applied if it precedes the first refusal, and refused if it follows the first refusal.
#[test]
fn an_answer_that_is_cut_says_the_same() {
    let verdicts = |bits: u32| (0..6_u32).map(move |number| bits & (1 << number) == 0);
    for bits in 0..64 {
        let requests: Vec<Request> = (0..6).map(|number| wish(Action::Add, number, peer(2))).collect();
        let asconf = Asconf { serial: 1, lookup: Address::Ipv4(peer(1)), requests };
        let response = |(request, done): (&Request, bool)| {
            let causes = || vec![Cause::new(Code::RESOURCE_SHORTAGE, request.emit())];
            let number = request.correlation();
            if done { Response::Success(number) } else { Response::Refused(number, causes()) }
        };
        let responses = asconf.requests.iter().zip(verdicts(bits)).map(response);
        let whole = AsconfAck { serial: 1, responses: responses.collect() };
        for most in (0..200).step_by(4) {
            let mut ack = whole.clone();
            ack.cut(most);
            let is_done = outcomes(&asconf, &ack).into_iter().map(|outcome| outcome == ChangeOutcome::Done);
            assert!(is_done.eq(verdicts(bits)), "{bits:b} in {most} bytes: {ack:?}");
        }
    }
    // One refusal of 28 bytes, and two successes of 8 bytes behind it.
    let refused = |number| Response::Refused(number, vec![Cause::new(Code::RESOURCE_SHORTAGE, [0; 16])]);
    let done = Response::Success;
    let whole = AsconfAck {
        serial: 1,
        responses: vec![done(1), refused(2), refused(3), done(4), refused(5), done(6)],
    };
    let cut = |most| {
        let mut ack = whole.clone();
        ack.cut(most);
        (Chunk::AsconfAck(ack.clone()).emit().len(), ack.responses)
    };
    assert_eq!(cut(116), (116, whole.responses.clone()), "it fits");
    assert_eq!(cut(112).1, [done(1), refused(2), refused(3), done(4), done(6)]);
    assert_eq!(cut(52), (52, vec![refused(2), done(4), done(6)]), "no less says the same");
    let mut all = AsconfAck { serial: 1, responses: vec![done(1), done(2)] };
    all.cut(16);
    assert_eq!(all.responses, [done(1)], "all are applied, also those without a report");
}

/// Returns whether every request was applied.
fn carried_out(it: &mut Association, serial: u32, wishes: &[Request]) -> bool {
    let acks = answers(it, 0, peer(1), serial, wishes);
    acks[0].responses.iter().all(|response| matches!(response, Response::Success(_)))
}

/// The peer requests an unconfirmed address as primary, deletes the address before it is confirmed, and adds it again
/// without a request for primary. The earlier request no longer counts.
#[test]
fn an_address_that_was_deleted_is_not_to_be_primary_when_it_comes_back() {
    let mut it = association(Config::default());
    let [add, prefer, delete] =
        [Action::Add, Action::SetPrimary, Action::Delete].map(|action| wish(action, 1, peer(2)));
    for (serial, wish) in (100..).zip([add.clone(), prefer, delete, add]) {
        assert!(carried_out(&mut it, serial, &[wish]));
    }
    it.confirm(Instant::ZERO, peer(2));
    assert_eq!(it.paths.primary, peer(1));
}

/// SET PRIMARY shows that the peer is about to leave the former address, so lost data are not sent there again. Data
/// to the new address begin with the initial window, even if an earlier use has left another window (RFC 9260, section
/// 7.2.1).
#[test]
fn data_begin_anew_at_a_new_primary_address_and_do_not_go_back() {
    let mut it = association(Config::default());
    assert!(carried_out(&mut it, 100, &[wish(Action::Add, 1, peer(2))]));
    it.confirm(Instant::ZERO, peer(2));
    let path = it.paths.get_mut(peer(2)).unwrap();
    (path.cwnd, path.ssthresh) = (40_000, 5000);
    assert!(carried_out(&mut it, 101, &[wish(Action::SetPrimary, 2, peer(2))]));
    assert_eq!(it.paths.for_data(), peer(2));
    assert_eq!(it.paths.get(peer(2)).map(|path| (path.cwnd, path.ssthresh)), Some((4404, u32::MAX)));
    assert_eq!(it.paths.for_retransmission(peer(2), true), peer(2));
    assert!(carried_out(&mut it, 102, &[wish(Action::SetPrimary, 3, peer(1))]));
    assert_eq!(it.paths.for_retransmission(peer(1), true), peer(1));
}

/// RFC 5061, section 5.3, F0: an answer to a request that was not sent ends the association. A late answer does not
/// end it.
#[test]
fn an_answer_to_what_was_not_asked_ends_the_association() {
    let mut it = association(Config::default());
    let answer = |serial| AsconfAck { serial, responses: Vec::new() };
    it.asconf_ack_came(Instant::ZERO, &answer(0));
    assert!(it.is_open());
    it.outbox.clear();
    it.asconf_ack_came(Instant::ZERO, &answer(1));
    assert!(!it.is_open());
    let abort = it.outbox.pop_front().unwrap();
    let packet = crate::message::Packet::parse(&abort.bytes).unwrap();
    let [Chunk::Abort { causes, .. }] = &packet.chunks[..] else { panic!("{packet:?}") };
    assert_eq!(causes[0].code, Code::ILLEGAL_ASCONF_ACK);
}

/// RFC 5061, section 5.1, A5: the answer to a change clears the errors of the path that the change went to, and of
/// the association.
#[test]
fn the_answer_to_a_change_clears_the_errors_of_its_path() {
    let mut it = association(Config::default());
    let introduced = |byte| crate::association::introduction(&it.config, 1, 1, [byte; 32], &[]);
    let keys = crate::keys::Keys::derive(&it.config, &introduced(1), &introduced(2));
    (it.keys, it.asconf_out.supported) = (keys, true);
    it.change(Instant::ZERO, &[crate::Change::Add(Ipv4Addr::new(10, 9, 1, 9))]).unwrap();
    while it.poll_transmit(Instant::ZERO).is_some() {}
    it.paths.get_mut(peer(1)).unwrap().errors = 3;
    it.errors = 3;
    it.asconf_ack_came(Instant::ZERO, &AsconfAck { serial: 1, responses: Vec::new() });
    assert_eq!((it.errors, it.paths.get(peer(1)).map(|path| path.errors)), (0, Some(0)));
}

/// Returns the answer of the association to an ASCONF. The answer must fit one packet.
fn answer_to(it: &mut Association, serial: u32, requests: &[Request]) -> AsconfAck {
    let mut context = PacketContext::new(Instant::ZERO, peer(1), US, &[]);
    let asconf = Asconf { serial, lookup: Address::Ipv4(peer(1)), requests: requests.to_vec() };
    it.outbox.clear();
    it.asconf_came(&mut context, &asconf);
    it.answer(context);
    let answer = it.outbox.pop_front().expect("an answer");
    assert!(
        20 + answer.bytes.len() <= usize::from(it.paths.get(peer(1)).unwrap().mtu),
        "{}",
        answer.bytes.len()
    );
    match &crate::message::Packet::parse(&answer.bytes).unwrap().chunks[..] {
        [Chunk::AsconfAck(ack)] => ack.clone(),
        other => panic!("{other:?}"),
    }
}

/// RFC 5061, section 5.2: each ASCONF is answered. The refusal of a request as long as a packet has its code, but no
/// copy of the request. Without an answer, the peer would repeat the ASCONF until the association ends.
#[test]
fn a_refusal_that_is_longer_than_a_packet_is_answered_without_what_it_repeats() {
    for (mtu, len) in [(1500, 1400), (1500, 9000), (600, 500)] {
        let mut it = association(Config::default());
        it.paths.get_mut(peer(1)).unwrap().mtu = mtu;
        let unknown = |number| Request::Unknown { kind: 0xc00f, correlation: number, value: vec![7; len] };
        let requests = [wish(Action::Add, 1, peer(2)), unknown(2), wish(Action::Add, 3, peer(3)), unknown(4)];
        let ack = answer_to(&mut it, 100, &requests);
        let asconf = Asconf { serial: 100, lookup: Address::Ipv4(peer(1)), requests: requests.to_vec() };
        let refused = |code| ChangeOutcome::Refused(code);
        let unrecognized = refused(Some(Code::UNRECOGNIZED_PARAMETERS));
        assert_eq!(
            outcomes(&asconf, &ack),
            [ChangeOutcome::Done, unrecognized, ChangeOutcome::Done, refused(None)],
            "{mtu} {len}"
        );
        assert_eq!(answer_to(&mut it, 100, &requests), ack, "it comes again");
        assert!(it.paths.get(peer(3)).is_some());
    }
}

/// The number of applied requests is at most the number that an answer can report. Further requests are refused.
#[test]
fn more_requests_than_an_answer_has_room_for_are_refused() {
    let mut it = association(Config::default());
    let mut requests = vec![wish(Action::Delete, 0, peer(200))];
    requests.extend((1..400).map(|number| wish(Action::SetPrimary, number, peer(1))));
    requests.push(wish(Action::Add, 400, peer(2)));
    let ack = answer_to(&mut it, 100, &requests);
    let asconf = Asconf { serial: 100, lookup: Address::Ipv4(peer(1)), requests };
    let done: Vec<bool> =
        outcomes(&asconf, &ack).iter().map(|outcome| *outcome == ChangeOutcome::Done).collect();
    let told = done.iter().filter(|done| **done).count();
    assert!((150..180).contains(&told), "{told}");
    assert_eq!(done, (0..=400).map(|number| number > 0 && number <= told).collect::<Vec<_>>());
    assert!(it.paths.get(peer(2)).is_none());
}
