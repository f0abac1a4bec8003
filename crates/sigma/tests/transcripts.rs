//! The protocol as inputs and outputs of roles. Each file in `transcripts/` is a script of inputs to one role. The
//! numbered, indented lines of a file are the recorded outputs of the role. The test compares them with the present
//! outputs.
//!
//! ```text
//! 20ms peer                        the other end of the association (peer) receives all packets, and answers
//! 20ms unheard                     the peer receives all packets, but its answers are lost
//! 30ms peer add 10.1.6.100         the peer asks to add an address; further changes of the same message may follow
//! 0ms  peer allows 1               the peer accepts this number of unconfirmed addresses in one minute
//! 30ms stranger add 10.1.6.100     a host without the key asks to add an address
//! 40ms program writes 2000         a program of this host writes 2000 bytes
//! 45ms host refuses air 10.1.8.100/24    the operating system cannot add an address; `keeps`: cannot remove it
//! 50ms manager located 10.1.7.100  the location manager answers the last query
//! 50ms manager noerror             the location manager answers the last update
//! 60ms update mn at=10.1.6.100     a mobile node updates its address
//! 70ms wait                        no input arrives; timers run
//! ```
//!
//! The peer is an endpoint of crates/sctp, as in the roles. So these tests check only the roles. The tests of
//! crates/sctp and the tests with usrsctp check SCTP. With `WAYFARE_BLESS=1` in the environment, the test replaces the
//! recorded outputs. Commit them only if you can explain each line that changed.

use crate::cast;
use crate::transcript;

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
