//! Helpers of the tests of the whole workspace, which are in the folder above.

pub mod source;

/// Compiles only for a type that contains only data, as law 7 requires of [`node::Input`] and [`node::Act`]. A value of
/// such a type can be recorded, compared and replayed.
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
