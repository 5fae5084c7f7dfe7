//! Minimax windows: the largest error of all voxels is as small as the width of the window and the degree of its
//! polynomials allow. examples/windows.rs describes the method and writes the table.

use super::minimax_table::{Family, FAMILIES};

/// Number of values in a row before the parts: oversampling, worst error, amplification.
const ROW_HEADER: usize = 3;

impl Family {
    /// Returns the number of coefficients of a mode.
    fn mode_len(&self) -> usize {
        self.width.div_ceil(2) * (self.degree + 1)
    }

    /// Returns the number of values of a row.
    fn row_len(&self) -> usize {
        ROW_HEADER + self.modes.len() / self.mode_len()
    }

    /// Returns a row of the table.
    fn row(&self, row: usize) -> &'static [f64] {
        let len = self.row_len();
        &self.rows[row * len..][..len]
    }

    /// Returns the number of rows whose oversampling is at most `sigma`.
    fn rows_up_to(&self, sigma: f64) -> usize {
        let len = self.row_len();
        let (mut low, mut high) = (0, self.rows.len() / len);
        while low < high {
            let middle = low.midpoint(high);
            if self.rows[middle * len] <= sigma {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A window of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MinimaxWindow {
    family: usize,
    row: usize,
}

impl MinimaxWindow {
    /// Returns the windows of a width for an oversampling (grid over image size), with ascending degree. Each is the
    /// window for the next smaller oversampling in the table: its error applies to all larger ones.
    pub fn of(width: usize, sigma: f64) -> impl Iterator<Item = MinimaxWindow> {
        let first = FAMILIES.partition_point(|family| family.width < width);
        let families = FAMILIES.iter().enumerate().skip(first).take_while(move |(_, family)| family.width == width);
        families.filter_map(move |(i, family)| {
            Some(MinimaxWindow { family: i, row: family.rows_up_to(sigma).checked_sub(1)? })
        })
    }

    /// Returns the row of this window.
    fn row(&self) -> &'static [f64] {
        FAMILIES[self.family].row(self.row)
    }

    /// Returns the largest voxel frequency for which the window was computed.
    fn edge(&self) -> f64 {
        0.5 / self.row()[0]
    }

    /// Returns the error of the worst voxel at the edge of the row.
    pub fn error_at_edge(&self) -> f64 {
        self.row()[1]
    }

    /// Returns the largest error of the voxels up to the frequency `edge`. The error at the edge of the row is
    /// returned, as the error is nearly the same in all voxels.
    pub fn worst_error(&self, edge: f64) -> f64 {
        assert!(edge <= self.edge() * (1.0 + 1e-12), "the window is for frequencies up to {}, not {edge}", self.edge());
        self.error_at_edge()
    }

    /// Returns an upper bound, close to the value, of the root mean square of F(0)/F(xi) up to the frequency `edge`.
    /// Its square is a power series of xi^2 with positive coefficients. So it is below the parabola through its values
    /// at the centre and at the edge of the row.
    pub fn amplification(&self, edge: f64) -> f64 {
        let (at_edge, part) = (self.row()[2], edge / self.edge());
        (1.0 + (at_edge * at_edge - 1.0) * part * part).sqrt()
    }

    /// Returns the polynomials of the taps in t = 2 f - 1: coefficients [degree + 1][width], highest power first.
    pub fn taps(&self) -> Vec<Vec<f64>> {
        let Family { width, degree, modes, .. } = FAMILIES[self.family];
        let modes = modes.chunks_exact(FAMILIES[self.family].mode_len());
        let mut half = vec![0.0; FAMILIES[self.family].mode_len()];
        for (mode, part) in modes.zip(&self.row()[ROW_HEADER..]) {
            half.iter_mut().zip(mode).for_each(|(sum, c)| *sum += part * c);
        }
        // The window is even: in the other half of the taps, odd powers have the opposite sign.
        let coefficient = |tap: usize, power: usize| match 2 * tap < width {
            true => half[tap * (degree + 1) + power],
            false if power % 2 == 0 => half[(width - 1 - tap) * (degree + 1) + power],
            false => -half[(width - 1 - tap) * (degree + 1) + power],
        };
        (0..=degree).rev().map(|power| (0..width).map(|tap| coefficient(tap, power)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{MAX_DEGREE, MAX_WIDTH};

    #[test]
    fn every_width_and_oversampling_has_a_window() {
        for width in 2..=MAX_WIDTH {
            for step in 0..=50 {
                assert!(MinimaxWindow::of(width, 1.25 + step as f64 * 0.05).next().is_some(), "{width}");
            }
            assert!(MinimaxWindow::of(width, 1.2499).next().is_none());
        }
        assert!(FAMILIES.is_sorted_by_key(|f| (f.width, f.degree)));
        assert!(FAMILIES.iter().all(|f| f.degree <= MAX_DEGREE));
    }

    #[test]
    fn rows_have_ascending_oversampling_and_descending_error() {
        for (i, family) in FAMILIES.iter().enumerate() {
            let count = family.rows_up_to(f64::INFINITY);
            assert_eq!(family.rows.len(), count * family.row(0).len());
            for row in 1..count {
                let [previous, current] = [row - 1, row].map(|row| MinimaxWindow { family: i, row }.row());
                assert!(
                    previous[0] < current[0] && previous[1] > current[1] && previous[2] > current[2],
                    "family {i} row {row}"
                );
                // The loss between rows, except for small images.
                if family.width < 9 && current[0] <= 2.0 {
                    assert!(previous[1] < 1.12 * current[1], "family {i} row {row}");
                }
            }
        }
    }

    #[test]
    fn row_of_the_next_smaller_oversampling_is_used() {
        let family = FAMILIES.iter().position(|f| f.width == 6 && f.degree == 6).unwrap();
        let sigma = FAMILIES[family].row(7)[0];
        for (sigma, row) in [(sigma, 7), (sigma - 1e-9, 6), (sigma + 1e-9, 7)] {
            assert!(MinimaxWindow::of(6, sigma).any(|m| m == MinimaxWindow { family, row }));
        }
    }
}
