//! What another router says too late, twice, or of what it was not asked: it changes nothing. Beside each is the message that
//! counts. The sockets are models that do at once what they are told.

#![cfg(test)]

mod arriving;
#[path = "../support/config.rs"]
mod config;
mod greetings;
mod leaving;
mod offers;
mod stage;
#[path = "../support/tcp.rs"]
mod tcp;
