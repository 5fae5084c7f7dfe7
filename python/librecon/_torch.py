"""Gradients of PyTorch through E, E^H and E^H W E. It is imported when a tensor with a gradient is transformed."""

import torch

# The adjoint of each map, which computes its gradient: for a linear map A, the gradient of x is A^H times that of A x.
_ADJOINT = {"forward": "adjoint", "adjoint": "forward", "normal": "normal"}


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(context, x, encoding, which):
        context.encoding, context.which = encoding, which
        return getattr(encoding, which)(x.detach())

    @staticmethod
    def backward(context, gradient):
        # Gradients of sums and of conjugates are expanded or lazy tensors. This step is differentiable as well.
        gradient = gradient.resolve_conj().resolve_neg().contiguous()
        return apply(context.encoding, _ADJOINT[context.which], gradient), None, None


def apply(encoding, which, x):
    """Applies a map of an Encoding to a tensor, with its gradient."""
    return _Linear.apply(x, encoding, which)
