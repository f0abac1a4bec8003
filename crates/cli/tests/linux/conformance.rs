//! Simulator = Linux: the same messages in the same order at every node, within the tolerance. `make conformance` does
//! the same fifty times.

use crate::common::{alone, assert_exit, assert_held, only_the_timing_was_wrong, run, text};

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
        assert_held(&on_linux, "first on linux");
        let diff = run(&["diff", sim, linux], out.path());
        // A machine that stands still for longer than the tolerance makes a run that shows nothing, and says so.
        let late = on_linux.status.code() == Some(4) && only_the_timing_was_wrong(&on_linux);
        if late && diff.status.code() == Some(1) {
            eprintln!(
                "seed {seed} is not compared, for this machine kept the links waiting: {}",
                text(&diff.stdout)
            );
            continue;
        }
        assert_exit(&diff, 0, "no divergence");
    }
}
