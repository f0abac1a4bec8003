//! The protocol as inputs and effects. Each file in `transcripts/` is a script. Its numbered, indented lines are the
//! role's recorded answers, which are compared with the present ones.
//!
//! ```text
//! 20ms update left S        a semisoft route-update comes from the neighbor called left
//! 30ms data left            data from the mobile host, by the neighbor called left
//! 40ms down [ef]            data to the mobile host, from the uplink
//! 50ms wait                 no input; timers run
//! 60ms hear                 data to the mobile host, by its radio
//! 65ms request              an update-request to the mobile host
//! 67ms too-big              an ICMP error: data of the mobile host were too big for a wire
//! 68ms too-big another's    an ICMP error: data of another host were too big for a wire
//! 70ms heard 3 -60          the mobile host's radio hears cell 3 at -60 dBm
//! 80ms clock -5             the role's clock is set to 5 s less than it was at the start
//! ```
//!
//! With `WAYFARE_BLESS=1` in the environment, the present answers are written to the files. Commit them only if you can
//! explain every line that changed.

use crate::cast::CellularIp;
use crate::transcript::Teller;
use std::fs;

transcripts! {
    in "transcripts", told by Teller::<CellularIp>::tell;
    a_hard_handoff_announces_first_and_sends_what_waited_second: "mobile-hard";
    a_semisoft_handoff_visits_first_and_stays_silent_until_it_moves: "mobile-semisoft";
    a_handoff_that_cannot_be_is_refused_or_undone: "mobile-refused";
    a_host_whose_data_are_refused_answers_the_request: "mobile-requested";
    a_host_whose_data_are_too_big_sends_route_updates_all_the_same: "mobile-too-big";
    a_radio_that_carries_nothing_is_tuned_to_the_strongest_station_heard: "mobile-lost";
    a_first_attach_that_fails_locks_nobody_out: "mobile-lost-first";
    a_radio_without_signal_reports_is_tuned_again: "mobile-lost-unheard";
    a_radio_without_signal_reports_is_tuned_to_each_station_in_turn: "mobile-lost-three";
    the_last_handoff_order_wins: "mobile-last-order";
    a_clock_that_is_set_does_not_lock_the_host_out: "mobile-clock";
    route_updates_make_mappings_and_data_keep_them: "station-mappings";
    a_station_without_semisoft_moves_the_host_at_once: "station-without-semisoft";
    the_crossover_sends_both_ways_and_delays_the_new: "crossover-bicast";
    data_from_the_new_leg_flush_what_waits: "crossover-data-flush";
    a_third_neighbor_takes_the_place_of_the_second: "crossover-third-neighbor";
    the_old_leg_can_cancel: "crossover-cancel";
    no_packet_waits_longer_than_the_hold_time: "crossover-hold";
    a_full_pool_shortens_the_delay_and_drops_nothing: "crossover-pool";
    exempt_codepoints_overtake_the_delay_device: "crossover-exempt";
    the_old_leg_may_expire_first: "crossover-primary-expires";
    the_new_leg_may_expire_first: "crossover-secondary-expires";
    control_packets_end_at_the_gateway: "gateway";
}

/// The comparison detects an answer that was removed from a transcript.
#[test]
fn a_transcript_that_tells_something_else_is_not_equal() {
    let told = fs::read_to_string(folder().join("crossover-bicast.txt")).unwrap();
    let answers: Vec<usize> =
        told.lines().enumerate().filter(|(_, line)| line.starts_with(' ')).map(|(at, _)| at).collect();
    assert!(answers.len() > 10);
    for at in answers {
        let without: Vec<&str> =
            told.lines().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| line).collect();
        assert_ne!(Teller::<CellularIp>::tell(&without.join("\n")), without.join("\n") + "\n");
    }
}
