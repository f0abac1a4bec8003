//! What is drawn is a scenario, the same for the same seed, and runs the same.

#![cfg(test)]

use hunt::draft::Protocol;
use hunt::draw::draw;
use hunt::run::{facts, plan};
use hunt::write;

#[test]
fn every_draft_is_a_scenario() {
    for protocol in Protocol::ALL {
        for seed in 0..100 {
            let draft = draw(protocol, seed);
            if let Err(why) = plan(&draft) {
                panic!("{protocol}, seed {seed}: {why}\n{}", write::scenario(&draft));
            }
        }
    }
}

#[test]
fn a_seed_gives_one_scenario_and_one_run() {
    for protocol in Protocol::ALL {
        let draft = draw(protocol, 7);
        assert_eq!(draft, draw(protocol, 7));
        assert_ne!(draft, draw(protocol, 8));
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
        Err("allowed: cellular-ip, mobile-ip, sigma, indirect-tcp".to_owned())
    );
}
