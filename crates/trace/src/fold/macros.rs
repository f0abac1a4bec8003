//! Implementations of [`Fold`](super::Fold) for structs and enums, from the list of their fields.

/// `fold_struct! { Type { field, field } }` folds the fields in the given order.
macro_rules! fold_struct {
    ($($type:ty { $($field:ident),* $(,)? })*) => {
        $(impl $crate::Fold for $type {
            fn fold(&self, into: &mut $crate::Fingerprinter) {
                let Self { $($field),* } = self;
                $($crate::Fold::fold($field, into);)*
            }
        })*
    };
}

/// `fold_newtype! { Type(item) }` folds the only item of a struct.
macro_rules! fold_newtype {
    ($($type:ident($item:ident))*) => {
        $(impl $crate::Fold for $type {
            fn fold(&self, into: &mut $crate::Fingerprinter) {
                let Self($item) = self;
                $crate::Fold::fold($item, into);
            }
        })*
    };
}

/// `fold_enum!(Type { 0 Variant(item), 1 Variant { field }, 2 Variant })` folds the variant's number, and then its
/// items or fields. The number of a variant must not change within one version of the fingerprint.
macro_rules! fold_enum {
    ($type:ty { $($number:literal $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl $crate::Fold for $type {
            fn fold(&self, into: &mut $crate::Fingerprinter) {
                match self {
                    $(Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        into.word($number);
                        $($($crate::Fold::fold($item, into);)*)?
                        $($($crate::Fold::fold($field, into);)*)?
                    })*
                }
            }
        }

        const _: () = $crate::fold::macros::assert_distinct(&[$($number),*]);
    };
}

/// Fails to compile if two variants have the same number.
pub(super) const fn assert_distinct(numbers: &[u64]) {
    let mut at = 0;
    while at < numbers.len() {
        let mut other = at + 1;
        while other < numbers.len() {
            assert!(numbers[at] != numbers[other], "two variants must not have the same number");
            other += 1;
        }
        at += 1;
    }
}
