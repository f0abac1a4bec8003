//! Shrinks a failing draft while the same judge still finds a violation.

use crate::draft::{Detection, Draft, Kind, Protocol};
use crate::judge::Judge;
use crate::options::{Clock, Offers, Visited};
use crate::run::{Verdict, run};

/// The maximum number of runs to shrink one draft.
const RUNS: usize = 400;

/// Returns the simplest draft that was found, and in which this judge still finds a violation. Returns `draft` if no
/// simpler one was found. Tries at most 400 drafts.
pub fn shrink(draft: &Draft, judge: Judge) -> Draft {
    let mut best = draft.clone();
    let mut runs = 0;
    loop {
        let mut better = false;
        for candidate in candidates(&best) {
            if runs == RUNS {
                return best;
            }
            runs += 1;
            if violates(&candidate, judge) {
                best = candidate;
                better = true;
                break;
            }
        }
        if !better {
            return best;
        }
    }
}

fn violates(draft: &Draft, judge: Judge) -> bool {
    matches!(run(draft, None), Verdict::Ran(found) if found.iter().any(|violation| violation.judge == judge))
}

/// Returns simpler drafts. Those with fewer hosts or faults come first.
fn candidates(draft: &Draft) -> Vec<Draft> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Draft)| {
        let mut candidate = draft.clone();
        change(&mut candidate);
        if candidate != *draft {
            all.push(candidate);
        }
    };
    for host in (0..draft.hosts.len()).rev().filter(|_| draft.hosts.len() > 1) {
        with(&|draft| remove_host(draft, host));
    }
    for fault in (0..draft.faults.len()).rev() {
        with(&|draft| drop_at(&mut draft.faults, fault));
    }
    with(&|draft| draft.detection = Detection::DEFAULT);
    for options in draft.options.simpler() {
        with(&|draft| {
            draft.options = options;
            draft.hosts.iter_mut().filter(|_| !options.has_homes).for_each(|host| host.home = 0);
            draft
                .hosts
                .iter_mut()
                .filter(|_| options.interfaces.is_none())
                .for_each(|host| host.second = None);
        });
    }
    with(&|draft| draft.routers.iter_mut().for_each(|router| router.clock = Clock::default()));
    with(&|draft| draft.hosts.iter_mut().for_each(|host| host.clock = Clock::default()));
    with(&|draft| draft.routers.iter_mut().for_each(|router| router.visited = Visited::Plain));
    with(&|draft| draft.routers.iter_mut().for_each(|router| router.offers = Offers::ALL));
    with(&|draft| draft.links_mut().for_each(|link| link.loss = 0));
    with(&|draft| draft.links_mut().for_each(|link| link.mtu = 1500));
    for (index, host) in draft.hosts.iter().enumerate() {
        let moves = host.moves.len();
        with(&|draft| cut_moves(draft, index, moves / 2, moves));
        with(&|draft| cut_moves(draft, index, 0, moves / 2));
        (0..moves).rev().for_each(|step| with(&|draft| cut_moves(draft, index, step, step + 1)));
        with(&|draft| draft.hosts[index].second = None);
        for turn in (0..host.second.as_ref().map_or(0, |second| second.turns.len())).rev() {
            with(&|draft| {
                draft.hosts[index].second.iter_mut().for_each(|second| second.turns.truncate(turn));
            });
        }
        for work in (0..host.work.len()).rev().filter(|_| host.work.len() > 1) {
            with(&|draft| drop_at(&mut draft.hosts[index].work, work));
        }
    }
    with(&unvisited);
    with(&|draft| draft.faults.iter_mut().for_each(|fault| fault.lasts /= 2));
    with(&|draft| {
        draft.hosts.iter_mut().flat_map(|host| &mut host.work).for_each(|work| smaller(&mut work.kind));
    });
    with(&|draft| draft.links_mut().for_each(|link| link.delay_us = 1000));
    for link in 0..=draft.routers.len() * 2 {
        with(&|draft| draft.links_mut().skip(link).take(1).for_each(|link| link.loss = 0));
        with(&|draft| draft.links_mut().skip(link).take(1).for_each(|link| link.mtu = 1500));
        with(&|draft| draft.links_mut().skip(link).take(1).for_each(|link| link.delay_us = 1000));
    }
    with(&|draft| draft.retune_ms = 5);
    all
}

fn remove_host(draft: &mut Draft, index: usize) {
    draft.hosts.remove(index);
    for work in draft.hosts.iter_mut().flat_map(|host| &mut host.work) {
        work.peer = match work.peer {
            Some(peer) if peer == index => None,
            Some(peer) if peer > index => Some(peer - 1),
            other => other,
        };
    }
    draft.faults.retain(|fault| fault.mobile() != Some(index));
    for fault in &mut draft.faults {
        *fault = fault.renumbered(|router| router, |host| if host > index { host - 1 } else { host });
    }
}

fn drop_at<T>(list: &mut Vec<T>, index: usize) {
    let _ = list.remove(index);
}

/// Removes the moves `from..to` of a host, and then each move to the cell in which the host already is.
fn cut_moves(draft: &mut Draft, host: usize, from: usize, to: usize) {
    let Some(host) = draft.hosts.get_mut(host) else { return };
    host.moves.drain(from..to.max(from));
    let mut here = host.start;
    host.moves.retain(|step| std::mem::replace(&mut here, step.to) != step.to);
}

fn smaller(kind: &mut Kind) {
    match kind {
        Kind::Down(bytes) | Kind::Up(bytes) => *bytes = (*bytes / 2).max(100),
        Kind::Asks { count, .. } => *count = (*count / 2).max(1),
        Kind::Datagrams { .. } => {}
    }
}

/// Removes routers that no host visits, that no fault affects, and that have no node below them. Keeps the router with
/// index 0, and at least as many routers as the protocol needs.
fn unvisited(draft: &mut Draft) {
    let tree = draft.protocol == Protocol::CellularIp;
    let least = if tree { 2 } else { 1 };
    // If the last child of a node is removed, the node becomes a leaf and gets a cell. No host is ever in it.
    for index in (1..draft.routers.len()).rev() {
        let comes = draft.hosts.iter().any(|host| {
            crate::write::visited(host).contains(&index)
                || host.second.as_ref().is_some_and(|second| second.cell == index)
                || (draft.options.has_homes && host.home == index)
        });
        let is_parent = tree && draft.routers.iter().skip(1).any(|router| router.parent == index);
        let fails = draft.faults.iter().any(|fault| fault.router() == Some(index));
        if !comes && !is_parent && !fails && draft.routers.len() > least {
            remove_router(draft, index);
        }
    }
}

fn remove_router(draft: &mut Draft, index: usize) {
    let lower = |number: usize| if number > index { number - 1 } else { number };
    draft.routers.remove(index);
    for router in &mut draft.routers {
        router.parent = lower(router.parent);
    }
    for host in &mut draft.hosts {
        host.start = lower(host.start);
        host.home = lower(host.home);
        host.second.iter_mut().for_each(|second| second.cell = lower(second.cell));
        host.moves.iter_mut().for_each(|step| step.to = lower(step.to));
    }
    for fault in &mut draft.faults {
        *fault = fault.renumbered(lower, |host| host);
    }
}

#[cfg(test)]
mod tests;
