//! Quadratic priors: R in (E^H W E + lambda R^H R) x = E^H W d.

use crate::backend::{Backend, Complexes, ComplexesMut, Csr};
use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::real::Real;
use num_complex::Complex;

/// Sparse matrix R in compressed rows, provided by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T: Real> {
    /// Start of each row in `columns` and `values`, and the end of the last row: [rows + 1], beginning with 0.
    pub rows: &'a [u64],
    /// Column (voxel index) of each entry.
    pub columns: &'a [u64],
    /// Value of each entry.
    pub values: &'a [Complex<T>],
}

/// Prior knowledge of the image.
#[derive(Debug, Clone, Copy, Default)]
pub enum Prior<'a, T: Real> {
    /// R = 1: the energy of the image.
    #[default]
    Identity,
    /// R = differences between neighbours along each axis.
    Differences,
    /// Weighted differences between neighbours: smooth within tissues, free across their borders (after Haldar et al.,
    /// Magn. Reson. Med. 59:810, 2008, the prior of Stone et al. 2008).
    ///
    /// The factor is exp(-(d/s)^2). Here d is the difference of the same two voxels in a reference image, and s is
    /// `edge` times the reference's largest magnitude. R^H R then has the squares, exp(-2 (d/s)^2).
    Anatomical {
        /// Reference image, [nx, ny, nz], in any unit.
        reference: &'a [T],
        /// Difference that counts as a border, as a fraction of the reference's largest magnitude.
        edge: f64,
    },
    /// Any sparse R with one column per voxel.
    Matrix(Matrix<'a, T>),
}

/// Prior in the memory of a backend.
pub(crate) enum PriorOperator<T: Real, B: Backend<T>> {
    Identity,
    Differences { dims: Vec<usize>, weights: Option<B::Array<T>> },
    Matrix { matrix: SparseMatrix<T, B>, adjoint: SparseMatrix<T, B>, product: B::Array<Complex<T>> },
}

/// Sparse matrix in compressed rows, in the memory of a backend.
pub(crate) struct SparseMatrix<T: Real, B: Backend<T>> {
    rows: B::Array<u32>,
    columns: B::Array<u32>,
    values: B::Array<Complex<T>>,
}

impl<T: Real, B: Backend<T>> SparseMatrix<T, B> {
    /// Uploads a matrix.
    fn new(backend: &B, rows: &[u32], columns: &[u32], values: &[Complex<T>]) -> Result<Self> {
        Ok(SparseMatrix {
            rows: backend.upload(rows, "the prior's rows")?,
            columns: backend.upload(columns, "the prior's columns")?,
            values: backend.upload(values, "the prior's values")?,
        })
    }

    /// Returns the matrix as an argument of the backend's products.
    fn view<'a>(&'a self, backend: &B) -> Csr<'a, B, T> {
        Csr { rows: backend.view(&self.rows), columns: backend.view(&self.columns), values: backend.view(&self.values) }
    }
}

impl<T: Real, B: Backend<T>> PriorOperator<T, B> {
    /// Checks a prior and prepares it for images of `dims` voxels, `voxels` in total. If `listed` is set, the voxels
    /// are a list, which has no neighbours.
    pub fn new(backend: &B, prior: &Prior<'_, T>, dims: &[usize], voxels: usize, listed: bool) -> Result<Self> {
        if listed && matches!(prior, Prior::Differences | Prior::Anatomical { .. }) {
            bail!(Unsupported, "voxels of a list have no neighbours: use the identity prior, or provide a matrix R");
        }
        Ok(match prior {
            Prior::Identity => PriorOperator::Identity,
            Prior::Differences => PriorOperator::Differences { dims: dims.to_vec(), weights: None },
            Prior::Anatomical { reference, edge } => {
                let weights = edge_weights(dims, reference, *edge)?;
                let weights = Some(backend.upload(&weights, "the prior's weights")?);
                PriorOperator::Differences { dims: dims.to_vec(), weights }
            }
            Prior::Matrix(m) => {
                let (rows, columns) = check_matrix(m, voxels)?;
                let (t_rows, t_columns, t_values) = adjoint(&rows, &columns, m.values, voxels)?;
                PriorOperator::Matrix {
                    matrix: SparseMatrix::new(backend, &rows, &columns, m.values)?,
                    adjoint: SparseMatrix::new(backend, &t_rows, &t_columns, &t_values)?,
                    product: backend.zeros(rows.len() - 1, "the prior's product")?,
                }
            }
        })
    }

    /// Adds lambda R^H R x to y.
    pub fn add(&mut self, backend: &B, lambda: f64, x: Complexes<B, T>, y: ComplexesMut<B, T>) {
        match self {
            PriorOperator::Identity => backend.axpy(lambda, x, y),
            PriorOperator::Differences { dims, weights } => {
                backend.add_differences(dims, weights.as_ref().map(|w| backend.view(w)), lambda, x, y);
            }
            PriorOperator::Matrix { matrix, adjoint, product } => {
                backend.csr_multiply(1.0, matrix.view(backend), x, 0.0, backend.view_mut(product));
                backend.csr_multiply(lambda, adjoint.view(backend), backend.view(product), 1.0, y);
            }
        }
    }
}

/// Returns the weights in R^H R of the differences between each voxel and the next along each axis, [voxels, axes]: the
/// squares of the factors in R.
fn edge_weights<T: Real>(dims: &[usize], reference: &[T], edge: f64) -> Result<Vec<T>> {
    let voxels: usize = dims.iter().product();
    check_len("voxels of the reference image", reference.len(), voxels, "one per voxel")?;
    if let Some(i) = reference.iter().position(|r| !r.finite()) {
        bail!(NotFinite, "voxel {i} of the reference image is {}: it must be a number", reference[i]);
    }
    if !(edge > 0.0 && edge.is_finite()) {
        bail!(InvalidArgument, "the prior's edge is {edge}: it must be positive, such as 0.1");
    }
    let largest = reference.iter().map(|r| r.wide().abs()).fold(0.0, f64::max);
    let border = edge * if largest > 0.0 { largest } else { 1.0 };
    let mut weights = try_vec(voxels * dims.len(), T::ZERO, "the prior's weights")?;
    let mut stride = 1;
    for (axis, &n) in dims.iter().enumerate() {
        for i in 0..voxels {
            if i / stride % n + 1 < n {
                let d = (reference[i + stride].wide() - reference[i].wide()) / border;
                weights[axis * voxels + i] = T::of((-d * d).exp().powi(2));
            }
        }
        stride *= n;
    }
    Ok(weights)
}

/// Checks a matrix and returns its row starts and columns in 32 bits.
fn check_matrix<T: Real>(m: &Matrix<'_, T>, voxels: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let entries = m.values.len();
    check_len("column indices of the prior's matrix", m.columns.len(), entries, "one per value")?;
    check_finite("value of the prior's matrix", m.values)?;
    let most = u32::MAX as usize;
    if entries > most || voxels > most || m.rows.len() > most {
        bail!(
            SizeOverflow,
            "a prior's matrix of {} rows, {voxels} columns and {entries} entries exceeds 32-bit indices: give at \
             most {most} of each, and omit zeros",
            m.rows.len().saturating_sub(1)
        );
    }
    let ends = (m.rows.first().copied(), m.rows.last().copied());
    if m.rows.len() < 2 || ends != (Some(0), Some(entries as u64)) || m.rows.windows(2).any(|w| w[0] > w[1]) {
        bail!(
            InvalidArgument,
            "the row starts of the prior's matrix begin with {:?} and end with {:?}: they must begin with 0, not \
             decrease, and end with the number of values ({entries})",
            ends.0,
            ends.1
        );
    }
    if let Some(i) = m.columns.iter().position(|&c| c >= voxels as u64) {
        bail!(
            InvalidArgument,
            "entry {i} of the prior's matrix is in column {}, but the image has {voxels} voxels",
            m.columns[i]
        );
    }
    let narrow = |indices: &[u64]| try_collect(indices.len(), "the prior's matrix", indices.iter().map(|&i| i as u32));
    Ok((narrow(m.rows)?, narrow(m.columns)?))
}

/// Matrix in compressed rows: row starts, columns and values.
type OwnedCsr<T> = (Vec<u32>, Vec<u32>, Vec<Complex<T>>);

/// Returns the conjugate transpose of a matrix with `width` columns.
fn adjoint<T: Real>(rows: &[u32], columns: &[u32], values: &[Complex<T>], width: usize) -> Result<OwnedCsr<T>> {
    let mut starts = try_vec(width + 1, 0u32, "the prior's transpose")?;
    for &c in columns {
        starts[c as usize + 1] += 1;
    }
    for i in 0..width {
        starts[i + 1] += starts[i];
    }
    let mut next = try_collect(starts.len(), "the prior's transpose", starts.iter().copied())?;
    let mut t_columns = try_vec(columns.len(), 0u32, "the prior's transpose")?;
    let mut t_values = try_vec(columns.len(), Complex::default(), "the prior's transpose")?;
    for row in 0..rows.len() - 1 {
        for i in rows[row] as usize..rows[row + 1] as usize {
            let at = &mut next[columns[i] as usize];
            t_columns[*at as usize] = row as u32;
            t_values[*at as usize] = values[i].conj();
            *at += 1;
        }
    }
    Ok((starts, t_columns, t_values))
}
