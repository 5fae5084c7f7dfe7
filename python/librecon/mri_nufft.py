"""A backend for mri-nufft: importing this module registers "librecon" beside mri-nufft's own.

    import librecon.mri_nufft
    from mrinufft import get_operator

    E = get_operator("librecon")(samples, shape, n_coils=8)
"""

from __future__ import annotations

import numpy as np
from mrinufft._array_compat import _array_to_numpy
from mrinufft._utils import proper_trajectory
from mrinufft.operators.base import FourierOperatorCPU, _ToggleGradPlanMixin, power_method

from ._encoding import Encoding


class RawLibrecon:
    """The transforms of `n_trans` images of one coil, in place. Samples are in radians per voxel, as in mri-nufft."""

    def __init__(self, samples, shape, n_trans=1, eps=1e-6, **options):
        self._make = lambda k: Encoding(k, shape, coils=n_trans, tolerance=eps, **options)
        self._trajectory = _cycles(samples)
        self.encoding = self._make(self._trajectory)
        self.grad_encoding: Encoding | None = None

    def op(self, coeffs, image):
        """Computes the samples of images into coeffs."""
        E = self.encoding
        # As in mri-nufft's other backends, the input may have any layout and dtype.
        image = np.ascontiguousarray(image, E.dtype).reshape(E.full_image_shape)
        E.forward(image, out=coeffs.reshape(E.kspace_shape))
        return coeffs

    def adj_op(self, coeffs, image):
        """Computes the adjoint of coeffs into image."""
        E = self.encoding
        coeffs = np.ascontiguousarray(coeffs, E.dtype).reshape(E.kspace_shape)
        E.adjoint(coeffs, out=image.reshape(E.full_image_shape))
        return image

    def set_samples(self, samples):
        """Replaces the samples, and those of the plan for gradients with respect to them."""
        self._trajectory = _cycles(samples)
        self.encoding.set_trajectory(self._trajectory)
        if self.grad_encoding is not None:
            self.grad_encoding.set_trajectory(-self._trajectory)

    def make_grad_plan(self):
        """Makes the plan with the other sign of the exponent, for gradients with respect to the samples."""
        if self.grad_encoding is None:
            self.grad_encoding = self._make(-self._trajectory)

    def toggle_grad_traj(self):
        """Exchanges the plans of transforms and of gradients."""
        # mri-nufft calls _make_plan_grad for FINUFFT and cuFINUFFT only.
        self.make_grad_plan()
        self.encoding, self.grad_encoding = self.grad_encoding, self.encoding


def _radians(samples):
    """Returns samples in radians per voxel, the unit in which mri-nufft computes gradients with respect to them."""
    return np.ascontiguousarray(_array_to_numpy(proper_trajectory(samples, normalize="pi")))


def _cycles(samples):
    """Converts samples from radians to cycles per voxel. pi becomes 0.5 exactly."""
    return np.ascontiguousarray(samples / samples.dtype.type(2 * np.pi))


class MRILibrecon(FourierOperatorCPU, _ToggleGradPlanMixin):
    """MRI operator of mri-nufft using librecon.

    Parameters are those of mri-nufft's operators; `eps` is the tolerance, and other keywords are options of
    librecon.Encoding.
    """

    backend = "librecon"
    available = True
    autograd_available = True

    def __init__(self, samples, shape, density=False, n_coils=1, n_batchs=1, n_trans=1, smaps=None, squeeze_dims=True,
                 **kwargs):
        samples = _radians(samples)
        super().__init__(samples, shape, density, n_coils=n_coils, n_batchs=n_batchs, n_trans=n_trans, smaps=smaps,
                         raw_op=RawLibrecon(samples, tuple(shape), n_trans=n_trans, **kwargs), squeeze_dims=squeeze_dims)
        self.raw_op: RawLibrecon

    def update_samples(self, new_samples, unsafe=False):
        """Replaces the samples. With `unsafe` they are not checked: [samples, axes], in radians per voxel."""
        self._samples = new_samples if unsafe else _radians(new_samples)
        self.raw_op.set_samples(self._samples)
        self.compute_density(self._density_method)

    def get_lipschitz_cst(self, max_iter=10):
        """Returns the Lipschitz constant of the operator without coil maps, by the power method."""
        if self.n_trans == 1:
            return super().get_lipschitz_cst(max_iter)
        # mri-nufft 1.5 transforms one image. With n_trans > 1 it makes no transform then, and returns a number from
        # memory that is not initialised. n_trans images have the same constant.
        names = ("n_coils", "n_batchs", "squeeze_dims", "smaps")
        kept = [getattr(self, name) for name in names]
        self.n_coils, self.n_batchs, self.squeeze_dims, self.smaps = self.n_trans, 1, True, None
        try:
            start = np.random.random((self.n_trans, *self.shape)).astype(self.cpx_dtype)
            return power_method(max_iter, self, x=start)[0]
        finally:
            for name, value in zip(names, kept):
                setattr(self, name, value)

    def _make_plan_grad(self, **kwargs):
        self.raw_op.make_grad_plan()

    @classmethod
    def pipe(cls, kspace_loc, volume_shape, max_iter=10, osf=2, normalize=True, **kwargs):
        """Returns density weights by the method of Pipe and Menon, scaled as mri-nufft's others if `normalize`.

        `osf` has no effect: the library chooses the window of the method.
        """
        samples = _cycles(_radians(kspace_loc))
        with Encoding(samples, volume_shape, **kwargs) as encoding:
            weights = encoding.density("pipe-menon", max_iter)
            if normalize:
                ones = np.ones(encoding.full_image_shape, encoding.dtype)
                scale = np.prod(volume_shape) * 2 ** len(volume_shape)
                weights = weights * (scale / np.mean(np.abs(encoding.adjoint(weights * encoding.forward(ones)))))
        return weights.astype(samples.dtype)
