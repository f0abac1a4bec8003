//! Tests that the options are drawn independently, and that shrinking reaches the defaults.

use super::*;

/// Each option has its default in some scenarios, and each other value in some.
#[test]
fn each_value_of_an_option_is_drawn() {
    let all: Vec<Options> = (0..300).map(draw).collect();
    let share = |is: fn(&Options) -> bool| {
        let number = all.iter().filter(|options| is(options)).count();
        assert!((3..297).contains(&number), "{number} of 300");
    };
    share(|options| options.care_of == CareOf::Agent);
    share(|options| options.care_of == CareOf::Acquired);
    share(|options| matches!(options.care_of, CareOf::Configured(_)));
    share(|options| options.reverse == Some(Style::Direct));
    share(|options| options.reverse == Some(Style::Encapsulating));
    share(|options| options.is_reverse_required);
    share(|options| options.has_bindings);
    share(|options| options.overlaps);
    share(|options| options.has_nonces);
    share(|options| options.has_challenge);
    share(|options| options.is_home_first);
    share(|options| options.backup == Backup::Missing);
    share(|options| options.backup == Backup::Needed);
    share(|options| options.has_homes);
    share(|options| options.has_cables);
    share(|options| options.tunnel == Tunnel::Minimal);
    share(|options| options.tunnel == Tunnel::Gre);
    share(|options| options.has_agent_keys);
    share(|options| options.is_single_binding);
    share(|options| options.hysteresis.is_some());
    share(|options| options.is_smooth);
    share(|options| options.has_cache);
    share(|options| options.has_distributed_keys);
    share(|options| options.interfaces.is_some());
    share(|options| options.has_special_tunnels);
    share(|options| options.is_private);
    share(|options| options.late.is_some());
    share(|options| options.late.is_some() && options.has_cache);
    share(|options| options.buffer.is_some_and(|buffer| buffer.bytes.is_some()));
    share(|options| options.buffer.is_some_and(|buffer| buffer.max_age_ms.is_some()));
    assert!(all.iter().all(|options| options.has_cache || !options.is_private));
    let interfaces = || all.iter().filter_map(|options| options.interfaces);
    assert!(interfaces().any(|found| found.is_second_preferred && found.is_make_before_break));
    assert!(interfaces().any(|found| !found.is_second_preferred));
    assert!(interfaces().any(|found| !found.is_make_before_break));
    assert!(
        all.iter().all(|options| options.is_smooth && !options.has_nonces || !options.has_distributed_keys)
    );
    for when in [KeepWhen::Always, KeepWhen::LinkDown, KeepWhen::Request] {
        assert!(
            all.iter().filter_map(|options| options.buffer).any(|buffer| buffer.when == when),
            "{when:?}"
        );
    }
    assert!(all.iter().all(|options| options.is_smooth || options.buffer.is_none()));
    assert!(all.iter().all(|options| options.overlaps || options.hysteresis.is_none()));
    assert!(all.iter().all(|options| !(options.overlaps && options.has_cables)));
    share(|options| options.reverse.is_some() && options.is_co_located());
}

#[test]
fn every_option_is_shrunk_to_its_default() {
    for seed in 0..100 {
        let mut options = draw(seed);
        while let Some(simpler) = options.simpler().into_iter().skip(1).find(|simpler| *simpler != options) {
            options = simpler;
        }
        assert_eq!(options, Options::DEFAULT);
    }
}

/// A clock that is wrong has an offset or a drift that a host's configuration permits.
#[test]
fn some_clocks_are_wrong() {
    let clocks: Vec<Clock> = (0..300).map(|seed| clock(seed, "r0")).collect();
    let wrong = clocks.iter().filter(|clock| **clock != Clock::default()).count();
    assert!((60..180).contains(&wrong), "{wrong} of 300");
    assert!(clocks.iter().all(|clock| clock.drift.abs() <= 200 && clock.offset_ms.abs() <= 4_000_000));
}
