//! Tests with messages of another router that are late, repeated or unrequested: they change nothing. Valid messages of
//! the same type have an effect. The sockets are models that act immediately.

mod arriving;
mod greetings;
mod leaving;
mod offers;
mod stage;
