//! Statistics of repeated runs, with the same definitions for every verb of `wayfare`.
//!
//! * [`Summary`]: median with its 95 % confidence interval, 5th and 95th percentile, mean.
//! * [`ks_distance`], [`ks_p_value`], [`ks_critical`]: the two-sample Kolmogorov-Smirnov test.
//! * [`median_difference`], [`mean_difference`]: with 95 % bootstrap intervals.
//! * [`slope`], [`r_squared`]: a straight line by least squares.
//!
//! A value may be infinite: an outage that never ended. It is larger than every other value.

mod line;
mod summary;
mod two_samples;

pub use line::{r_squared, slope};
pub(crate) use summary::number;
pub use summary::{Interval, Summary, mean, median, nearest_to_median};
pub use two_samples::{
    Difference, ks_critical, ks_distance, ks_distance_within, ks_p_value, mean_difference, mean_interval,
    median_difference,
};
