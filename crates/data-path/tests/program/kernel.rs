//! What the tests need of the kernel: test runs of a program, and a compiler for wrong ones.

use data_path::DataPath;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

pub(crate) const SOURCE: &str = include_str!("../../bpf/forward.bpf.c");
/// The index of the loopback, which is where the packets of a test run arrive.
pub(crate) const LOOPBACK: u32 = 1;
pub(crate) const PASS: u32 = 2;
pub(crate) const REDIRECT: u32 = 4;

/// Runs the program with a frame that arrives on the loopback. Returns its verdict, and the frame after it. No frame leaves.
pub(crate) fn test_run(path: &DataPath, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    const BPF_PROG_TEST_RUN: libc::c_int = 10;
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        program: u32,
        verdict: u32,
        size_in: u32,
        size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
        context: [u32; 2],
        contexts: [u64; 2],
        flags: u32,
        cpu: u32,
        batch: u32,
        unused: u32,
    }
    let program = path.program().unwrap().as_raw_fd();
    let mut out = vec![0; frame.len() + 256];
    let mut attributes = Attributes {
        program: program.cast_unsigned(),
        size_in: frame.len() as u32,
        size_out: out.len() as u32,
        data_in: frame.as_ptr() as u64,
        data_out: out.as_mut_ptr() as u64,
        repeat: 1,
        ..Attributes::default()
    };
    // SAFETY: the buffers and the attributes outlive the call, and their sizes are given.
    let done = unsafe {
        let size = size_of::<Attributes>();
        libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut attributes, size)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    out.truncate(attributes.size_out as usize);
    Ok((attributes.verdict, out))
}

/// Compiles a source as the crate's build does.
pub(crate) fn compile(folder: &Path, source: &str) -> Vec<u8> {
    let (from, to) = (folder.join("forward.bpf.c"), folder.join("forward.bpf.o"));
    std::fs::write(&from, source).unwrap();
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-c"]).arg(&from).arg("-o").arg(&to);
    assert!(clang.status().unwrap().success(), "clang refused the source");
    std::fs::read(to).unwrap()
}
