//! Writes sample figures into a folder for viewing: `cargo run -p draw --example gallery -- FOLDER`.

#[path = "../tests/figures/samples.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "the samples are shared with the tests")]
mod samples;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let figures = [
        ("one-handoff.svg", samples::one_handoff().svg()),
        ("many-handoffs.svg", samples::many_handoffs().svg()),
        ("two-hosts.svg", samples::two_hosts().svg()),
        ("losses.svg", samples::losses().svg()),
        ("distribution.svg", samples::outages().svg()),
    ];
    for (name, svg) in figures {
        std::fs::write(folder.join(name), svg)?;
    }
    Ok(())
}
