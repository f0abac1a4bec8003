//! Tests of figures and captures.

#![cfg(test)]

#[path = "tshark.rs"]
mod captures;
mod figures;
#[path = "../../../tests/support/tshark.rs"]
mod tshark;
