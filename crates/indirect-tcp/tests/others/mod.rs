//! Tests with messages of another router that are late, repeated or unrequested: they change nothing. Valid messages of
//! the same type have an effect. The sockets are models that act at once.

mod arriving;
mod greetings;
mod leaving;
mod offers;
mod stage;
