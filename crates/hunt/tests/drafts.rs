//! Tests that a draft is a valid scenario, and that a seed always gives the same draft and the same run.

#![cfg(test)]

use hunt::draft::Protocol;
use hunt::draw::{Size, draw};
use hunt::fault::{Fault, Spot, What};
use hunt::run::{facts, plan};
use hunt::write;

#[test]
fn every_draft_is_a_scenario() {
    for protocol in Protocol::ALL {
        for (seed, size) in (0..100).flat_map(|seed| [(seed, Size::SIMULATOR), (seed, Size::LINUX)]) {
            let draft = draw(protocol, seed, &size);
            if let Err(why) = plan(&draft) {
                panic!("{protocol}, seed {seed}: {why}\n{}", write::scenario(&draft));
            }
        }
    }
}

/// On Linux each seed takes a run in real time, so its scenario must be small.
#[test]
fn what_is_drawn_for_linux_is_small() {
    for protocol in Protocol::ALL {
        for seed in 1..=200 {
            let draft = draw(protocol, seed, &Size::LINUX);
            let (routers, hosts) = (draft.routers.len(), draft.hosts.len());
            assert!(routers <= 7 && (1..=3).contains(&hosts), "{protocol}, seed {seed}: {routers}, {hosts}");
            assert!(draft.last_change() < 40_000, "{protocol}, seed {seed}: {}", draft.last_change());
        }
    }
}

/// The loss of a fault is combined with the drawn loss of the link. When the fault ends, the link has only the drawn
/// loss.
#[test]
fn a_fault_adds_loss_to_a_link_and_takes_it_away_again() {
    let mut draft = draw(Protocol::MobileIp, 1, &Size::SIMULATOR);
    draft.core.loss = 1000;
    draft.faults = vec![Fault { at: 700, lasts: 300, what: What::Loss(Spot::Core, 100) }];
    let text = write::scenario(&draft);
    let event = |at: u64, loss: &str| {
        format!("[[event]]\nat = \"{at}ms\"\nkind = \"loss\"\nwire = \"internet\"\nloss = {loss}\n")
    };
    assert!(text.contains(&event(700, "0.109000")), "{text}");
    assert!(text.contains(&event(1000, "0.100000")), "{text}");
}

#[test]
fn a_seed_gives_one_scenario_and_one_run() {
    for protocol in Protocol::ALL {
        let draft = draw(protocol, 7, &Size::SIMULATOR);
        assert_eq!(draft, draw(protocol, 7, &Size::SIMULATOR));
        assert_ne!(draft, draw(protocol, 8, &Size::SIMULATOR));
        assert_eq!(facts(&draft, None).unwrap(), facts(&draft, None).unwrap());
    }
}

#[test]
fn every_planted_mistake_is_found() {
    for plant in hunt::plant::Plant::ALL {
        assert!(hunt::search::finds(plant, 200).is_some(), "{plant:?}");
    }
}

#[test]
fn protocols_have_names() {
    for protocol in Protocol::ALL {
        assert_eq!(protocol.name().parse::<Protocol>(), Ok(protocol));
    }
    assert_eq!(
        "tcp".parse::<Protocol>(),
        Err("there is no protocol `tcp`; allowed: cellular-ip, mobile-ip, sigma, indirect-tcp".to_owned())
    );
}

/// The judges receive the number of held packets and of packets under way from the ledger.
#[test]
fn judges_are_told_what_is_held_and_what_was_under_way() {
    let told = (1..=20).map(|seed| facts(&draw(Protocol::MobileIp, seed, &Size::SIMULATOR), None).unwrap());
    let told: Vec<_> = told.collect();
    assert!(told.iter().all(|facts| facts.most_open > 0));
    assert!(
        told.iter().any(|facts| facts.held > 0),
        "at one of them a packet is on its way when all is done"
    );
}
