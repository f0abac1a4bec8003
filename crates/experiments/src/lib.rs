//! Many runs, on either backend: the experiments of papers, the contest of protocols, sweeps, and the agreement of the
//! backends.
//!
//! [`reproduce`] has the engine for experiments, and [`paper`] the experiments. [`contest`] uses the same engine.

pub mod agree;
pub mod batch;
pub mod catalogue;
pub mod contest;
mod drawn;
mod execute;
pub mod paper;
pub mod reproduce;
pub mod stats;
pub mod sweep;
