//! Growth of the congestion window, one SACK at a time (RFC 9260, section 7.2).

use crate::harness::mn;
use crate::script::Script;
use sctp::Config;
use sctp::message::{Chunk, Sack};

/// Returns the number of acknowledged chunks until the window grows in congestion avoidance. `duplicates`: SACKs
/// report a chunk as a duplicate. `alone`: only one separate SACK, before the others, reports the duplicate.
fn chunks_until_growth(duplicates: bool, alone: bool) -> u32 {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    script.write(80);
    script.says();
    script.wait_for_timer();
    assert_eq!(script.says(), [format!("{} DATA 0", mn(1))], "it is sent again");
    let mut next = 4;
    script.sack(next, &[]);
    script.says();
    let sack = |script: &mut Script, next: u32, duplicates: bool| {
        let again = if duplicates { vec![script.tsn] } else { Vec::new() };
        let cumulative = script.tsn.wrapping_add(next).wrapping_sub(1);
        let sack = Sack { cumulative, a_rwnd: 100_000, gaps: Vec::new(), duplicates: again };
        script.hears(mn(1), vec![Chunk::Sack(sack)]).unwrap();
        script.says();
    };
    while script.path(mn(1)).cwnd <= script.path(mn(1)).ssthresh {
        next += 1;
        assert!(next < 70);
        sack(&mut script, next, false);
    }
    let (cwnd, begun) = (script.path(mn(1)).cwnd, next);
    if alone {
        sack(&mut script, next, duplicates);
    }
    while script.path(mn(1)).cwnd == cwnd {
        next += 1;
        assert!(next < 70);
        sack(&mut script, next, duplicates && !alone);
    }
    next - begun
}

/// RFC 9260, section 7.2.2: `partial_bytes_acked` includes the bytes of a chunk that is reported as a duplicate. The
/// chunk counts once, even if several SACKs report it.
#[test]
fn what_arrived_twice_counts_towards_the_window() {
    for alone in [false, true] {
        let without = chunks_until_growth(false, alone);
        assert_eq!(chunks_until_growth(true, alone), without - 1, "alone: {alone}");
    }
}
