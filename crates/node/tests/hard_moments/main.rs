//! Difficult situations of protocols that are not built yet, or not completely. The tests show that the types of the
//! core can express them.
//! Each file here has a small role that implements only what its situation needs. Each file in `transcripts/` is a
//! script with the output of a real node. `docs/hard-moments.md` has the results.
//!
//! With `WAYFARE_BLESS=1` in the environment the output is recorded again. Commit the output only if you can explain
//! every line that changed.

#![cfg(test)]

mod agents;
mod page;
mod pending;
mod reverse;
mod sctp;
mod teller;
#[macro_use]
#[path = "../../../../tests/support/told.rs"]
mod told;

use std::fs;
use teller::tell;

transcripts! {
    in "hard_moments/transcripts", told by tell;
    a_page_goes_where_the_host_was_last_heard: "page-with-a-cache" of page::station(true);
    a_page_without_a_cache_goes_everywhere: "page-without-a-cache" of page::station(false);
    a_paged_host_announces_itself_first: "page-at-the-host" of page::mobile();
    an_association_moves_while_data_are_lost: "sctp-address-change" of sctp::moment();
    a_pending_visitor_is_brought_what_his_last_agent_kept: "pending-visitor" of pending::new_agent();
    the_last_agent_sends_what_it_kept_first: "pending-last-agent" of pending::last_agent();
    two_agents_share_a_port: "agents-on-one-port" of agents::moment();
    a_reverse_tunnel_is_checked_by_a_role: "reverse-by-role" of reverse::by_role();
    a_reverse_tunnel_is_checked_by_the_table: "reverse-by-table" of reverse::by_table();
}

/// A transcript without the output lines must differ from the complete one, and the run must produce these lines again.
#[test]
fn a_transcript_that_tells_something_else_is_not_equal() {
    let told = fs::read_to_string(folder().join("agents-on-one-port.txt")).unwrap();
    let script: Vec<&str> = told.lines().filter(|line| !line.starts_with(' ')).collect();
    let script = script.join("\n") + "\n";
    assert_ne!(script, told);
    assert_eq!(tell(&script, &agents::moment()), told);
}
