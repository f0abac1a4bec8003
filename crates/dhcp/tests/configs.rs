//! Invalid configurations: each error names the key, and what is allowed.

use crate::cast::{client, server};

fn of_client(changes: &str) -> String {
    client(changes).err().unwrap_or_else(|| panic!("{changes} is taken"))
}

fn of_server(changes: &str) -> String {
    server(changes).err().unwrap_or_else(|| panic!("{changes} is taken"))
}

#[test]
fn a_wrong_key_of_a_client_is_named() {
    assert!(client("").is_ok());
    for (changes, says) in [
        ("interface = 'air'", "`interface`: this host has no interface `air`; it has: eth"),
        ("retry = '0s'", "`retry`: must be greater than zero and at most 64s"),
        ("retry = '65s'", "`retry`: must be greater than zero and at most 64s"),
        ("probes = 11", "`probes`: must be at most 10"),
        ("probe_wait = '0s'", "`probe_wait`: must be greater than zero, for example 200ms"),
        ("probing = 'slow'", "unknown variant `slow`, expected `quick` or `rfc5227`"),
        ("announcements = ['2s', '0s']", "`announcements`: must be in ascending order"),
        ("lease = '1s'", "unknown field `lease`"),
    ] {
        let error = of_client(changes);
        assert!(error.starts_with(says), "{changes}: {error}");
    }
}

#[test]
fn a_wrong_key_of_a_server_is_named() {
    assert!(server("fixed = [{ mac = '02:00:00:00:00:0a', address = '10.3.0.9' }]").is_ok());
    for (changes, says) in [
        ("interface = 'air'", "`interface`: this host has no interface `air`; it has: eth"),
        (
            "address = '10.3.0.0/24'",
            "`address`: 10.3.0.0/24 must be a host address with the length of its prefix",
        ),
        ("first = '10.4.0.100'", "`first`: 10.4.0.100 must be a host address of 10.3.0.0/24"),
        ("last = '10.3.0.255'", "`last`: 10.3.0.255 must be a host address of 10.3.0.0/24"),
        ("last = '10.3.0.99'", "`last`: must not be before `first`, 10.3.0.100"),
        ("lease = '0s'", "`lease`: must be whole seconds, from 4s to 4294967294s"),
        ("lease = '4.5s'", "`lease`: must be whole seconds"),
        ("router = '10.4.0.1'", "`router`: 10.4.0.1 must be a host address of 10.3.0.0/24"),
        ("probe_wait = '0s'", "`probe_wait`: must be greater than zero"),
        (
            "fixed = [{ mac = '02:00:00:00:00:0a', address = '10.4.0.9' }]",
            "`fixed`: 10.4.0.9 must be a host address",
        ),
        (
            "fixed = [{ mac = '02:00:00:00:00:0a', address = '10.3.0.1' }]",
            "`fixed`: 10.3.0.1 for 02:00:00:00:00:0a: each",
        ),
        (
            "fixed = [{ mac = '03:00:00:00:00:0a', address = '10.3.0.9' }]",
            "`fixed`: 10.3.0.9 for 03:00:00:00:00:0a: each",
        ),
        (
            "fixed = [{ mac = '02:00:00:00:00:0a', address = '10.3.0.9' }, { mac = '02:00:00:00:00:0a', address = '10.3.0.8' }]",
            "`fixed`: 10.3.0.8 for 02:00:00:00:00:0a: each",
        ),
    ] {
        let error = of_server(changes);
        assert!(error.starts_with(says), "{changes}: {error}");
    }
}
