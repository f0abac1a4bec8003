//! Tests of the whole house stand beside this file.

/// Law 7: nothing in [`node::Input`] or [`node::Act`] is more than data. Whoever passes this can be recorded,
/// compared and replayed.
///
/// ```
/// house_tests::plain::<node::Input<'static>>();
/// house_tests::plain::<node::Act>();
/// ```
///
/// What could not be written down and read back does not compile:
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
