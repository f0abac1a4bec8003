//! Tests of the keys of Mobile IP that have no effect in a scenario.

use super::tests::refusal_in;
use crate::Scenario;

/// A key without an effect, and values that must agree, are refused where they are written.
#[test]
fn mobile_ip_keys_without_effect_are_refused() {
    let smooth = "smooth_handoff = true";
    let node = "{ kind = \"mobile-ip/mobile-node\" }";
    let with = |key: &str| format!("{{ kind = \"mobile-ip/mobile-node\", {key} }}");
    let buffer = |keys: &str| format!("{smooth}\nbuffer = {{ {keys} }}");
    let agent = "role = [{ kind = \"mobile-ip/foreign-agent\" }]\n\n[host.b]";
    for (from, to, expected) in [
        (smooth, buffer("packets = 0"), "column 22: `mobile-ip.buffer.packets`: must be from 1 to 1000"),
        (smooth, buffer("max_age = 10"), "column 22: `mobile-ip.buffer.max_age`: "),
        (smooth, buffer("total_bytes = \"64MiB\""), "expected a whole number, 576 or greater"),
        (smooth, buffer("drain = \"pace\""), "column 20: `mobile-ip.buffer.drain`: unknown variant `pace`"),
        (smooth, buffer("rate = \"64kb/s\""), "`mobile-ip.buffer.rate`: needs `drain = \"paced\"`"),
        (smooth, buffer("size = 1"), "`mobile-ip.buffer.size`: unknown field `size`"),
        (smooth, "buffer = {}".to_owned(), "`mobile-ip.buffer`: needs `smooth_handoff = true`, or `when ="),
        (
            smooth,
            format!("{smooth}\ndistributed_keys = true\nreplay = \"nonces\""),
            "`mobile-ip.distributed_keys`: needs `replay = \"timestamps\"`",
        ),
        (
            smooth,
            buffer("when = \"request\""),
            "column 19: `mobile-ip.buffer.when`: has no effect: no mobile node asks",
        ),
        (
            agent,
            agent.replace(" }]", ", buffer = { when = \"request\" } }]"),
            "`host.a.role[0].buffer.when`: has no effect: no mobile node asks to keep packets; write `ask_to_keep = true`",
        ),
        (
            node,
            with("named_packets = 20"),
            "`host.mobile.role[0].named_packets`: has no effect: no foreign agent keeps packets; write `buffer =",
        ),
        (node, with("ask_to_keep = true"), "`host.mobile.role[0].ask_to_keep`: has no effect"),
        (node, with("distributed_keys = true"), "`host.mobile.role[0].distributed_keys`: has no effect"),
        (node, with("preference = 1"), "`host.mobile.role[0].preference`: needs `further_interfaces`"),
        (node, with("make_before_break = false"), "`host.mobile.role[0].make_before_break`: needs"),
        (
            agent,
            agent.replace(" }]", ", numbers = { smooth_flag = 1 } }]"),
            "`host.a.role[0].numbers`: must be the same for all roles of Mobile IP",
        ),
        (smooth, String::new(), "makes a plan"),
        (
            "to = \"c\"",
            "to = \"c\" }], places = [{ name = \"x\", cell = 9".to_owned(),
            "there is no cell 9; there are: 1, 2, 3, 4",
        ),
    ] {
        let refusal = refusal_in("mobile-ip/smooth-handoff", from, &to);
        assert!(refusal.contains(expected), "{to}: {refusal}");
    }
    let with_counterparts = |buffer: &str, key: &str| {
        let (_, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
        let text = text.replacen(smooth, &format!("{smooth}\nbuffer = {buffer}"), 1);
        Scenario::plan("f.toml", &text.replacen(node, &with(key), 1), &[], 1).map(|_| ())
    };
    assert_eq!(with_counterparts("{ when = \"request\" }", "ask_to_keep = true"), Ok(()));
    assert_eq!(with_counterparts("{}", "named_packets = 20"), Ok(()));
    assert_eq!(with_counterparts("{ when = \"link-down\" }", "ask_to_keep = true"), Ok(()), "a warning");
    let smooth_node = refusal_in("mobile-ip/smooth-handoff", smooth, "");
    assert!(smooth_node.contains("makes a plan"), "{smooth_node}");
    let numbers = refusal_in(
        "mobile-ip/smooth-handoff",
        agent,
        &agent.replace(" }]", ", numbers = { update = 17 } }]"),
    );
    assert!(numbers.contains("`request` and `update` are both 17"), "{numbers}");
}

/// A home agent informs hosts of the scenario only. The message has the addresses of those that can be informed.
#[test]
fn a_correspondent_that_is_no_host_is_refused() {
    let (_, text) = Scenario::find("mobile-ip/route-optimization").unwrap();
    let with = |address: &str| {
        let key = "000102030405060708090a0b0c0d0e0f";
        let peer = format!("[{{ address = \"{address}\", spi = 256, key = \"{key}\" }}]");
        let setting = format!("home-agent.correspondents={peer}").parse().unwrap();
        Scenario::plan("f.toml", &text, &[setting], 1).map_err(|error| error.to_string())
    };
    let plan = Scenario::plan("f.toml", &text, &[], 1).unwrap();
    let correspondent =
        plan.hosts.iter().find(|host| host.text.contains("\"mobile-ip/correspondent\"")).unwrap();
    let own = correspondent.config.own_addresses().unwrap()[0].to_string();
    assert!(with(&own).is_ok());
    let refusal = with("10.99.0.1").unwrap_err();
    let expected = format!(
        "correspondents[0].address`: no host of the scenario has the address 10.99.0.1; write that of a host; those with the role `mobile-ip/correspondent` have: {own}"
    );
    assert!(refusal.contains(&expected), "{refusal}");
    let mobile = plan.hosts.iter().find(|host| host.text.contains("\"mobile-ip/mobile-node\"")).unwrap();
    let refusal = with(&mobile.config.own_addresses().unwrap()[0].to_string()).unwrap_err();
    let expected = format!(
        "correspondents[0].address`: is the address of the mobile node `{}`, which has no role",
        mobile.config.name
    );
    assert!(refusal.contains(&expected), "{refusal}");
}

/// Without a foreign agent, or without a mobile node, the counterparts are missing too.
#[test]
fn keys_about_kept_packets_need_both_kinds_of_hosts() {
    let (_, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let refused = |kind: &str, setting: &str| {
        let role = format!("{{ kind = \"{kind}\" }}");
        let text = text.replace(&format!("[{role}]"), "[]").replace(&format!("{role},\n"), "");
        assert!(!text.contains(kind), "{text}");
        assert!(Scenario::plan("f.toml", &text, &[], 1).is_ok(), "without {kind}");
        Scenario::plan("f.toml", &text, &[setting.parse().unwrap()], 1).unwrap_err().to_string()
    };
    for (kind, setting, expected) in [
        ("mobile-ip/mobile-node", "mobile-ip.buffer.when=request", "`mobile-ip.buffer.when`: has no effect"),
        (
            "mobile-ip/mobile-node",
            "host.a.role[0].buffer={ when = \"request\" }",
            "`host.a.role[0].buffer.when`: has no effect",
        ),
        (
            "mobile-ip/foreign-agent",
            "mobile-node.ask_to_keep=true",
            "`host.mobile.role[0].ask_to_keep`: has no effect: no foreign agent keeps packets on request",
        ),
        (
            "mobile-ip/foreign-agent",
            "mobile-node.named_packets=10",
            "`host.mobile.role[0].named_packets`: has no effect: no foreign agent keeps packets",
        ),
    ] {
        let refusal = refused(kind, setting);
        assert!(refusal.contains(expected), "{setting}: {refusal}");
    }
}

/// A grid over all values of `when` has points at which a request has no effect. They are no errors.
#[test]
fn a_request_that_no_agent_needs_is_a_warning() {
    let (file, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let warnings = |when: &str| {
        let settings = [format!("mobile-ip.buffer.when={when}"), "mobile-node.ask_to_keep=true".to_owned()];
        let settings = settings.map(|setting| setting.parse().unwrap());
        Scenario::plan(&file, &text, &settings, 1).unwrap();
        let all = crate::file::warnings(&file, &text, &settings).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warnings("request"), [""; 0]);
    for when in ["always", "link-down"] {
        let [one] = &warnings(when)[..] else { panic!("one warning") };
        assert!(one.contains("`host.mobile.role[0].ask_to_keep`: has no effect: no foreign agent"), "{one}");
    }
}

/// The advice of a message is accepted.
#[test]
fn the_advice_about_named_packets_is_accepted() {
    let (_, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let plan = |more: &[&str]| {
        let roles = ["mobile-ip.smooth_handoff=false", "foreign-agent.smooth_handoff=true"];
        let node = ["mobile-node.smooth_handoff=true", "mobile-node.named_packets=10"];
        let all = roles.iter().chain(&node).chain(more);
        let all: Vec<_> = all.map(|setting| setting.parse().unwrap()).collect();
        Scenario::plan("f.toml", &text, &all, 1).map_err(|error| error.to_string())
    };
    let refusal = plan(&[]).unwrap_err();
    let advice =
        "no foreign agent keeps packets; write `buffer = { packets = 16 }` in the role of a foreign agent";
    assert!(refusal.contains(advice), "{refusal}");
    assert!(plan(&["host.a.role[0].buffer={ packets = 16 }"]).is_ok());
}

/// With nonces, no handoff is smooth. The run continues with a warning where the key is written.
#[test]
fn smooth_handoffs_with_nonces_are_a_warning() {
    let (file, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let warnings = |settings: &[&str]| {
        let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
        assert!(Scenario::plan(&file, &text, &settings, 1).is_ok());
        let all = crate::file::warnings(&file, &text, &settings).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warnings(&[]), "");
    let nonces = "mobile-ip.replay=nonces";
    let of_table = "`mobile-ip.smooth_handoff`: no handoff of `mobile` is smooth with `replay = \"nonces\"`";
    let shared = warnings(&[nonces]);
    assert!(shared.contains(of_table), "{shared}");
    let own = warnings(&[nonces, "mobile-ip.smooth_handoff=false"]);
    assert_eq!(own, "");
    let (agent, node) = ("foreign-agent.smooth_handoff=true", "mobile-node.smooth_handoff=true");
    let own = warnings(&[nonces, "mobile-ip.smooth_handoff=false", agent, node]);
    assert!(own.contains("`host.mobile.role[0].smooth_handoff`: no handoff of `mobile` is smooth"), "{own}");
    // Both ends of an association have their own `replay`.
    let ends = |replay: &str| {
        let with = |address: &str| {
            let key = "000102030405060708090a0b0c0d0e0f";
            format!("{{ address = \"{address}\", spi = 256, key = \"{key}\"{replay} }}")
        };
        let node = format!("mobile-node.home_agent={}", with("10.1.0.1"));
        [node, format!("home-agent.mobile_nodes=[{}]", with("10.1.0.7"))]
    };
    let [node, agent] = ends(", replay = \"nonces\"");
    let own = warnings(&[&node, &agent]);
    assert!(own.contains(of_table), "{own}");
    for replay in [", replay = \"timestamps\"", ""] {
        let [node, agent] = ends(replay);
        assert_eq!(warnings(&[nonces, &node, &agent]), "", "their own `replay` is that of timestamps");
    }
}

/// A mobile node that asks for no smooth handoff gets no warning. One place has one warning, about all its mobile nodes.
#[test]
fn a_warning_about_nonces_names_the_mobile_nodes_that_it_concerns() {
    let (file, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let with = |own: &str| {
        let (_, host) = text.split_once("[host.mobile]").unwrap();
        let host = host.replace("10.1.0.7", "10.1.0.8").replace("mobile:7000", "second:7001");
        let host = host.replace("\"mobile-ip/mobile-node\"", &format!("\"mobile-ip/mobile-node\"{own}"));
        let text = format!("{text}\n[host.second]{host}");
        let nonces = ["mobile-ip.replay=nonces".parse().unwrap()];
        Scenario::plan(&file, &text, &nonces, 1).unwrap();
        let all = crate::file::warnings(&file, &text, &nonces).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let [one] = &with(", smooth_handoff = false")[..] else { panic!("one warning") };
    assert!(one.contains("`mobile-ip.smooth_handoff`: no handoff of `mobile` is smooth"), "{one}");
    let [both] = &with("")[..] else { panic!("one warning") };
    assert!(both.contains("no handoff of `mobile` and 1 other is smooth"), "{both}");
}

/// A co-located care-of address has no smooth handoffs. The run continues with a warning where each key is written. A mobile
/// node with a foreign agent's care-of address has none, nor a scenario with such a node beside the other one.
#[test]
fn smooth_handoffs_with_a_co_located_care_of_address_are_a_warning() {
    let (_, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let networks = "networks = [{ address = \"10.9.0.7/24\", router = \"10.9.0.1\" }]";
    let node = "{ kind = \"mobile-ip/mobile-node\" }";
    let with = |shared: &str, keys: &str| {
        let role = node.replace(" }", &format!(", {keys} }}"));
        let text = text.replacen("smooth_handoff = true", shared, 1).replacen(node, &role, 1);
        assert!(Scenario::plan("f.toml", &text, &[], 1).is_ok(), "{keys}");
        let all = crate::file::warnings("f.toml", &text, &[]).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let kept = "smooth_handoff = true\nbuffer = { when = \"request\" }";
    let own = format!("care_of = \"configured\", {networks}");
    let asks = "named_packets = 3, ask_to_keep = true";
    let all = with(kept, &format!("{own}, {asks}"));
    let expected = [
        "`mobile-ip.smooth_handoff`: has no effect with `care_of = \"configured\"`: no foreign agent forwards or keeps packets for a co-located care-of address; write `care_of = \"agent\"`, or remove this key",
        "`host.mobile.role[0].ask_to_keep`: has no effect with `care_of = \"configured\"`: ",
        "`host.mobile.role[0].named_packets`: has no effect with `care_of = \"configured\"`: ",
    ];
    assert_eq!(all.len(), expected.len(), "{all:?}");
    for (warning, expected) in all.iter().zip(expected) {
        assert!(warning.starts_with("f.toml, line ") && warning.contains(expected), "{warning}");
    }
    assert_eq!(with(kept, asks), Vec::<String>::new());
    let alone = with("", &own);
    assert_eq!(alone, Vec::<String>::new());
}

/// Agents without route optimization deny requests for private bindings. The run continues with a warning.
#[test]
fn private_bindings_without_correspondents_are_a_warning() {
    let node = "{ kind = \"mobile-ip/mobile-node\"";
    let with = |name: &str| {
        let (_, text) = Scenario::find(name).unwrap();
        assert!(text.contains(node), "{name}");
        let text = text.replacen(node, &format!("{node}, private_bindings = true"), 1);
        assert!(Scenario::plan("f.toml", &text, &[], 1).is_ok(), "{name}");
        let all = crate::file::warnings("f.toml", &text, &[]).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = with("mobile-ip/download");
    let [warning] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        warning.starts_with("f.toml, line ") && warning.contains("deny each registration (codes 70 and 134)")
    );
    assert_eq!(with("mobile-ip/route-optimization"), Vec::<String>::new());
}

/// A setting of a key of the optional table `buffer` makes the table.
#[test]
fn a_setting_makes_the_table_of_kept_packets() {
    let (_, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let with = |setting: &str| Scenario::plan("f.toml", &text, &[setting.parse().unwrap()], 1);
    let plan = with("mobile-ip.buffer.packets=4").unwrap();
    assert_eq!(plan.hosts.iter().filter(|host| host.text.contains("packets = 4")).count(), 3);
    let refusal = with("mobile-ip.buffer.packets=0").unwrap_err().to_string();
    assert!(
        refusal.contains("mobile-ip.buffer.packets=0") && refusal.contains("from 1 to 1000"),
        "{refusal}"
    );
}
