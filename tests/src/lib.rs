//! The tests of the whole workspace are beside this file.

pub mod source;

/// Law 7: [`node::Input`] and [`node::Act`] contain only data. A value of a type that passes this check can be
/// recorded, compared and replayed.
///
/// ```
/// house_tests::plain::<node::Input<'static>>();
/// house_tests::plain::<node::Act>();
/// ```
///
/// A type that cannot be recorded and read back does not compile:
///
/// ```compile_fail
/// house_tests::plain::<std::sync::mpsc::Sender<u8>>();
/// ```
///
/// ```compile_fail
/// house_tests::plain::<Box<dyn Fn(u8) + Send>>();
/// ```
///
/// ```compile_fail
/// house_tests::plain::<std::fs::File>();
/// ```
pub const fn plain<T: Clone + Eq + std::hash::Hash + std::fmt::Debug + Send>() {}
