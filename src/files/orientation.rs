//! The orientation of pictures: x to the right and y upwards, or the radiological convention if directions are known.

use super::image::Placement;

/// The orientation of a plane of an image in a picture.
///
/// If the directions of the image are unknown, x runs to the right and y upwards, as in the figures of Shepp and Logan
/// 1974. If they are known, the orientation is the radiological convention:
///
/// - axial: the patient's left on the right, the front at the top;
/// - coronal: the left on the right, the head at the top;
/// - sagittal: the front on the left, the head at the top;
/// - oblique: as the nearest of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaneOrientation {
    /// Whether the first axis runs along the rows of the picture. Otherwise it runs along the columns.
    pub is_first_in_rows: bool,
    /// Whether the axis in the rows runs to the left.
    pub is_mirrored: bool,
    /// Whether the axis in the columns runs upwards.
    pub is_upwards: bool,
    /// The side of the patient at the right edge: L, R, A, P, H or F.
    pub right: char,
    /// The side of the patient at the lower edge.
    pub bottom: char,
}

impl PlaneOrientation {
    /// Returns the orientation of the plane of two axes of an image: 0 for x, 1 for y, 2 for z.
    pub fn of(placement: &Placement, axes: [usize; 2]) -> PlaneOrientation {
        let directions = placement.directions();
        let [a, b] = axes.map(|axis| directions[axis]);
        let normal: [f32; 3] =
            std::array::from_fn(|i| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3]);
        // The directions of rows and columns, in the patient's coordinates (left, back, head).
        let (right, down) = match main_component(normal) {
            0 => ([0.0, 1.0, 0.0], [0.0, 0.0, -1.0]),
            1 => ([1.0, 0.0, 0.0], [0.0, 0.0, -1.0]),
            _ => ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
        };
        let is_first_in_rows = dot(a, right).abs() + dot(b, down).abs() >= dot(a, down).abs() + dot(b, right).abs();
        let (row, column) = if is_first_in_rows { (a, b) } else { (b, a) };
        let (is_mirrored, is_upwards) = (dot(row, right) < 0.0, dot(column, down) < 0.0);
        PlaneOrientation {
            is_first_in_rows,
            is_mirrored,
            is_upwards,
            right: side(row, is_mirrored),
            bottom: side(column, is_upwards),
        }
    }

    /// Returns the number of columns and rows of a picture of a plane of these sizes.
    pub fn picture_size(&self, [first, second]: [usize; 2]) -> [usize; 2] {
        if self.is_first_in_rows {
            [first, second]
        } else {
            [second, first]
        }
    }

    /// Returns the indices along both axes at a column and a row of a picture of this size.
    pub fn index_at(&self, [column, row]: [usize; 2], [width, height]: [usize; 2]) -> [usize; 2] {
        let column = if self.is_mirrored { width - 1 - column } else { column };
        let row = if self.is_upwards { height - 1 - row } else { row };
        if self.is_first_in_rows {
            [column, row]
        } else {
            [row, column]
        }
    }
}

fn main_component(v: [f32; 3]) -> usize {
    (0..3).fold(0, |best, i| if v[i].abs() > v[best].abs() { i } else { best })
}

/// Returns the side of the patient to which a direction points, or the opposite side.
fn side(direction: [f32; 3], is_opposite: bool) -> char {
    let main = main_component(direction);
    let names = [['R', 'L'], ['A', 'P'], ['F', 'H']][main];
    names[usize::from((direction[main] > 0.0) != is_opposite)]
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the planes of an axial volume, as scanners and this program write it.
    #[test]
    fn planes_of_an_axial_volume() {
        let axial = Placement {
            read_dir: [1.0, 0.0, 0.0],
            phase_dir: [0.0, 1.0, 0.0],
            slice_dir: [0.0, 0.0, 1.0],
            ..Default::default()
        };
        let plane = |is_mirrored, is_upwards, right, bottom| PlaneOrientation {
            is_first_in_rows: true,
            is_mirrored,
            is_upwards,
            right,
            bottom,
        };
        assert_eq!(PlaneOrientation::of(&axial, [0, 1]), plane(false, false, 'L', 'P'));
        assert_eq!(PlaneOrientation::of(&axial, [0, 2]), plane(false, true, 'L', 'F'));
        assert_eq!(PlaneOrientation::of(&axial, [1, 2]), plane(false, true, 'P', 'F'));
        // Unknown directions: y to the front.
        let unknown = Placement::default();
        assert_eq!(PlaneOrientation::of(&unknown, [0, 1]), plane(false, true, 'L', 'P'));
        assert_eq!(PlaneOrientation::of(&unknown, [1, 2]), plane(true, true, 'P', 'F'));
    }

    #[test]
    fn indices_of_pixels() {
        let plane =
            PlaneOrientation { is_first_in_rows: false, is_mirrored: true, is_upwards: false, right: 'L', bottom: 'P' };
        assert_eq!(plane.picture_size([4, 3]), [3, 4]);
        assert_eq!(plane.index_at([0, 1], [3, 4]), [1, 2]);
    }
}
