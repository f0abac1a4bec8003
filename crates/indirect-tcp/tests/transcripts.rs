//! Transcripts of the protocol. Each file in `transcripts/` is a script. The numbered, indented lines are the role's
//! outputs, and are compared with its present outputs.
//!
//! ```text
//! 20ms host greets previous=right entries=1     the mobile host greets; it comes from the right router, with a connection
//! 20ms host calls                               the mobile host calls for a connection
//! 30ms far opened                               the socket to the fixed host is open
//! 40ms right points entries=1                   the right router sends a forward pointer: the host is there
//! 50ms right says commit                        the right router sends a frame on the connection between routers
//! 60ms gateway left                             (mobile host under test) the left router is the gateway from now on
//! 70ms wait                                     no input comes; timers run
//! ```
//!
//! With `WAYFARE_BLESS=1` in the environment the outputs are written anew. Commit them only if you can explain every
//! line that changed.

use crate::cast;
use crate::transcript;

use cast::IndirectTcp;
use transcript::Teller;

transcripts! {
    in "transcripts", told by Teller::<IndirectTcp>::tell;
    a_router_connects_for_its_host: "router-call";
    an_old_router_owns_a_connection_until_it_was_taken: "router-leaving";
    a_new_router_says_nothing_before_all_of_it_is_there: "router-arriving";
    what_cannot_be_moved_is_told_to_both_ends: "router-failures";
    a_host_greets_calls_and_moves: "mobile-host";
    a_host_whose_router_is_silent_or_late: "mobile-host-failures";
}
