//! A straight line through points.

use super::mean;

/// Returns the slope of the least-squares line, or `None` unless two x values differ.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let x = mean(&points.iter().map(|point| point.0).collect::<Vec<_>>())?;
    let y = mean(&points.iter().map(|point| point.1).collect::<Vec<_>>())?;
    let across: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let along: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (across > 0.0).then(|| along / across)
}

/// Returns the share of the variance that the line of [`slope`] explains, from 0 to 1. `None` unless two x values and
/// two y values differ.
pub fn r_squared(points: &[(f64, f64)]) -> Option<f64> {
    let back: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*y, *x)).collect();
    Some(slope(points)? * slope(&back)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_a_cloud_the_best_one() {
        let line: Vec<(f64, f64)> = [1.0, 2.0, 4.0].map(|x| (x, 3.0 * x - 5.0)).to_vec();
        assert!((slope(&line).unwrap() - 3.0).abs() < 1e-12);
        // Computed by hand: the means are 2 and 3, the sum of products is 3, and the sum of squares of x is 2.
        assert!((slope(&[(1.0, 2.0), (2.0, 2.0), (3.0, 5.0)]).unwrap() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_line_explains_all_and_a_cloud_less() {
        assert!((r_squared(&[(1.0, 2.0), (2.0, 4.0), (4.0, 8.0)]).unwrap() - 1.0).abs() < 1e-12);
        // Computed by hand: the sum of products is 3, and the sums of squares are 2 and 6.
        assert!((r_squared(&[(1.0, 2.0), (2.0, 2.0), (3.0, 5.0)]).unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(r_squared(&[(1.0, 2.0), (2.0, 2.0)]), None);
    }

    #[test]
    fn points_without_a_line_have_no_slope() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[(1.0, 2.0)]), None);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 9.0)]), None);
    }
}
