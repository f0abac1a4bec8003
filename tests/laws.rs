//! Checks the laws of [`node::Role`] for every role that a configuration can name.
//!
//! The harness plays random scripts to two instances of a role side by side. A script has valid, changed and garbage
//! packets, gaps of time, links that change, streams, commands, and ends of route lifetimes. Each role is tested twice:
//! alone, where the laws are strictest, and inside a node, as it is used.
//!
//! For every law except law 7 there is a role that violates the law, and the harness must detect that. The compiler
//! checks law 7.

#[path = "laws/harness.rs"]
mod harness;
#[path = "laws/player.rs"]
mod player;
#[path = "laws/rows.rs"]
mod rows;
#[path = "laws/serving.rs"]
mod serving;
#[path = "laws/toys.rs"]
mod toys;

use harness::{Alone, Broken, Subject, Within};
use node::{Act, Effect, Input, Node, Rng, Role};
use player::Talk;
use rows::{ROWS, Row};
use serving::{Manner, Server};
use std::collections::BTreeSet;
use std::hash::Hash;
use toys::{Fault, Toy};

/// The number of scripts for each role, and of steps in each script.
const SCRIPTS: u64 = 150;
const STEPS: usize = 80;

fn play<S: Subject>(make: impl Fn() -> S, talk: &Talk, scripts: u64) -> Result<(), Broken> {
    (0..scripts).try_for_each(|seed| {
        let result = harness::play(make(), make(), talk, Rng::new(seed), STEPS);
        result.map_err(|broken| Broken { what: format!("script {seed}: {}", broken.what), ..broken })
    })
}

fn role(row: &Row) -> Box<dyn Role> {
    let interfaces = row.interfaces();
    row.config()
        .on_host(&row.surroundings())
        .build(node::config::Interfaces(&interfaces), &Rng::new(1))
        .unwrap()
}

fn alone(row: &Row) -> Alone {
    Alone::new(role(row))
}

fn within(row: &Row) -> Within {
    Within::new(Node::new(vec![role(row)], row.addresses()))
}

#[test]
fn every_role_keeps_the_laws_alone() {
    for row in ROWS {
        play(|| alone(row), &row.talk(), SCRIPTS).unwrap_or_else(|broken| panic!("{}: {broken:?}", row.kind));
    }
}

#[test]
fn every_role_keeps_the_laws_within_a_node() {
    for row in ROWS {
        play(|| within(row), &row.talk(), SCRIPTS)
            .unwrap_or_else(|broken| panic!("{}: {broken:?}", row.kind));
    }
}

#[test]
fn no_kind_of_role_is_forgotten() {
    let known: BTreeSet<&str> = roles::RoleConfig::KINDS.into_iter().collect();
    assert_eq!(known, ROWS.iter().map(|row| row.kind).collect());
    for row in ROWS {
        assert_eq!(row.config().kind(), row.kind);
    }
}

/// A script in which the role refuses everything would not test the laws.
#[test]
fn scripts_reach_what_a_role_is_there_for() {
    for row in ROWS {
        let mut seen = BTreeSet::new();
        for seed in 0..SCRIPTS {
            harness::watch(alone(row), &row.talk(), Rng::new(seed), STEPS, &mut seen);
        }
        for wanted in row.reached {
            assert!(seen.iter().any(|effect| effect.contains(wanted)), "{}: never {wanted}", row.kind);
        }
    }
}

fn law_broken_by(fault: Fault) -> Option<u8> {
    let talk = Toy::talk();
    let hook = std::panic::take_hook();
    if fault == Fault::Panics {
        std::panic::set_hook(Box::new(|_| {})); // an expected panic is not printed
    }
    let result = play(|| Alone::new(Box::new(Toy::new(fault))), &talk, SCRIPTS);
    std::panic::set_hook(hook);
    result.err().map(|broken| broken.law)
}

#[test]
fn a_lawful_toy_is_let_pass_alone_and_within_a_node() {
    assert_eq!(law_broken_by(Fault::None), None);
    let node = || Within::new(Node::new(vec![Box::new(Toy::new(Fault::None))], Vec::new()));
    assert!(play(node, &Toy::talk(), SCRIPTS).is_ok());
}

#[test]
fn a_role_that_acts_before_its_time_breaks_law_1() {
    assert_eq!(law_broken_by(Fault::ActsEarly), Some(1));
    assert_eq!(law_broken_by(Fault::CountsEarly), Some(1), "without a visible effect");
}

#[test]
fn a_role_whose_deadline_stays_breaks_law_2() {
    assert_eq!(law_broken_by(Fault::StaysDue), Some(2));
    assert_eq!(law_broken_by(Fault::IsLate), Some(2), "it refuses to act at the very instant it announced");
}

#[test]
fn a_role_that_panics_breaks_law_3() {
    assert_eq!(law_broken_by(Fault::Panics), Some(3));
}

#[test]
fn a_role_with_a_will_of_its_own_breaks_law_4() {
    assert_eq!(law_broken_by(Fault::Differs), Some(4));
}

#[test]
fn a_role_that_answers_never_twice_or_unasked_breaks_law_5() {
    for fault in [Fault::NoAnswer, Fault::TwoAnswers, Fault::OthersAnswer] {
        assert_eq!(law_broken_by(fault), Some(5), "{fault:?}");
    }
}

#[test]
fn a_role_that_loses_a_packet_breaks_law_6() {
    for fault in [Fault::Swallows, Fault::SwallowsForeign, Fault::ForgetsHeld, Fault::HidesHeld] {
        assert_eq!(law_broken_by(fault), Some(6), "{fault:?}");
    }
}

#[test]
fn a_role_whose_effects_have_no_bound_breaks_law_9() {
    assert_eq!(law_broken_by(Fault::Endless), Some(9));
    let node = || Within::new(Node::new(vec![Box::new(Toy::new(Fault::Endless))], Vec::new()));
    assert_eq!(play(node, &Toy::talk(), SCRIPTS).err().map(|broken| broken.law), Some(9));
}

#[test]
fn a_role_that_does_not_heed_a_failure_breaks_law_10() {
    for fault in [Fault::IgnoresFailure, Fault::AsksAgain] {
        assert_eq!(law_broken_by(fault), Some(10), "{fault:?}");
    }
}

fn law_broken_by_server(manner: Manner) -> Option<u8> {
    let result = play(|| Alone::new(Box::new(Server::new(manner))), &Server::talk(), SCRIPTS);
    result.err().map(|broken| broken.law)
}

#[test]
fn a_role_that_serves_badly_breaks_law_8() {
    assert_eq!(law_broken_by_server(Manner::Good), None);
    for manner in [Manner::OfStrangers, Manner::AfterTheEnd, Manner::Unasked, Manner::TooMuch] {
        assert_eq!(law_broken_by_server(manner), Some(8), "{manner:?}");
    }
}

/// Checks law 7: inputs and effects are data. The compiler refuses a type that is not data, such as a channel, a
/// closure or a file: see the doc tests of this crate.
#[test]
fn inputs_and_effects_are_nothing_but_data() {
    fn plain<T: Clone + Eq + Hash + std::fmt::Debug + Send>() {}
    plain::<Input<'static>>();
    plain::<Act>();
    plain::<Effect>();
}
