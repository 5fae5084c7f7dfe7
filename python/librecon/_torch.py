"""Gradients of PyTorch through E, E^H and E^H W E. It is imported when a tensor with a gradient is transformed."""

import torch

# The adjoint of each map, which computes its gradient: for a linear map A, the gradient of A x is A^H times that of x.
_ADJOINT = {"forward": "adjoint", "adjoint": "forward", "normal": "normal"}


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(encoding, which, x):
        return getattr(encoding, which)(x.detach())

    @staticmethod
    def setup_context(context, inputs, output):
        context.encoding, context.which, _ = inputs

    @staticmethod
    def backward(context, gradient):
        # Gradients of sums and of conjugates are expanded or lazy tensors. This step is differentiable as well.
        gradient = gradient.resolve_conj().resolve_neg().contiguous()
        return None, None, apply(context.encoding, _ADJOINT[context.which], gradient)


def apply(encoding, which, x):
    """Applies a map of an Encoding to a tensor, with its gradient."""
    return _Linear.apply(encoding, which, x)
