//! Simulator = Linux: the same messages in the same order at every node, within the tolerance. `make conformance` does
//! the same fifty times.

use crate::common::{alone, assert_exit, run};

const RUNS: u32 = 5;

#[test]
fn the_simulator_and_linux_do_the_same() {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    for seed in 1..=RUNS {
        let seed = seed.to_string();
        let dirs = [format!("sim-{seed}"), format!("linux-{seed}")];
        let [sim, linux] = &dirs;
        assert_exit(&run(&["run", "first", "--seed", &seed, "--out", sim], out.path()), 0, "fingerprint");
        let on_linux = run(&["run", "first", "--on", "linux", "--seed", &seed, "--out", linux], out.path());
        assert_exit(&on_linux, 0, "first on linux");
        assert_exit(&run(&["diff", sim, linux], out.path()), 0, "no divergence");
    }
}
