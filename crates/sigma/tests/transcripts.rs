//! The protocol told by what goes in and what comes out. Each file in `transcripts/` is a script; the numbered,
//! indented lines are what the role answered, and are compared with what it answers now.
//!
//! ```text
//! 20ms peer                        the other end of the association gets all that was sent, and answers
//! 20ms unheard                     the same, but its answers are lost
//! 30ms peer add 10.1.6.100         it asks for a change of its addresses, and for another in the same message, if named
//! 0ms  peer allows 1               it takes so many addresses a minute that are not proved
//! 30ms stranger add 10.1.6.100     the same by somebody who has not the key
//! 40ms program writes 2000         a program of this host
//! 45ms host refuses air 10.1.8.100/24    this host's own stack does not take an address; `keeps`: does not give it up
//! 50ms manager located 10.1.7.100  the location manager answers the question that was asked last
//! 50ms manager noerror             the location manager answers the update that was sent last
//! 60ms update mn at=10.1.6.100     a mobile node tells the location manager
//! 70ms wait                        nothing comes in; timers run
//! ```
//!
//! The other end is SCTP of this house too: what these tell is what a role makes of it. That it is SCTP, crates/sctp
//! and the tests with usrsctp show. With `WAYFARE_BLESS=1` in the environment the answers are written down anew. Commit
//! them only if you can explain every line that changed.

#![cfg(test)]

mod cast;
#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;

use cast::Sigma;
use transcript::Teller;

transcripts! {
    in "transcripts", told by Teller::<Sigma>::tell;
    a_mobile_node_prepares_switches_tells_and_lets_go: "mobile-node-overlap";
    a_mobile_node_whose_link_broke_says_everything_at_once: "mobile-node-break";
    a_mobile_node_goes_back_before_it_has_let_go: "mobile-node-ping-pong";
    a_mobile_node_says_which_radio_has_an_address_now: "mobile-node-other-radio";
    a_mobile_node_that_is_refused_keeps_its_address_and_asks_again: "mobile-node-refused";
    a_mobile_node_whose_host_refuses_an_address_does_without: "mobile-node-address-failed";
    a_mobile_node_asks_where_a_peer_is_that_may_have_moved_too: "mobile-node-meeting";
    a_mobile_node_repeats_what_it_tells_its_location_manager: "mobile-node-registration";
    a_correspondent_proves_an_address_before_it_sends_there: "correspondent-changes";
    a_correspondent_believes_only_the_peer: "correspondent-refusals";
    a_location_manager_stores_before_it_answers: "location-manager-updates";
    a_location_manager_refuses_with_a_reason: "location-manager-refusals";
}
