//! What an operator sees of a registration through both agents: `wayfare ctl` at each of the three hosts.

use super::path::away;
use crate::common::*;
use std::path::Path;

#[test]
fn an_operator_sees_ages_lifetimes_keys_and_counters_of_a_registration() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let stage = away();
    let ctl = |host: &str, verb: &str| {
        let control = stage.control(host);
        let output = run(&["ctl", control.to_str().unwrap(), verb], Path::new("/"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // Until then, the registration has an age.
    pause(1500);
    let row_of = |said: &str| {
        let lines: Vec<&str> = said.lines().collect();
        let [count, title, rule, row] = lines[..] else { panic!("not one row: {said}") };
        assert!(count.starts_with("1 "), "{said}");
        let mut begin = 0;
        let widths = rule.split("  ").map(str::len);
        let columns = widths.map(|width| {
            let cells = [title, row]
                .map(|line| line.get(begin..).unwrap_or("").chars().take(width).collect::<String>());
            begin += width + 2;
            cells.map(|cell| cell.trim().to_owned())
        });
        columns.map(|[title, cell]| (title, cell)).collect::<std::collections::BTreeMap<_, _>>()
    };
    for (host, verb, spi) in [("home", "bindings", "256"), ("foreign", "visitors", "-")] {
        let said = ctl(host, verb);
        let row = row_of(&said);
        assert_eq!(
            [&row["host"], &row["care of"], &row["lifetime s"]],
            ["10.1.0.7", "10.3.0.1", "300"],
            "{said}"
        );
        assert_eq!(row["spi"], spi, "{said}");
        let [age, left] = ["age s", "ends in s"].map(|name| row[name].parse::<i64>().unwrap());
        assert!((1..60).contains(&age) && (240..300).contains(&left), "{said}");
    }
    for (host, role) in [("home", "home_agent"), ("foreign", "foreign_agent"), ("mobile", "mobile_node")] {
        let said = ctl(host, "status");
        for wanted in [role, "  codes\n    1  0 (accepted)\n", "drops", "refused", "ahead_ms"] {
            assert!(said.contains(wanted), "no `{wanted}` of {host} in\n{said}");
        }
    }
    let said = ctl("mobile", "status");
    for wanted in ["spi                 256", " s ago)", "(in 29"] {
        assert!(said.contains(wanted), "no `{wanted}` in\n{said}");
    }
}
