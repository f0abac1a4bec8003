//! Messages of another router that are late, repeated or unrequested: they change nothing. Beside each is the message
//! that counts. The sockets are models that act at once.

mod arriving;
mod greetings;
mod leaving;
mod offers;
mod stage;
