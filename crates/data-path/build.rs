//! Compiles the XDP program with clang. Without clang the file is empty: then `DataPath::load` returns an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

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
            // After clang is installed, the next build finds it. Other folders may change often.
            env::split_paths(&env::var_os("PATH").unwrap_or_default())
                .filter(|folder| folder.is_dir() && folder.starts_with("/usr"))
                .for_each(|folder| println!("cargo:rerun-if-changed={}", folder.display()));
            fs::write(Path::new(&object), [])
        }
        Err(error) => Err(error),
    }
}
