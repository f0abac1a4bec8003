//! Tests of the associations of Mobile IP, and of keys that need a counterpart.

use crate::Scenario;
use crate::file::{BUILT_IN, Setting, warnings};
use std::collections::BTreeSet;
use trace::What;
use wire::{Instant, PacketId};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const OTHER: &str = "ff0102030405060708090a0b0c0d0e0f";
const SMOOTH: &str = "mobile-ip/smooth-handoff";
const ROUTE: &str = "mobile-ip/route-optimization";

fn all(settings: &[&str]) -> Vec<Setting> {
    settings.iter().map(|text| text.parse().unwrap()).collect()
}

/// Returns the warnings of a scenario that is accepted with these settings.
fn warned(name: &str, settings: &[&str]) -> String {
    let (file, text) = Scenario::find(name).unwrap();
    Scenario::plan(&file, &text, &all(settings), 1).unwrap_or_else(|error| panic!("{error}"));
    let all = warnings(&file, &text, &all(settings)).unwrap();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn refused(name: &str, settings: &[&str]) -> String {
    let (file, text) = Scenario::find(name).unwrap();
    Scenario::plan(&file, &text, &all(settings), 1).unwrap_err().to_string()
}

/// A security association of 10.0.0.2 with the home agent 10.1.0.1, or of another pair.
fn peer(address: &str, more: &str) -> String {
    format!("[{{ address = \"{address}\", spi = 300, key = \"{KEY}\"{more} }}]")
}

#[test]
fn built_in_scenarios_have_no_warnings() {
    for (name, text) in BUILT_IN {
        let found = warnings(name, text, &[]).unwrap();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// An agent may know more peers than there are, and a mobile node may have a home agent that does not answer. A correspondent is
/// only informed, so it must be a host.
#[test]
fn a_peer_that_is_no_host_is_a_warning_or_refused() {
    let settings = |key: &str| format!("{key}={}", peer("10.99.0.1", ""));
    let refusal = refused(ROUTE, &[&settings("home-agent.correspondents")]);
    for expected in [
        "with home-agent.correspondents=",
        "`host.home.role[0].correspondents[0].address`: no host of the scenario has the address 10.99.0.1; write that of a host",
        "those with the role `mobile-ip/correspondent` have: 10.",
    ] {
        assert!(refusal.contains(expected), "{expected}: {refusal}");
    }
    let home = format!("mobile-node.home_agent={{ address = \"10.99.0.1\", spi = 256, key = \"{KEY}\" }}");
    for (name, setting, path, role) in [
        (SMOOTH, home.clone(), "host.mobile.role[0].home_agent", "home-agent"),
        (SMOOTH, settings("mobile-node.backup_home_agents"), "backup_home_agents[0]", "home-agent"),
        (SMOOTH, settings("mobile-node.foreign_agents"), "mobile.role[0].foreign_agents[0]", "foreign-agent"),
        (SMOOTH, settings("home-agent.foreign_agents"), "home.role[0].foreign_agents[0]", "foreign-agent"),
        (SMOOTH, settings("foreign-agent.home_agents"), "a.role[0].home_agents[0]", "home-agent"),
        (ROUTE, settings("correspondent.home_agents"), "correspondent.role[0].home_agents[0]", "home-agent"),
    ] {
        let found = warned(name, &[&setting]);
        let expected =
            format!("{path}.address`: no role `mobile-ip/{role}` has the address 10.99.0.1; those with");
        assert!(found.contains(&expected), "{setting}: {found}");
    }
    // The broadcast address of the home network means all its home agents.
    let any = home.replace("10.99.0.1", "10.1.0.255");
    assert_eq!(warned(SMOOTH, &[&any]), "");
    let spare = format!("home-agent.mobile_nodes={}", peer("10.1.0.99", ""));
    assert!(Scenario::plan("f.toml", Scenario::find(SMOOTH).unwrap().1.as_str(), &all(&[&spare]), 1).is_ok());
}

/// An association whose ends differ is a valid experiment.
#[test]
fn ends_that_do_not_agree_are_a_warning() {
    let ends = |correspondent: &str, agent: &str| {
        let correspondent = format!("correspondent.home_agents={}", peer("10.1.0.1", correspondent));
        let agent = format!("home-agent.correspondents={}", peer("10.0.0.1", agent));
        let (correspondent, agent) = (correspondent.as_str(), agent.as_str());
        warned(ROUTE, &[correspondent, agent])
    };
    assert_eq!(ends("", ""), "");
    for networks in ["\"10.1.0.0/16\"", "\"10.1.0.128/25\", \"10.1.0.7/32\""] {
        assert_eq!(ends(&format!(", networks = [{networks}]"), ""), "");
    }
    for (correspondent, expected) in [
        (
            ", replay = \"nonces\"",
            "home_agents[0].replay`: is not that of the other end, host.home.role[0].correspondents: timestamps",
        ),
        (", algorithm = \"hmac-md5\"", "home_agents[0].algorithm`: is not that of the other end"),
        (
            ", networks = [\"10.7.0.0/16\"]",
            "home_agents[0].networks`: do not contain 10.1.0.7, the home address of a mobile node: Binding Updates about it are",
        ),
        // They are in the home network, but without the mobile node.
        (
            ", networks = [\"10.1.0.128/25\", \"10.1.0.0/30\"]",
            "home_agents[0].networks`: do not contain 10.1.0.7, the home address of a mobile node: Binding Updates about it are",
        ),
    ] {
        let found = ends(correspondent, "");
        assert!(found.contains(expected), "{correspondent}: {found}");
        assert_eq!(found.matches("with ").count(), 1, "one warning: {found}");
    }
    // Only one end is in the file: the warning is there.
    let one = peer("10.1.0.1", "").replace("300", "256").replace(KEY, OTHER);
    let found = warned(ROUTE, &[&format!("correspondent.home_agents={one}")]);
    assert!(
        found.contains("home_agents[0].key`: is not that of the other end, host.home.role[0].correspondents"),
        "{found}"
    );
    assert!(!found.contains(OTHER), "{found}");
    let spi = warned(ROUTE, &[&format!("correspondent.home_agents={}", peer("10.1.0.1", ""))]);
    assert!(
        spi.contains("home_agents[0].spi`: is not that of the other end") && spi.contains(": 256;"),
        "{spi}"
    );
    let agent = warned(ROUTE, &[&format!("home-agent.correspondents={}", peer("10.0.0.1", ""))]);
    assert!(agent.contains("host.home.role[0].correspondents[0].spi`"), "{agent}");
}

/// A role signs with the first of its associations with a peer. The other role knows it if it is in its list; but a mobile node checks
/// the replies of a foreign agent with its own first association.
#[test]
fn the_first_of_several_associations_is_to_be_known_at_the_other_end() {
    let list = |address: &str, spis: &[u32]| {
        let of = |spi: &u32| format!("{{ address = \"{address}\", spi = {spi}, key = \"{KEY}\" }}");
        spis.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let [home, correspondent] = [
        ("home-agent.correspondents", "10.0.0.1", "host.home.role[0].correspondents"),
        ("correspondent.home_agents", "10.1.0.1", "host.correspondent.role[0].home_agents"),
    ];
    let [by_home, foreign] = [
        ("host.home.role[0].foreign_agents", "10.2.0.1", "host.home.role[0].foreign_agents"),
        ("host.a.role[0].home_agents", "10.1.0.1", "host.a.role[0].home_agents"),
    ];
    let [by_foreign, node] = [
        ("host.a.role[0].mobile_nodes", "10.1.0.7", "host.a.role[0].mobile_nodes"),
        ("host.mobile.role[0].foreign_agents", "10.2.0.1", "host.mobile.role[0].foreign_agents"),
    ];
    let known: &[u32] = &[300];
    for (name, [one, two], [ones, twos], is_known) in [
        (ROUTE, [home, correspondent], [&[300][..], &[400, 300][..]], true),
        (ROUTE, [home, correspondent], [&[400, 300], known], false),
        (SMOOTH, [by_home, foreign], [&[300, 400], &[400, 300]], true),
        (SMOOTH, [foreign, by_home], [&[900, 300], known], false),
        (SMOOTH, [by_home, foreign], [&[900, 300], known], false),
        (SMOOTH, [node, by_foreign], [&[300, 400], known], true),
        (SMOOTH, [node, by_foreign], [&[900, 300], known], false),
        (SMOOTH, [by_foreign, node], [&[900, 300], known], false),
        (SMOOTH, [by_foreign, node], [&[400, 300], &[300, 400]], false),
    ] {
        let set =
            |(key, address, _): (&str, &str, &str), spis: &[u32]| format!("{key}=[{}]", list(address, spis));
        let found = warned(name, &[&set(one, ones), &set(two, twos)]);
        let path = format!("{}[0].spi`: is not that of the other end, {}: 300;", one.2, two.2);
        assert_eq!(found.contains(&path), !is_known, "{ones:?} {twos:?} {path}: {found}");
        assert_eq!(found.contains(".spi`"), !is_known, "{ones:?} {twos:?}: {found}");
    }
}

/// What a correspondent tunnels to a care-of address is dropped if the role there does not open the tunnel.
#[test]
fn a_role_that_does_not_open_the_tunnels_of_correspondents_is_a_warning() {
    let closed = "foreign-agent.direct_tunnels=false";
    let found = warned(ROUTE, &[closed]);
    for host in ["foreign", "other"] {
        let expected = format!("`host.{host}.role[0].direct_tunnels`: is false: packets that correspondents");
        assert!(found.contains(&expected), "{found}");
    }
    // Without a correspondent that is informed, there are no such tunnels.
    assert_eq!(warned(SMOOTH, &[closed]), "");
    let none = ["home-agent.correspondents=[]", "correspondent.home_agents=[]"];
    assert_eq!(warned(ROUTE, &[closed, none[0], none[1]]), "");
    // A mobile node with its own care-of address opens the tunnels itself, unless no correspondent knows this address.
    let (_, text) = Scenario::find(ROUTE).unwrap();
    let node = "\"mobile-ip/mobile-node\"";
    let own = "care_of = \"configured\", networks = [{ address = \"10.9.0.7/24\", router = \"10.9.0.1\" }]";
    let found = |more: &str| {
        let text = text.replacen(node, &format!("{node}, {own}, {more}"), 1);
        let found = warnings("f.toml", &text, &all(&[closed])).unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let closed = found("direct_tunnels = false");
    assert!(closed.contains("`host.mobile.role[0].direct_tunnels`: is false: packets that"), "{closed}");
    assert!(!closed.contains("host.foreign"), "no visitor has the address of an agent: {closed}");
    for open in ["direct_tunnels = true", "direct_tunnels = false, private_bindings = true"] {
        assert_eq!(found(open), "");
    }
}

#[test]
fn a_peer_without_the_role_or_the_association_is_a_warning() {
    let router = warned(ROUTE, &[&format!("home-agent.correspondents={}", peer("10.0.0.2", ""))]);
    assert!(
        router.contains(
            "correspondents[0].address`: no role `mobile-ip/correspondent` has the address 10.0.0.2"
        ),
        "{router}"
    );
    for (settings, expected) in [
        (
            &["mobile-node.foreign_agents=[]"][..],
            "host.mobile.role[0].foreign_agents`: there is no security association with 10.2.0.1, which `host.a.role[0].mobile_nodes` has",
        ),
        (
            &["home-agent.mobile_nodes=[]"],
            "host.home.role[0].mobile_nodes`: there is no security association with 10.1.0.7",
        ),
    ] {
        let found = warned(SMOOTH, settings);
        assert!(found.contains(expected), "{settings:?}: {found}");
    }
    let agents = format!("foreign-agent.home_agents={}", peer("10.1.0.1", ""));
    let found = warned(SMOOTH, &[&agents]);
    assert!(found.contains("home_agents[0].address`: `host.home.role[0].foreign_agents` has no security association with 10.2.0.1"), "{found}");
}

/// A role may say `false` where the table of the scenario says `true`: a grid compares both. The warning is at the role.
#[test]
fn a_role_without_smooth_handoffs_is_a_warning_where_it_says_so() {
    let keys = "mobile-ip.distributed_keys=true";
    let buffer = "mobile-ip.buffer.packets=8";
    for (settings, path, shared) in [
        (
            &["mobile-node.smooth_handoff=false"][..],
            "host.mobile.role[0].smooth_handoff`: no mobile node asks for",
            "smooth_handoff",
        ),
        (
            &["foreign-agent.smooth_handoff=false", buffer],
            "host.a.role[0].smooth_handoff`: no foreign agent offers",
            "smooth_handoff",
        ),
        (
            &[keys, "foreign-agent.smooth_handoff=false"],
            "host.a.role[0].smooth_handoff`: no foreign agent offers",
            "smooth_handoff",
        ),
        (
            &[keys, "mobile-node.smooth_handoff=false"],
            "host.mobile.role[0].smooth_handoff`: no mobile node asks",
            "smooth_handoff",
        ),
        (
            &[keys, "home-agent.distribute_keys=false"],
            "host.home.role[0].distribute_keys`: no home agent distributes keys",
            "distributed_keys",
        ),
        (
            &[keys, "mobile-node.distributed_keys=false"],
            "host.mobile.role[0].distributed_keys`: no mobile node uses",
            "distributed_keys",
        ),
        (
            &[keys, "foreign-agent.distributed_keys=false"],
            "host.a.role[0].distributed_keys`: no foreign agent takes",
            "distributed_keys",
        ),
    ] {
        let found = warned(SMOOTH, settings);
        assert!(found.contains(path), "{settings:?}: {found}");
        assert!(
            found.contains(&format!("so `mobile-ip.{shared} = true` has no effect; remove one of both keys")),
            "{found}"
        );
    }
    // A role that has the key itself has no effect with it.
    let refusal =
        refused(SMOOTH, &[keys, "mobile-node.distributed_keys=true", "home-agent.distribute_keys=false"]);
    let expected = "`host.mobile.role[0].distributed_keys`: has no effect: no home agent distributes keys: `host.home.role[0].distribute_keys` is false";
    assert!(refusal.contains(expected), "{refusal}");
}

#[test]
fn settings_without_effect_are_warnings() {
    for (name, settings, expected) in [
        (
            SMOOTH,
            &["foreign-agent.special_tunnels=true"][..],
            "host.a.role[0].special_tunnels`: has no effect: no home agent opens special tunnels",
        ),
        (
            SMOOTH,
            &["home-agent.special_tunnels=true"],
            "host.home.role[0].special_tunnels`: has no effect: no foreign agent sends",
        ),
        (
            ROUTE,
            &["mobile-node.direct_tunnels=true"],
            ".direct_tunnels`: has no effect with `care_of = \"agent\"`",
        ),
        (
            SMOOTH,
            &[
                "mobile-ip.smooth_handoff=false",
                "foreign-agent.smooth_handoff=true",
                "mobile-node.smooth_handoff=true",
                "foreign-agent.buffer={ packets = 2 }",
            ],
            "host.a.role[0].buffer`: has no effect: without `mobile_nodes` or",
        ),
    ] {
        let found = warned(name, settings);
        assert!(found.contains(expected), "{settings:?}: {found}");
    }
    let both = ["foreign-agent.special_tunnels=true", "home-agent.special_tunnels=true"];
    assert_eq!(warned(SMOOTH, &both), "");
    let rate = refused(SMOOTH, &["mobile-ip.buffer.rate=2Mb/s"]);
    assert!(rate.contains("needs `drain = \"paced\"`"), "{rate}");
    let pending = refused(SMOOTH, &["foreign-agent.pending=0"]);
    assert!(pending.contains(".pending`: must be at least 1"), "{pending}");
}

/// A visitor that registers again after its link was down gets what its agent has kept. That needs neither a key nor a smooth
/// handoff, so there is no warning.
#[test]
fn packets_for_a_link_that_is_down_need_no_smooth_handoff() {
    let (_, text) = Scenario::find(SMOOTH).unwrap();
    let cut = |kind: &str, at: &str| format!("\n[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\ncell = 2\n");
    let text = format!("{text}{}{}", cut("cut", "4.2s"), cut("restore", "4.5s"));
    let lost = |settings: &[&str]| {
        let own = ["duration=6s", "constant-rate.start=3.2s", "constant-rate.stop=4.8s", "roam.moves=[]"];
        let settings = all(&[&own, settings].concat());
        let plan = Scenario::plan("f.toml", &text, &settings, 1).unwrap_or_else(|error| panic!("{error}"));
        let found = warnings("f.toml", &text, &settings).unwrap();
        assert!(!found.iter().any(|warning| warning.to_string().contains("buffer`")), "{found:?}");
        let records = plan.world().unwrap().run(Instant::ZERO + plan.duration).records;
        let with = |of: fn(&What) -> Option<PacketId>| -> BTreeSet<PacketId> {
            records.iter().filter_map(|record| of(&record.what)).collect()
        };
        let sent = with(|what| if let What::AppSent(id) = what { Some(*id) } else { None });
        let got = with(|what| if let What::AppReceived(id) = what { Some(*id) } else { None });
        assert!(sent.len() > 100, "{}", sent.len());
        sent.difference(&got).count()
    };
    let [no_agents, no_nodes] = ["mobile-node.foreign_agents=[]", "foreign-agent.mobile_nodes=[]"];
    let off = "mobile-ip.smooth_handoff=false";
    let table = "mobile-ip.buffer={ when = \"link-down\", packets = 56 }";
    let own = "foreign-agent.buffer={ when = \"link-down\", packets = 56 }";
    assert!(lost(&[off]) > 20);
    for settings in [&[own][..], &[off, own], &[off, table], &[no_agents, no_nodes, table]] {
        assert_eq!(lost(settings), 0, "{settings:?}");
    }
}

#[test]
fn a_radio_that_no_role_tunes_is_refused() {
    let (_, text) = Scenario::find("mobile-ip/overlay").unwrap();
    let without = |interface: &str| {
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| {
                !(line.contains("apps/roam") && line.contains("\"air2\"") == (interface == "air2"))
            })
            .collect();
        Scenario::plan("f.toml", &lines.join("\n"), &[], 1).unwrap_err().to_string()
    };
    for (interface, path) in [("air2", "role[0].further_interfaces[0].name"), ("air", "role[0].interface")] {
        let refusal = without(interface);
        let expected =
            format!("`host.truck.{path}`: no role tunes the radio `{interface}`, so it is in no cell");
        assert!(refusal.contains(&expected) && refusal.contains("f.toml, line "), "{refusal}");
    }
}

#[test]
fn a_correspondent_before_the_foreign_agent_of_its_address_is_refused() {
    let (_, text) = Scenario::find(SMOOTH).unwrap();
    let agent = "role = [{ kind = \"mobile-ip/foreign-agent\" }]\n\n[host.b]";
    let with = |roles: &str| {
        let text = text.replacen(agent, &format!("role = [{roles}]\n\n[host.b]"), 1);
        Scenario::plan("f.toml", &text, &[], 1).map(|_| ()).map_err(|error| error.to_string())
    };
    let (correspondent, agent) = (
        "{ kind = \"mobile-ip/correspondent\", address = \"10.2.0.1\" }",
        "{ kind = \"mobile-ip/foreign-agent\" }",
    );
    let refusal = with(&format!("{correspondent}, {agent}")).unwrap_err();
    let expected = "`host.a.role[0].address`: 10.2.0.1 is the address of the foreign agent of this host";
    assert!(refusal.contains(expected) && refusal.contains("f.toml, line "), "{refusal}");
    assert_eq!(with(&format!("{agent}, {correspondent}")), Ok(()));
    let elsewhere = correspondent.replace("10.2.0.1", "10.0.2.9");
    let unknown = with(&format!("{elsewhere}, {agent}")).unwrap_err();
    assert!(unknown.contains("this host has no address 10.0.2.9; it has: 10.0.2.2, 10.2.0.1"), "{unknown}");
}
