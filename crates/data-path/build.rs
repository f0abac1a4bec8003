//! Compiles the XDP program with clang. Without clang the file is empty: then `DataPath::load` returns an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The files that change when a package is installed, of dpkg, rpm and apk.
const INSTALLED: [&str; 4] = [
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/lib/apk/db/installed",
];

/// Returns the paths of which one changes when clang is installed, so that the next build finds it. Cargo reads all entries of a
/// folder in each build, and builds again each time if a path does not exist.
fn where_clang_may_appear() -> Vec<PathBuf> {
    let lists: Vec<PathBuf> = INSTALLED.iter().map(PathBuf::from).filter(|list| list.is_file()).collect();
    // Packages install nothing below /usr/local. Folders outside of /usr may change often.
    let top = if lists.is_empty() { "/usr" } else { "/usr/local" };
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| folder.is_dir() && folder.starts_with(top));
    folders.chain(lists).collect()
}

fn main() -> io::Result<()> {
    let source = "bpf/forward.bpf.c";
    println!("cargo:rerun-if-changed={source}");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    let object = folder.join("forward.bpf.o");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(clang);
    command
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3", "-c", source, "-o"]);
    match command.arg(&object).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("clang cannot compile {source}: {status}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("cargo:warning=there is no clang, so this build has no data path in the kernel");
            for path in where_clang_may_appear() {
                println!("cargo:rerun-if-changed={}", path.display());
            }
            fs::write(Path::new(&object), [])
        }
        Err(error) => Err(error),
    }
}
