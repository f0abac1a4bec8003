//! Programs that know nothing of Mobile IP, on a correspondent with a binding cache: iperf3, curl and ssh talk to a mobile node
//! while it moves from its home network to two foreign agents, and home again. Their packets go straight to the agents.

use crate::common::*;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A server of ssh (dropbear). The home directory of root is a private one, because the server reads the key of the client there.
const SSH_SERVER: &str = r"
exec unshare --mount sh -ec '
home=~root
mount -t tmpfs -o mode=700 none $home
mkdir -m 700 $home/.ssh
install -m 600 id.pub $home/.ssh/authorized_keys
exec dropbear -F -E -p 10.1.0.7:2222 -r host_key -P $home/pid'
";
/// Sends a line every 200 ms to a file of the mobile node.
const SSH_CLIENT: &str = r#"
for number in $(seq 40); do echo "line $number"; sleep 0.2; done | ssh -F none -i id -p 2222 \
    -o StrictHostKeyChecking=no -o UserKnownHostsFile=known_hosts -o BatchMode=yes root@10.1.0.7 "cat > $PWD/uploaded"
"#;
const CURL: &str = "curl -sS --limit-rate 50k -o downloaded http://10.1.0.7:8000/file";
/// The ports of the three servers, as they are in a packet to the mobile node.
const PORTS: [&str; 3] = ["10.1.0.7:5201", "10.1.0.7:8000", "10.1.0.7:2222"];

fn need_programs() -> bool {
    let works = |program: &str, words: &[&str]| Command::new(program).args(words).output().is_ok();
    let all = [("iperf3", &["-v"][..]), ("curl", &["-V"]), ("ssh", &["-V"]), ("dropbear", &["-V"])];
    need("iperf3, curl, ssh and dropbear", all.iter().all(|(program, words)| works(program, words)))
}

/// Writes the scenario `mobile-ip/route-optimization` with the programs in place of its flow, and the files of the programs.
fn prepare(out: &Path) -> Vec<u8> {
    let (_, text) = scenario::Scenario::find("mobile-ip/route-optimization").unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("apps/constant-rate") && !line.contains("apps/sink"))
        .collect();
    let mut text = lines.join("\n");
    for (host, command, rest) in [
        ("mobile", "iperf3 -s -1 -B 10.1.0.7", ""),
        ("mobile", "python3 -m http.server 8000 --bind 10.1.0.7 --directory www", "stop = \"13.5s\""),
        ("mobile", "sh ssh_server.sh", "stop = \"13.5s\""),
        ("correspondent", "iperf3 -c 10.1.0.7 -t 8 -b 300K -l 4K -J", "start = \"2s\""),
        ("correspondent", CURL, "start = \"2s\""),
        ("correspondent", "sh ssh_client.sh", "start = \"2s\""),
    ] {
        writeln!(text, "\n[[host.{host}.program]]\ncommand = \"{command}\"\n{rest}").unwrap();
    }
    let file: Vec<u8> = (0..400_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::create_dir(out.join("www")).unwrap();
    std::fs::write(out.join("www/file"), &file).unwrap();
    for (name, text) in
        [("programs.toml", text.as_str()), ("ssh_server.sh", SSH_SERVER), ("ssh_client.sh", SSH_CLIENT)]
    {
        std::fs::write(out.join(name), text).unwrap();
    }
    for (program, words) in [
        ("dropbearkey", ["-t", "ed25519", "-f", "host_key"].as_slice()),
        ("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "id"]),
    ] {
        let output = Command::new(program).args(words).current_dir(out).output().unwrap();
        assert!(output.status.success(), "{program}: {}", text_of(&output.stderr));
    }
    file
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn iperf3_curl_and_ssh_reach_a_mobile_node_straight() {
    if !need_programs() {
        return;
    }
    let _turn = beside_few();
    let out = tempfile::tempdir().unwrap();
    let file = prepare(out.path());
    let output = run(&["run", "programs.toml", "--on", "linux"], out.path());
    assert_held(&output, "programs on linux");
    let dir = kept(out.path());
    let said = |name: &str| std::fs::read_to_string(dir.join("programs").join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&said("correspondent-1.log")).unwrap();
    let received = report["end"]["sum_received"]["bytes"].as_u64().unwrap();
    if !did_in_time(&output, received >= 250_000) {
        return;
    }
    assert!((250_000..330_000).contains(&received), "{received} bytes of iperf3 in 8 s at 300 kb/s");
    assert!(std::fs::read(out.path().join("downloaded")).unwrap() == file, "the file of curl");
    let uploaded = std::fs::read_to_string(out.path().join("uploaded")).unwrap();
    let lines: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
    assert_eq!(uploaded.lines().collect::<Vec<_>>(), lines);

    // After the first Update, no packet of the programs passes the home agent until the mobile node is home again, except those
    // that were under way: these take 41 ms.
    let packets = std::fs::read_to_string(dir.join("packets.csv")).unwrap();
    let rows: Vec<(f64, Vec<&str>)> = packets
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter_map(|row| Some((row[2].parse().ok()?, row)))
        .collect();
    let updates: Vec<f64> = rows
        .iter()
        .filter(|(_, row)| row[3] == "correspondent" && row[10].contains("binding update"))
        .map(|(at, _)| *at)
        .collect();
    let [first, .., last] = updates[..] else { panic!("{updates:?}") };
    for port in PORTS {
        let at = |host: &str| {
            let is = |row: &[&str]| row[3] == host && row[5] == "in" && row[10].contains(port);
            rows.iter().filter(|(_, row)| is(row)).map(|(at, _)| *at).collect::<Vec<_>>()
        };
        let late = at("home").into_iter().filter(|at| (first + 0.1..last).contains(at)).count();
        let straight = at("mobile").into_iter().filter(|at| (first + 0.1..last).contains(at)).count();
        eprintln!("to {port}: {straight} packets straight, {late} by the home agent");
        if did_in_time(&output, first < 4.3) {
            assert!(late == 0 && straight > 20, "{port}: {late} by the home agent, {straight} straight");
        }
    }
}
