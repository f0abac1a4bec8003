//! The 64-bit words that each type adds to a fingerprint.
//!
//! [`Fold`] does not depend on the standard library's `Hash`: neither the layout of a type, nor the order of variants,
//! nor the version of the compiler changes a word. Each variant of an enum has a fixed number here, so a variant may be
//! anywhere in its enum. The macros destructure a type without `..`: a new field gives a compile error until it is
//! added to the list of the macro.

use crate::{Fingerprinter, Fold};
use wire::{Duration, Ipv4Addr, SocketAddrV4};

#[macro_use]
mod macros;
mod act;
mod input;
mod stream;
mod table;
mod wires;

/// Implements [`Fold`] for each given integer type: a value is one 64-bit word.
macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Fold for $type {
            fn fold(&self, into: &mut Fingerprinter) {
                into.word(u64::from(*self));
            }
        })*
    };
}

integers!(bool u16 u32 u64);

impl Fold for u8 {
    fn fold(&self, into: &mut Fingerprinter) {
        into.word(u64::from(*self));
    }

    fn fold_all(all: &[Self], into: &mut Fingerprinter) {
        into.bytes(all);
    }
}

impl Fold for usize {
    fn fold(&self, into: &mut Fingerprinter) {
        into.word(*self as u64);
    }
}

impl Fold for i64 {
    fn fold(&self, into: &mut Fingerprinter) {
        into.word(self.cast_unsigned());
    }
}

impl Fold for i16 {
    fn fold(&self, into: &mut Fingerprinter) {
        i64::from(*self).fold(into);
    }
}

impl<T: Fold + ?Sized> Fold for &T {
    fn fold(&self, into: &mut Fingerprinter) {
        (**self).fold(into);
    }
}

impl<T: Fold> Fold for Box<T> {
    fn fold(&self, into: &mut Fingerprinter) {
        (**self).fold(into);
    }
}

/// Folds the number of items first, so that `[[1], [2]]` and `[[1, 2]]` give different words.
impl<T: Fold> Fold for [T] {
    fn fold(&self, into: &mut Fingerprinter) {
        self.len().fold(into);
        T::fold_all(self, into);
    }
}

impl<T: Fold> Fold for Vec<T> {
    fn fold(&self, into: &mut Fingerprinter) {
        self.as_slice().fold(into);
    }
}

impl<T: Fold, const N: usize> Fold for [T; N] {
    fn fold(&self, into: &mut Fingerprinter) {
        T::fold_all(self, into);
    }
}

impl Fold for str {
    fn fold(&self, into: &mut Fingerprinter) {
        self.as_bytes().fold(into);
    }
}

impl Fold for String {
    fn fold(&self, into: &mut Fingerprinter) {
        self.as_str().fold(into);
    }
}

impl<T: Fold> Fold for Option<T> {
    fn fold(&self, into: &mut Fingerprinter) {
        match self {
            None => into.word(0),
            Some(value) => {
                into.word(1);
                value.fold(into);
            }
        }
    }
}

impl<T: Fold, E: Fold> Fold for Result<T, E> {
    fn fold(&self, into: &mut Fingerprinter) {
        match self {
            Ok(value) => {
                into.word(0);
                value.fold(into);
            }
            Err(error) => {
                into.word(1);
                error.fold(into);
            }
        }
    }
}

macro_rules! tuples {
    ($(($($item:ident)*))*) => {
        $(impl<$($item: Fold),*> Fold for ($($item,)*) {
            fn fold(&self, into: &mut Fingerprinter) {
                #[expect(non_snake_case, reason = "the names of the types are those of the items")]
                let ($($item,)*) = self;
                $($item.fold(into);)*
            }
        })*
    };
}

tuples!((A B) (A B C) (A B C D) (A B C D E));

/// Adds the time in nanoseconds as one word. All times of `u64::MAX` nanoseconds (584 years) or more add the same
/// word.
impl Fold for Duration {
    fn fold(&self, into: &mut Fingerprinter) {
        into.word(wire::nanos_of(*self));
    }
}

impl Fold for Ipv4Addr {
    fn fold(&self, into: &mut Fingerprinter) {
        into.word(u64::from(self.to_bits()));
    }
}

impl Fold for SocketAddrV4 {
    fn fold(&self, into: &mut Fingerprinter) {
        (self.ip(), self.port()).fold(into);
    }
}

#[cfg(test)]
mod tests;
