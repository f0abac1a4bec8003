//! Memory of array maps that the program and this process read and write.

use aya::maps::MapInfo;
use os::{Attempt, Result};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The elements of an array map, as numbers of 64 bits.
#[derive(Debug)]
pub(crate) struct Shared {
    at: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory belongs to this value alone in this process, and is used by atomic operations only.
unsafe impl Send for Shared {}

impl Shared {
    /// Maps the elements of an array map, whose size must be a multiple of eight bytes.
    pub(crate) fn new(map: BorrowedFd<'_>, info: &MapInfo) -> Result<Self> {
        Self::of_file(map, info.value_size() as usize / 8 * info.max_entries() as usize)
    }

    /// Maps this number of 64-bit numbers of a file.
    pub(crate) fn of_file(file: BorrowedFd<'_>, words: usize) -> Result<Self> {
        // SAFETY: the kernel chooses an address that is free, and checks the length. Nothing else uses the memory.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let at = if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) };
        let at = at.attempt("share the memory of", "a map")?;
        let at = NonNull::new(at.cast())
            .ok_or(io::ErrorKind::OutOfMemory)
            .attempt("share the memory of", "a map")?;
        Ok(Self { at, words })
    }

    /// Returns a number, and what the program wrote before it. Returns 0 behind the end.
    pub(crate) fn read(&self, index: usize) -> u64 {
        if index >= self.words {
            return 0;
        }
        // SAFETY: the index is inside of the memory, which is mapped while this value lives. The address of the mapping is that of
        // a page, so each number is aligned.
        unsafe { self.at.add(index).as_ref() }.load(Ordering::Acquire)
    }

    /// Writes a number. What this process did before is done when the program sees it.
    pub(crate) fn write(&self, index: usize, number: u64) {
        if index < self.words {
            // SAFETY: as for `read`.
            unsafe { self.at.add(index).as_ref() }.store(number, Ordering::Release);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.words * 8) };
    }
}
