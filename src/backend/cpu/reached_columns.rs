//! The columns of the grid that the windows of samples reach.
//!
//! All other columns are zero after spreading, and are not read by interpolation. In 3D they need no transform along z,
//! as at the corners of a k-space that is covered up to a sphere, and nearly everywhere for a few spokes.

use crate::base::error::{try_collect, try_vec, Result};
use crate::base::sizes::product;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Number of cells along x that are marked together: the lines of a vector of single precision.
const UNIT: usize = 8;

/// Returns the number of units of a row of `cells` cells.
fn units(cells: usize) -> usize {
    cells.div_ceil(UNIT)
}

/// The columns in which windows start, which several threads mark.
pub struct ColumnMarks {
    /// Cells of a row, and the number of rows.
    size: [usize; 2],
    /// [row][unit].
    marks: Vec<AtomicU8>,
}

impl ColumnMarks {
    /// Creates marks for rows of `size[0]` cells. All `size[1]` rows are distinguished if there are three axes.
    pub fn new(size: [usize; 3]) -> Result<ColumnMarks> {
        let size = [size[0], if size[2] > 1 { size[1] } else { 1 }];
        let count = units(size[0]) * size[1];
        Ok(ColumnMarks { size, marks: try_collect(count, WHAT, (0..count).map(|_| AtomicU8::new(0)))? })
    }

    /// Marks the cells `x` of a row. Cells and rows behind the end of the grid are those at its start.
    #[inline(always)]
    pub fn mark(&self, row: usize, x: Range<usize>) {
        let [cells, rows] = self.size;
        let units = units(cells);
        // Divisions are slow, and most rows are inside the grid.
        let row = match rows {
            1 => 0,
            _ if row < rows => row,
            _ => row % rows,
        };
        let marks = &self.marks[row * units..][..units];
        let mark = |x: Range<usize>| {
            for mark in &marks[x.start / UNIT..self::units(x.end)] {
                // Most marks exist, and a thread that writes takes the cache line from the others.
                if mark.load(Ordering::Relaxed) == 0 {
                    mark.store(1, Ordering::Relaxed);
                }
            }
        };
        mark(x.start..x.end.min(cells));
        if x.end > cells {
            mark(0..(x.end - cells).min(cells));
        }
    }

    /// Returns the columns that windows of `height` rows reach from the marks on.
    pub fn reached(self, height: usize) -> Result<ReachedColumns> {
        let [cells, rows] = self.size;
        let units = units(cells);
        let marks = try_collect(self.marks.len(), WHAT, self.marks.into_iter().map(AtomicU8::into_inner))?;
        let mut columns = try_vec(marks.len(), 0, WHAT)?;
        let mut any = try_vec(units, 0, WHAT)?;
        let add = |to: &mut [u8], from: &[u8]| to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
        for row in 0..rows {
            let marks = &marks[row * units..][..units];
            add(&mut any, marks);
            for reached in 0..height.min(rows) {
                add(&mut columns[(row + reached) % rows * units..][..units], marks);
            }
        }
        Ok(ReachedColumns { rows, columns, any })
    }
}

const WHAT: &str = "the columns of the grid";

/// The columns of the grid that the windows of samples reach.
pub struct ReachedColumns {
    rows: usize,
    /// [row][unit]: 1 if a window reaches one of the cells.
    columns: Vec<u8>,
    /// [unit]: 1 if a window reaches one of the cells in any row.
    any: Vec<u8>,
}

impl ReachedColumns {
    /// Returns the columns of a grid without samples.
    pub fn none() -> ReachedColumns {
        ReachedColumns { rows: 0, columns: Vec::new(), any: Vec::new() }
    }

    /// Returns whether one of `count` columns along z is reached, from cell `first` of row `row` on.
    pub fn contains(&self, row: usize, first: usize, count: usize) -> bool {
        debug_assert!(row < self.rows);
        let units = self.any.len();
        is_any(&self.columns[row * units..][..units], first, count)
    }

    /// Returns whether one of the cells is reached in any row, from cell `first` on.
    pub fn contains_in_any_row(&self, first: usize, count: usize) -> bool {
        is_any(&self.any, first, count)
    }

    /// Estimates the bytes held for a grid.
    pub fn bytes(size: [usize; 3]) -> usize {
        product(&[units(size[0]), if size[2] > 1 { size[1] } else { 1 }])
    }
}

/// Returns whether one of the units of `count` cells is marked.
fn is_any(row: &[u8], first: usize, count: usize) -> bool {
    row[first / UNIT..units(first + count)].iter().any(|&mark| mark != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the units of each row that are reached.
    fn reached(size: [usize; 3], height: usize, marks: &[(usize, Range<usize>)]) -> Vec<Vec<usize>> {
        let all = ColumnMarks::new(size).unwrap();
        marks.iter().for_each(|(row, x)| all.mark(*row, x.clone()));
        let columns = all.reached(height).unwrap();
        let units = units(size[0]);
        let of_row = |row| (0..units).filter(|&u| columns.contains(row, UNIT * u, 1)).collect();
        let rows: Vec<Vec<usize>> = (0..columns.rows).map(of_row).collect();
        for u in 0..units {
            assert_eq!(columns.contains_in_any_row(UNIT * u, 1), rows.iter().any(|row| row.contains(&u)));
        }
        rows
    }

    #[test]
    fn windows_reach_cells_across_the_end_of_the_grid() {
        assert_eq!(reached([40, 4, 4], 2, &[(1, 7..9)]), [vec![], vec![0, 1], vec![0, 1], vec![]]);
        assert_eq!(reached([40, 4, 4], 3, &[(2, 16..24), (7, 0..1)]), [vec![0, 2], vec![0], vec![2], vec![0, 2]]);
        // The last unit of a row of 36 cells has 4 cells.
        assert_eq!(reached([36, 3, 3], 1, &[(0, 31..37)]), [vec![0, 3, 4], vec![], vec![]]);
        assert_eq!(reached([36, 3, 3], 1, &[(0, 34..60)]), [vec![0, 1, 2, 4], vec![], vec![]]);
        assert_eq!(reached([12, 3, 3], 9, &[(0, 11..40)]), [vec![0, 1], vec![0, 1], vec![0, 1]]);
        // In 2D, all rows are one.
        assert_eq!(reached([40, 30, 1], 5, &[(7, 8..10), (29, 33..34)]), [vec![1, 4]]);
    }

    #[test]
    fn several_columns_are_reached_if_one_is() {
        let all = ColumnMarks::new([64, 2, 2]).unwrap();
        all.mark(0, 24..25);
        let columns = all.reached(1).unwrap();
        assert_eq!([0, 16, 32].map(|first| columns.contains(0, first, 16)), [false, true, false]);
        assert_eq!([0, 20, 24, 30].map(|first| columns.contains(0, first, 4)), [false, false, true, true]);
        assert!(!columns.contains(1, 0, 64) && columns.contains_in_any_row(0, 64));
    }
}
