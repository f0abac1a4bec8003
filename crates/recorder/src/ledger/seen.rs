//! The recorded steps of one packet, in the order of time.

use super::Places;
use super::chain::Chain;
use super::step::{Kind, Step};
use wire::{EtherType, Packet, fragment};

/// The recorded steps of one packet, whether they are one chain, and how many copies are on links.
#[derive(Default)]
pub(super) struct Seen {
    steps: Vec<Step>,
    chain: Chain,
    /// The number of copies on links: those sent on links or made by links, less those received from, lost on or held
    /// by links.
    under_way: i32,
    /// Whether the packet was finalised before these steps. Then the steps are of a copy that a node had kept without a
    /// record, or of a repeated transmission.
    was_closed: bool,
    /// Whether some of the copies were fragments of the packet.
    is_cut: bool,
    /// The number of losses of fragments. Only the first is counted.
    lost_fragments: u32,
}

impl Seen {
    /// Notes the bytes of a step.
    #[inline]
    pub(super) fn note_bytes(&mut self, packet: &Packet) {
        self.is_cut |= packet.link.kind == EtherType::IPV4 && fragment::is_in(&packet.bytes);
    }

    /// Notes a loss. Returns whether it is counted: of the fragments of a datagram, only the first loss is.
    pub(super) fn lose(&mut self) -> bool {
        self.lost_fragments += u32::from(self.is_cut);
        self.lost_fragments <= 1
    }

    /// Returns whether some of the copies were fragments of the packet.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of losses of fragments.
    pub(super) const fn lost_fragments(&self) -> u32 {
        self.lost_fragments
    }

    #[expect(
        clippy::inline_always,
        reason = "the callers know the kind of each step, so the compiler removes most of this"
    )]
    #[inline(always)]
    pub(super) fn add(&mut self, step: Step, places: &Places) {
        self.under_way += match step.kind {
            Kind::ToLink => 1,
            Kind::FromLink | Kind::LostByLink | Kind::HeldByLink => -1,
            _ => 0,
        };
        self.chain = self.chain.after(&step, places);
        self.steps.push(step);
    }

    /// Adds copies that a link made, which will be received later.
    pub(super) fn will_come(&mut self, more: u8) {
        self.under_way += i32::from(more);
    }

    /// Returns whether a copy is on a link, so that the packet cannot be finalised yet.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// Marks the packet as finalised before.
    pub(super) fn open_again(&mut self) {
        self.was_closed = true;
    }

    /// Returns whether the first copy of the packet is among these steps.
    pub(super) const fn is_first(&self) -> bool {
        !self.was_closed
    }

    /// Returns the state of the chain.
    pub(super) const fn chain(&self) -> Chain {
        self.chain
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Clears all steps, and keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.chain = Chain::Nowhere;
        self.under_way = 0;
        self.was_closed = false;
        self.is_cut = false;
        self.lost_fragments = 0;
    }
}
