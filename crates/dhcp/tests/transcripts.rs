//! The protocol as inputs and effects. Each file in `transcripts/` is a script of inputs to one role. The numbered,
//! indented lines of a file are the recorded effects of the role. The test compares them with the present effects.
//!
//! ```text
//! 20ms offer lease=60            the server offers 10.3.0.100 for 60 s, in the transaction of the client's last message
//! 20ms ack from=rogue            another server grants it
//! 30ms request from=b            the client b requests an address
//! 40ms used 10.3.0.100           a host that is no client answers an ARP request for the address
//! 50ms wait                      no input arrives; timers run
//! ```
//!
//! With `WAYFARE_BLESS=1` in the environment, the test writes the present effects to the files. Commit them only if you
//! can explain each line that changed.

use crate::cast;
use crate::transcript;

use cast::Dhcp;
use transcript::Teller;

transcripts! {
    in "transcripts", told by Teller::<Dhcp>::tell;
    a_client_acquires_keeps_and_releases_an_address: "client-lease";
    a_client_whose_lease_is_not_extended_rebinds_and_loses_it: "client-rebinds";
    a_client_declines_an_address_that_another_host_uses: "client-conflicts";
    a_client_probes_with_the_numbers_of_the_rfc: "client-probes";
    a_client_begins_again_when_its_link_comes_up: "client-link";
    a_client_refuses_what_it_did_not_ask_for: "client-refusals";
    a_client_repeats_its_messages: "client-repeats";
    a_server_grants_extends_and_ends_leases: "server-leases";
    a_server_grants_no_address_that_a_host_answers_for: "server-conflicts";
    a_server_refuses_with_a_reason: "server-refusals";
}
