use super::*;
use crate::config::{AgentCell, MobileNodeConfig};
use crate::message::{ALL_SYSTEMS, Advertisement, AgentFlags};
use wire::{Cell, Mac};

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const SECOND_HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);

fn home_agents() -> HomeAgents {
    let peer = |address| {
        let key = "000102030405060708090a0b0c0d0e0f";
        toml::from_str(&format!("address = '{address}'\nspi = 256\nkey = '{key}'")).unwrap()
    };
    let home = "10.1.0.7/16".parse().unwrap();
    HomeAgents::new(home, &peer(HOME_AGENT), &[peer(SECOND_HOME_AGENT)])
}

/// An agent of the tables: its name, address, prefix length (0: not advertised), preference and registration lifetime.
/// `home` and `home2` are the home agents, the first one in use. `A` and `B` are in different subnets, `a` is in the subnet of `A`, and `n` advertises no
/// prefix. `P` is preferred, and `S` offers short registrations.
const AGENTS: [(&str, Ipv4Addr, u8, i32, u16); 8] = [
    ("home", HOME_AGENT, 16, 0, 300),
    ("home2", SECOND_HOME_AGENT, 16, 1, 300),
    ("A", Ipv4Addr::new(10, 3, 0, 1), 24, 0, 300),
    ("a", Ipv4Addr::new(10, 3, 0, 2), 24, 0, 300),
    ("B", Ipv4Addr::new(10, 4, 0, 1), 24, 0, 300),
    ("n", Ipv4Addr::new(10, 5, 0, 1), 0, 0, 300),
    ("P", Ipv4Addr::new(10, 6, 0, 1), 24, 7, 300),
    ("S", Ipv4Addr::new(10, 7, 0, 1), 24, 0, 30),
];

fn name(address: Ipv4Addr) -> &'static str {
    AGENTS.iter().find(|(_, other, ..)| *other == address).unwrap().0
}

/// A mobile node that does what the policy decides, at once.
struct Walker {
    policy: Movement,
    home_first: bool,
    agents: Agents,
    signals: Signals,
    in_use: Option<Ipv4Addr>,
    triggered: bool,
    linked: Instant,
}

impl Walker {
    fn new(policy: Movement) -> Self {
        Self {
            policy,
            home_first: true,
            agents: Agents::default(),
            signals: Signals::default(),
            in_use: None,
            triggered: false,
            linked: Instant::ZERO,
        }
    }

    fn situation<'a>(&'a self, now: Instant, home_agents: &'a HomeAgents) -> Situation<'a> {
        Situation {
            now,
            policy: self.policy,
            home_first: self.home_first,
            home_agents,
            agents: &self.agents,
            signals: &self.signals,
            in_use: self.in_use,
            triggered: self.triggered,
            linked: self.linked,
            registered: self.in_use.is_some_and(|agent| !home_agents.has(agent)),
            lifetime: 300,
        }
    }

    fn decide(&mut self, now: Instant, occurrence: Occurrence) -> String {
        match self.situation(now, &home_agents()).decide(occurrence) {
            Decision::Stay(why) => format!("stay: {}", why.name()),
            Decision::Register(agent, why) => {
                self.in_use = Some(agent);
                format!("{}: {}", name(agent), why.name())
            }
            Decision::Search(why) => {
                self.in_use = None;
                format!("search: {}", why.name())
            }
        }
    }

    fn hear(&mut self, now: Instant, who: &str, sequence: u16) -> String {
        let (_, src, len, preference, registration_lifetime) =
            *AGENTS.iter().find(|(other, ..)| *other == who).unwrap();
        let is_home = src == HOME_AGENT;
        let advertisement = Advertisement {
            src,
            dst: ALL_SYSTEMS,
            registered_only: false,
            lifetime: 3,
            routers: vec![(src, preference)],
            sequence,
            registration_lifetime,
            flags: if is_home { AgentFlags::HOME } else { AgentFlags::FOREIGN },
            care_of: if is_home { Vec::new() } else { vec![src] },
            prefix_lengths: (len > 0).then(|| vec![len]),
            challenge: None,
        };
        let change = self.agents.hear(now, &advertisement, Mac([2, 0, 0, 0, 0, 1]), self.in_use);
        let decision = self.decide(now, Occurrence::Heard(src, change));
        self.triggered = false;
        decision
    }

    /// Returns the decisions about a table of events. A row has a time in milliseconds and an event: the name of an
    /// agent that is heard, `up`, `renewal` or `expiry`. The loss of the agent in use is an event of its own time.
    fn walk(&mut self, rows: &[(u64, &str)]) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        for (number, (at, event)) in (300u16..).zip(rows) {
            let now = Instant::from_millis(*at);
            while let Some(due) = self.agents.due().filter(|due| *due <= now) {
                let Some((lost, _)) = self.agents.expired(due) else { continue };
                if self.in_use == Some(lost) {
                    all.push((due.0 / 1_000_000, self.decide(due, Occurrence::AgentLost)));
                }
            }
            let decision = match *event {
                "up" => {
                    (self.triggered, self.linked) = (true, now);
                    continue;
                }
                "tick" => continue,
                // For example `A=-70 B=-65`: the radio reports the signals of the cells of these agents.
                signals if signals.contains('=') => {
                    for (who, dbm) in signals.split(' ').filter_map(|one| one.split_once('=')) {
                        let cell = AGENTS.iter().position(|(other, ..)| *other == who).unwrap();
                        self.signals.hear(now, Cell(cell as u16), dbm.parse().unwrap());
                    }
                    continue;
                }
                "renewal" => self.decide(now, Occurrence::RenewalDue),
                "expiry" => self.decide(now, Occurrence::Expired),
                restarted if restarted.ends_with('*') => self.hear(now, restarted.trim_end_matches('*'), 0),
                who => self.hear(now, who, number),
            };
            if decision != "stay: same_agent" {
                all.push((*at, decision));
            }
        }
        all
    }
}

fn check(policy: Movement, rows: &[(u64, &str)], expected: &[(u64, &str)]) {
    let decisions = Walker::new(policy).walk(rows);
    let decisions: Vec<_> = decisions.iter().map(|(at, what)| (*at, what.as_str())).collect();
    assert_eq!(decisions, expected, "{policy:?}");
}

/// A move from the cell of `A` to the cell of `B` at 2.3 s. The cells do not overlap.
const APART: [(u64, &str); 8] =
    [(0, "A"), (1000, "A"), (2000, "A"), (2500, "B"), (3500, "B"), (4500, "B"), (5500, "B"), (6500, "B")];

#[test]
fn in_cells_apart_a_lazy_policy_waits_for_the_end_of_the_advertisements_lifetime() {
    for policy in [Movement::Lcs, Movement::Pm] {
        let ignored = "stay: agent_alive";
        let expected =
            [(0, "A: no_agent"), (2500, ignored), (3500, ignored), (4500, ignored), (5000, "B: agent_lost")];
        check(policy, &APART, &expected);
    }
    check(Movement::Ecs, &APART, &[(0, "A: no_agent"), (2500, "B: new_agent")]);
    check(Movement::PmEager, &APART, &[(0, "A: no_agent"), (2500, "B: other_subnet")]);
    let waits = [2500, 3500, 4500].map(|at| (at, "stay: registration_holds"));
    let after = [5000, 5500, 6500].map(|at| (at, "stay: registration_holds"));
    check(Movement::Expiry, &APART, &[&[(0, "A: no_agent")], &waits[..], &after[..]].concat());
}

#[test]
fn with_expiry_the_next_renewal_turns_to_an_agent_that_is_alive() {
    let rows = [&APART[..], &[(8000, "renewal"), (8000, "B"), (9000, "renewal")]].concat();
    let mut walker = Walker::new(Movement::Expiry);
    let decisions = walker.walk(&rows);
    let last = decisions.iter().filter(|(at, _)| *at >= 8000).map(|(at, what)| (*at, what.as_str()));
    assert!(last.eq([(8000, "B: registration_ends"), (9000, "stay: agent_alive")]), "{decisions:?}");
    // Without another agent, the node searches.
    check(
        Movement::Expiry,
        &[(0, "A"), (4000, "renewal"), (4500, "B")],
        &[
            (0, "A: no_agent"),
            (3000, "stay: registration_holds"),
            (4000, "search: registration_ends"),
            (4500, "B: no_agent"),
        ],
    );
    // A registration whose lifetime has ended does not hold.
    check(
        Movement::Expiry,
        &[(0, "home"), (2500, "B"), (3500, "B")],
        &[(0, "home: no_agent"), (2500, "stay: registration_holds"), (3000, "B: agent_lost")],
    );
}

#[test]
fn in_cells_that_overlap_only_eager_policies_leave_an_agent_that_is_heard() {
    let rows =
        [(0, "A"), (500, "B"), (1000, "A"), (1500, "B"), (2000, "A"), (2500, "B"), (3500, "B"), (4500, "B")];
    check(
        Movement::Ecs,
        &rows,
        &[
            (0, "A: no_agent"),
            (500, "B: new_agent"),
            (1000, "stay: known_agent"),
            (2000, "stay: known_agent"),
        ],
    );
    check(
        Movement::PmEager,
        &rows,
        &[
            (0, "A: no_agent"),
            (500, "B: other_subnet"),
            (1000, "stay: known_agent"),
            (2000, "stay: known_agent"),
        ],
    );
    let ignored = [500, 1500, 2500, 3500, 4500].map(|at| (at, "stay: agent_alive"));
    check(Movement::Lcs, &rows, &[&[(0, "A: no_agent")], &ignored[..]].concat());
}

#[test]
fn with_pm_a_renewal_turns_to_a_heard_agent_of_another_subnet() {
    // `A` is no longer heard 1.5 s after its last advertisement.
    for (agent, at, expected) in [
        ("B", 1500, "stay: agent_alive"),
        ("B", 1501, "B: other_subnet"),
        ("a", 1501, "stay: agent_alive"),
        ("n", 1501, "stay: agent_alive"),
    ] {
        let rows = [(0, "A"), (900, agent), (at, "renewal")];
        check(Movement::Pm, &rows, &[(0, "A: no_agent"), (900, "stay: agent_alive"), (at, expected)]);
    }
    let rows = [(0, "A"), (900, "B"), (1501, "renewal")];
    check(
        Movement::Lcs,
        &rows,
        &[(0, "A: no_agent"), (900, "stay: agent_alive"), (1501, "stay: agent_alive")],
    );
}

#[test]
fn an_agent_of_the_same_subnet_is_not_new_and_prefix_matching_needs_both_prefixes() {
    let rows = [(0, "A"), (500, "a"), (600, "n"), (700, "B")];
    let first = (0, "A: no_agent");
    check(
        Movement::Ecs,
        &rows,
        &[first, (500, "stay: same_subnet"), (600, "n: new_agent"), (700, "B: new_agent")],
    );
    check(
        Movement::PmEager,
        &rows,
        &[first, (500, "stay: same_subnet"), (600, "stay: unknown_subnet"), (700, "B: other_subnet")],
    );
}

#[test]
fn a_ping_pong_is_followed_at_once_only_while_the_other_agent_has_expired() {
    // The node is in the cell of `B` from 2.2 s to 3.6 s, and from 7.4 s.
    let rows =
        [(0, "A"), (2000, "A"), (2500, "B"), (3500, "B"), (4000, "A"), (5000, "A"), (7000, "A"), (7500, "B")];
    check(
        Movement::Ecs,
        &rows,
        &[
            (0, "A: no_agent"),
            (2500, "B: new_agent"),
            (4000, "stay: known_agent"),
            (5000, "stay: known_agent"),
            (6500, "A: agent_lost"),
            (7500, "B: new_agent"),
        ],
    );
}

#[test]
fn the_home_agent_comes_first_if_so_configured() {
    let rows = [(0, "A"), (500, "home"), (600, "A"), (1000, "home")];
    for policy in [Movement::Lcs, Movement::Pm, Movement::PmEager, Movement::Ecs, Movement::Expiry] {
        let mut walker = Walker::new(policy);
        assert_eq!(walker.walk(&rows)[1], (500, "home: at_home".to_owned()), "{policy:?}");
    }
    for (policy, expected) in [
        (Movement::Lcs, "stay: agent_alive"),
        (Movement::Ecs, "home: new_agent"),
        (Movement::Expiry, "stay: registration_holds"),
    ] {
        let mut walker = Walker { home_first: false, ..Walker::new(policy) };
        assert_eq!(walker.walk(&rows)[1], (500, expected.to_owned()), "{policy:?}");
    }
}

/// The home link is where any home agent is heard, also one that is not in use. At home, the node does not change between them.
#[test]
fn a_home_agent_that_is_not_in_use_shows_the_home_link_too() {
    let rows = [(0, "A"), (500, "home2"), (600, "home"), (1000, "home2"), (1100, "home")];
    for policy in [Movement::Lcs, Movement::Pm, Movement::PmEager, Movement::Ecs, Movement::Expiry] {
        check(
            policy,
            &rows,
            &[(0, "A: no_agent"), (500, "home2: at_home"), (600, "stay: at_home"), (1100, "stay: at_home")],
        );
    }
    // Of two, the one in use is chosen, although the other one has a higher preference.
    let mut walker = Walker::new(Movement::Lcs);
    walker.walk(&[(0, "A"), (2500, "home2"), (2600, "home")]);
    walker.in_use = Some(AGENTS[2].1);
    let decision = walker.decide(Instant::from_millis(3000), Occurrence::AgentLost);
    assert_eq!(decision, "home: agent_lost");
}

#[test]
fn a_restart_and_a_link_that_comes_up_make_the_node_register_again() {
    for policy in [Movement::Lcs, Movement::Pm, Movement::PmEager, Movement::Ecs, Movement::Expiry] {
        check(
            policy,
            &[(0, "A"), (1000, "A*"), (1500, "up"), (2000, "A"), (2100, "up"), (2500, "B"), (2600, "B")],
            &[(0, "A: no_agent"), (1000, "A: agent_restarted"), (2000, "A: link_up"), (2500, "B: link_up")],
        );
    }
}

#[test]
fn of_several_agents_the_one_that_is_heard_and_preferred_is_chosen() {
    // `A` is lost at 3 s.
    for (rows, expected) in [
        // Preference counts more than the time of the last advertisement, if that is not too long ago.
        (&[(0, "A"), (2000, "P"), (2500, "B"), (3000, "tick")][..], "P: agent_lost"),
        (&[(0, "A"), (1400, "P"), (2500, "B"), (3000, "tick")][..], "B: agent_lost"),
        // A longer registration counts more too.
        (&[(0, "A"), (2500, "B"), (2600, "S"), (3000, "tick")][..], "B: agent_lost"),
        (&[(0, "A"), (2500, "B"), (2600, "n"), (3000, "tick")][..], "n: agent_lost"),
        // The home agent counts most. It is not chosen before, because it came first.
        (&[(0, "A"), (3000, "tick")][..], "search: agent_lost"),
    ] {
        let mut walker = Walker::new(Movement::Lcs);
        let decisions = walker.walk(rows);
        assert_eq!(decisions.last(), Some(&(3000, expected.to_owned())), "{rows:?}");
    }
}

#[test]
fn a_registration_that_has_ended_is_not_repeated_through_an_agent_that_is_gone() {
    check(
        Movement::Expiry,
        &[(0, "A"), (4000, "expiry"), (4100, "A")],
        &[
            (0, "A: no_agent"),
            (3000, "stay: registration_holds"),
            (4000, "search: registration_ends"),
            (4100, "A: no_agent"),
        ],
    );
    check(Movement::Lcs, &[(0, "A"), (1000, "expiry")], &[(0, "A: no_agent"), (1000, "stay: agent_alive")]);
}

/// With `expiry`, a node stays with a home agent that it does not hear any more until the next renewal. It registers with another home
/// agent as soon as it hears that one.
#[test]
fn another_home_agent_takes_the_place_of_one_that_is_lost() {
    let mut walker = Walker::new(Movement::Expiry);
    let decisions = walker.walk(&[(0, "home"), (1000, "home2")]);
    assert_eq!(decisions.last(), Some(&(1000, "stay: at_home".to_owned())));
    let now = Instant::from_millis(3500);
    let lost = walker.agents.expired(now).map(|(agent, _)| agent);
    assert_eq!((lost, walker.in_use), (Some(HOME_AGENT), Some(HOME_AGENT)));
    assert_eq!(walker.hear(now, "home2", 400), "home2: at_home");
}

/// An agent that has expired may have restarted, and may have lost its visitors.
#[test]
fn with_expiry_an_agent_that_is_heard_again_is_registered_with() {
    check(
        Movement::Expiry,
        &[(0, "A"), (4000, "A"), (4500, "A")],
        &[(0, "A: no_agent"), (3000, "stay: registration_holds"), (4000, "A: new_agent")],
    );
}

#[test]
fn each_reason_has_another_name() {
    use Why as W;
    let all = [
        W::NoAgent,
        W::SameAgent,
        W::AgentRestarted,
        W::LinkUp,
        W::AtHome,
        W::NewAgent,
        W::KnownAgent,
        W::SameSubnet,
        W::OtherSubnet,
        W::UnknownSubnet,
        W::AgentAlive,
        W::AgentLost,
        W::RegistrationHolds,
        W::RegistrationEnds,
        W::NoReply,
        W::Denied,
    ];
    let names: std::collections::BTreeSet<_> = all.iter().map(|why| why.name()).collect();
    assert_eq!(names.len(), all.len());
}

/// Returns the decisions of a node with a hysteresis of 5 dB. Each agent is in a separate cell.
fn by_signal(policy: Movement, rows: &[(u64, &str)]) -> Vec<(u64, String)> {
    let text = "
        address = '10.1.0.7/16'
        interface = 'air'
        home_agent = { address = '10.1.0.2', spi = 256, key = '000102030405060708090a0b0c0d0e0f' }
        signal_hysteresis = 5
    ";
    let mut config: MobileNodeConfig = toml::from_str(text).unwrap();
    let cells = AGENTS.iter().zip(0u16..).map(|((_, agent, ..), cell)| AgentCell { agent: *agent, cell });
    config.agent_cells = cells.collect();
    let mut walker = Walker { signals: Signals::new(&config), ..Walker::new(policy) };
    walker.walk(rows)
}

/// The node changes to another agent when its signal is stronger by the hysteresis, also to an agent that it has heard
/// before. It does not return before the signal of the former agent is stronger by the hysteresis.
#[test]
fn with_a_hysteresis_an_eager_node_waits_for_a_stronger_signal() {
    let rows = [
        (0, "A=-60 B=-66"),
        (100, "A"),
        (200, "B"),
        (1100, "A=-60 B=-60"),
        (1150, "A"),
        (1200, "B"),
        (2000, "A=-80 B=-40"),
        (2100, "A"),
        (2200, "B"),
        (2300, "A"),
        (3000, "A=-40 B=-80"),
        (3050, "A=-40 B=-80"),
        (3100, "A"),
    ];
    for policy in [Movement::Ecs, Movement::PmEager] {
        let decisions = by_signal(policy, &rows);
        let decisions: Vec<_> = decisions.iter().map(|(at, what)| (*at, what.as_str())).collect();
        let expected = [
            (100, "A: no_agent"),
            (200, "stay: below_hysteresis"),
            (1200, "stay: below_hysteresis"),
            (2200, "B: stronger_signal"),
            (2300, "stay: below_hysteresis"),
            (3100, "A: stronger_signal"),
        ];
        assert_eq!(decisions, expected, "{policy:?}");
    }
}

/// Signals do not keep a node with an agent that is lost, and do not delay a change that the link has made. Without
/// reports, the policy decides alone. Lazy policies do not change for a stronger signal.
#[test]
fn a_signal_decides_only_while_both_agents_are_heard() {
    let decisions = |policy, rows: &[(u64, &str)]| {
        by_signal(policy, rows).into_iter().map(|(at, what)| format!("{at} {what}")).collect::<Vec<_>>()
    };
    let lost =
        [(0, "A=-60 B=-66"), (100, "A"), (200, "B"), (1900, "A=-60 B=-66"), (3050, "B"), (3150, "tick")];
    assert_eq!(
        decisions(Movement::Ecs, &lost),
        [
            "100 A: no_agent",
            "200 stay: below_hysteresis",
            "3050 stay: below_hysteresis",
            "3100 B: agent_lost"
        ]
    );
    // The cell of the agent in use is silent, and so is the agent: no signal is weaker.
    let fallen = [(0, "A=-60 B=-66"), (100, "A"), (200, "B"), (1900, "B=-66"), (2050, "B"), (2150, "B")];
    assert_eq!(
        decisions(Movement::Ecs, &fallen),
        [
            "100 A: no_agent",
            "200 stay: below_hysteresis",
            "2050 stay: known_agent",
            "2150 B: stronger_signal"
        ]
    );
    let link = [(0, "A=-60 B=-66"), (100, "A"), (150, "up"), (200, "B")];
    assert_eq!(decisions(Movement::Ecs, &link), ["100 A: no_agent", "200 B: link_up"]);
    let silent = [(0, "A=-60"), (100, "A"), (200, "B")];
    assert_eq!(decisions(Movement::Ecs, &silent), ["100 A: no_agent", "200 B: new_agent"]);
    let old = [(0, "A=-60 B=-66"), (2100, "A"), (2200, "B")];
    assert_eq!(decisions(Movement::Ecs, &old), ["2100 A: no_agent", "2200 B: new_agent"]);
    let lazy = [(0, "A=-90 B=-40"), (100, "A"), (200, "B")];
    assert_eq!(decisions(Movement::Lcs, &lazy), ["100 A: no_agent", "200 stay: agent_alive"]);
    let home = [(0, "A=-60 home=-66"), (100, "A"), (200, "home"), (900, "A=-90 home=-50"), (1000, "home")];
    assert_eq!(
        decisions(Movement::Lcs, &home),
        ["100 A: no_agent", "200 stay: below_hysteresis", "1000 home: at_home"]
    );
    // `pm` changes at a renewal if it no longer hears its agent.
    let renewal = |signal| [(0, "A"), (1000, "B"), (1700, signal), (1800, "renewal")];
    assert_eq!(
        decisions(Movement::Pm, &renewal("A=-60 B=-62")).last().unwrap(),
        "1800 stay: below_hysteresis"
    );
    assert_eq!(decisions(Movement::Pm, &renewal("A=-62 B=-50")).last().unwrap(), "1800 B: other_subnet");
}

/// B was heard before the link came up, and may be out of reach. Before the link came up, B would be chosen.
#[test]
fn an_agent_that_was_heard_before_the_link_came_up_may_be_out_of_reach() {
    for (rows, expected) in [
        (&[(0, "A"), (900, "B"), (1000, "n"), (1200, "up"), (1300, "n")][..], None),
        (&[(0, "A"), (900, "B"), (1000, "n")], Some("B")),
        (&[(0, "A"), (900, "B"), (1000, "n"), (1200, "up"), (1300, "n"), (1400, "B")], Some("B")),
    ] {
        let mut walker = Walker::new(Movement::Lcs);
        walker.walk(rows);
        walker.in_use = AGENTS.iter().find(|(other, ..)| *other == "n").map(|(_, address, ..)| *address);
        let other = walker.situation(Instant::from_millis(1500), &home_agents()).other_in_reach().map(name);
        assert_eq!(other, expected, "{rows:?}");
    }
}
