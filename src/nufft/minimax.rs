//! Windows of least worst error: the largest error of all voxels is as small as a window of so many cells and
//! polynomials of such a degree allow. examples/windows.rs says how they are found, and writes the table.

use super::minimax_table::{Family, FAMILIES};

/// What stands in a row before the parts.
const BEFORE: usize = 3;

impl Family {
    /// Numbers of a mode.
    fn mode(&self) -> usize {
        self.width.div_ceil(2) * (self.degree + 1)
    }

    fn row(&self, row: usize) -> &'static [f64] {
        let len = BEFORE + self.modes.len() / self.mode();
        &self.rows[row * len..][..len]
    }

    /// How many rows begin at this oversampling or below.
    fn rows_up_to(&self, sigma: f64) -> usize {
        let (mut low, mut high) = (0, self.rows.len() / (BEFORE + self.modes.len() / self.mode()));
        while low < high {
            let middle = low.midpoint(high);
            if self.row(middle)[0] <= sigma {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Minimax {
    family: usize,
    row: usize,
}

impl Minimax {
    /// The windows of a width for this oversampling (grid over image size), those of the least degree first. Each is
    /// the one for the largest oversampling of the table that is not above: its error holds from there on.
    pub fn of(width: usize, sigma: f64) -> impl Iterator<Item = Minimax> {
        let of_width = FAMILIES.iter().enumerate().filter(move |(_, family)| family.width == width);
        of_width
            .filter_map(move |(i, family)| Some(Minimax { family: i, row: family.rows_up_to(sigma).checked_sub(1)? }))
    }

    fn row(&self) -> &'static [f64] {
        FAMILIES[self.family].row(self.row)
    }

    /// The frequency of the last voxel that the row holds for.
    fn edge(&self) -> f64 {
        0.5 / self.row()[0]
    }

    /// The largest error of the voxels up to the frequency `edge`, which the row must hold for: that of its own edge.
    /// The error is nearly the same in all voxels.
    pub fn worst_error(&self, edge: f64) -> f64 {
        assert!(
            edge <= self.edge() * (1.0 + 1e-12),
            "the window is for frequencies to {}, and not to {edge}",
            self.edge()
        );
        self.row()[1]
    }

    /// The root mean square of F(0)/F(xi) up to the frequency `edge`, or a little more: its square is a power series
    /// of xi^2 with positive coefficients, and lies below the parabola through its values in the centre and at the
    /// row's edge.
    pub fn amplification(&self, edge: f64) -> f64 {
        let (at_edge, part) = (self.row()[2], edge / self.edge());
        (1.0 + (at_edge * at_edge - 1.0) * part * part).sqrt()
    }

    /// The polynomials of the taps in t = 2 f - 1: coefficients [degree + 1][width], highest power first.
    pub fn taps(&self) -> Vec<Vec<f64>> {
        let Family { width, degree, modes, .. } = FAMILIES[self.family];
        let modes = modes.chunks_exact(FAMILIES[self.family].mode());
        let mut half = vec![0.0; FAMILIES[self.family].mode()];
        for (mode, part) in modes.zip(&self.row()[BEFORE..]) {
            half.iter_mut().zip(mode).for_each(|(sum, c)| *sum += part * c);
        }
        // The window is even: the taps of the other half have the odd powers with the other sign.
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
                assert!(Minimax::of(width, 1.25 + step as f64 * 0.05).next().is_some(), "{width}");
            }
            assert!(Minimax::of(width, 1.2499).next().is_none());
        }
        assert!(FAMILIES.is_sorted_by_key(|f| (f.width, f.degree)));
        assert!(FAMILIES.iter().all(|f| f.degree <= MAX_DEGREE));
    }

    #[test]
    fn rows_rise_in_oversampling_and_fall_in_error() {
        for (i, family) in FAMILIES.iter().enumerate() {
            let count = family.rows_up_to(f64::INFINITY);
            assert_eq!(family.rows.len(), count * family.row(0).len());
            for row in 1..count {
                let [before, now] = [row - 1, row].map(|row| Minimax { family: i, row }.row());
                assert!(before[0] < now[0] && before[1] > now[1] && before[2] > now[2], "family {i} row {row}");
                // What is lost between rows, where images are not small.
                if family.width < 9 && now[0] <= 2.0 {
                    assert!(before[1] < 1.12 * now[1], "family {i} row {row}");
                }
            }
        }
    }

    #[test]
    fn the_row_of_the_next_smaller_oversampling_is_used() {
        let family = FAMILIES.iter().position(|f| f.width == 6 && f.degree == 6).unwrap();
        let sigma = FAMILIES[family].row(7)[0];
        for (sigma, row) in [(sigma, 7), (sigma - 1e-9, 6), (sigma + 1e-9, 7)] {
            assert!(Minimax::of(6, sigma).any(|m| m == Minimax { family, row }));
        }
    }
}
