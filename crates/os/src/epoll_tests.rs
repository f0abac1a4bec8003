//! Tests which descriptors an epoll instance reports, how often, and after which changes.

use super::*;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Returns the tokens that are ready now.
fn tokens(epoll: &Epoll) -> Vec<u64> {
    let mut ready = Vec::new();
    epoll.wait(&mut ready, Some(&Timespec::default())).unwrap();
    ready.iter().map(|ready| ready.token).collect()
}

fn counter(value: u32) -> OwnedFd {
    eventfd(value, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

#[test]
fn a_descriptor_is_reported_as_long_as_what_it_waits_for_holds() {
    let (epoll, fd) = (Epoll::new().unwrap(), counter(1));
    epoll.add(&fd, 7, Events::IN).unwrap();
    assert_eq!(epoll.add(&fd, 8, Events::IN), Err(Errno::EXIST));
    assert_eq!((tokens(&epoll), tokens(&epoll)), (vec![7], vec![7]));
    epoll.modify(&fd, 9, Events::empty()).unwrap();
    assert!(tokens(&epoll).is_empty());
    epoll.modify(&fd, 9, Events::IN).unwrap();
    assert_eq!(tokens(&epoll), [9], "what arrived before is reported");
    epoll.remove(&fd).unwrap();
    assert!(tokens(&epoll).is_empty());
    assert_eq!(epoll.remove(&fd), Err(Errno::NOENT));
    assert_eq!(epoll.modify(&fd, 9, Events::IN), Err(Errno::NOENT));
}

#[test]
fn a_peer_that_has_gone_is_reported_once_to_a_descriptor_that_waits_for_nothing() {
    let (epoll, (ours, mut theirs)) = (Arc::new(Epoll::new().unwrap()), UnixStream::pair().unwrap());
    let mut ours = Watched::new(&epoll, ours, 3, Events::empty()).unwrap();
    theirs.write_all(b"data").unwrap();
    assert!(tokens(&epoll).is_empty());
    drop(theirs);
    let mut ready = Vec::new();
    epoll.wait(&mut ready, Some(&Timespec::default())).unwrap();
    assert!(ready.iter().all(|ready| ready.token == 3 && ready.events.contains(Events::HUP)));
    assert_eq!((ready.len(), tokens(&epoll).len()), (1, 0));
    ours.want(Events::IN).unwrap();
    assert_eq!((ours.wanted(), tokens(&epoll), tokens(&epoll)), (Events::IN, vec![3], vec![3]));
    let mut text = String::new();
    ours.source_mut().read_to_string(&mut text).unwrap();
    assert_eq!(text, "data");
}

/// The kernel keeps a registration while a copy of the descriptor is open. So a dropped [`Watched`] must remove its
/// registration.
#[test]
fn a_closed_descriptor_is_not_reported_although_a_copy_is_open() {
    let (epoll, fd) = (Arc::new(Epoll::new().unwrap()), counter(1));
    let copy = fd.try_clone().unwrap();
    let watched = Watched::new(&epoll, fd, 1, Events::IN).unwrap();
    assert_eq!(tokens(&epoll), [1]);
    drop(watched);
    assert!(tokens(&epoll).is_empty());
    drop(copy);
}

#[test]
fn a_number_that_is_used_again_has_the_new_token() {
    let epoll = Arc::new(Epoll::new().unwrap());
    let first = Watched::new(&epoll, counter(1), 1, Events::IN).unwrap();
    let (number, mut ready) = (first.as_raw_fd(), Vec::new());
    epoll.wait(&mut ready, Some(&Timespec::default())).unwrap();
    drop(first);
    let copies: Vec<OwnedFd> = (0..64).map(|_| counter(0)).collect();
    let same = copies.into_iter().find(|fd| fd.as_raw_fd() == number);
    // Other tests of this process may have taken the descriptor's number.
    if let Some(same) = same {
        let mut second = Watched::new(&epoll, same, 2, Events::IN).unwrap();
        assert!(tokens(&epoll).is_empty());
        second.replace(counter(5)).unwrap();
        assert_eq!(tokens(&epoll), [2]);
    }
    assert_eq!(ready, [Ready { token: 1, events: Events::IN }]);
}

#[test]
fn no_descriptor_waits_for_ever_behind_others_that_stay_ready() {
    let epoll = Epoll::new().unwrap();
    let all: Vec<OwnedFd> = (0..3 * BATCH as u64 + 5)
        .map(|token| {
            let fd = counter(1);
            epoll.add(&fd, token, Events::IN).unwrap();
            fd
        })
        .collect();
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        let ready = tokens(&epoll);
        assert!(ready.len() == BATCH && ready.is_sorted(), "{ready:?}");
        seen.extend(ready);
    }
    assert_eq!(seen.len(), all.len());
}

/// A signal ends a wait early, with no ready descriptor.
#[test]
fn a_signal_is_no_error() {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: the handler does nothing, and is a function of the type that the kernel calls.
    unsafe { libc::signal(libc::SIGUSR2, ignore as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    let epoll = Epoll::new().unwrap();
    let (waiting, is_waiting) = std::sync::mpsc::channel();
    let waits = std::thread::spawn(move || {
        // SAFETY: it only returns this thread's id.
        waiting.send(unsafe { libc::pthread_self() }).unwrap();
        let mut ready = vec![Ready { token: 1, events: Events::IN }];
        epoll.wait(&mut ready, Some(&Timespec { tv_sec: 30, tv_nsec: 0 })).unwrap();
        ready.len()
    });
    let thread = is_waiting.recv().unwrap();
    let clock = crate::Clock::start();
    while !waits.is_finished() {
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
        crate::pause(wire::Duration::from_millis(5));
    }
    assert_eq!(waits.join().unwrap(), 0);
    assert!(clock.now() < wire::Instant::from_millis(20_000));
}
