function [geometry, values] = phantom_geometry(name, dims, ndim, own, values)
%PHANTOM_GEOMETRY  Returns image size and class of a phantom, and its options with their defaults. For internal use.
%   ndim is the number of the trajectory's dimensions, or [].
values = recon.internal.defaults(values, own);
dims = recon.internal.image_size(dims, ndim, [name ': the image size']);
if isfield(own, 'Shapes') && (~ismatrix(own.Shapes) || size(own.Shapes, 2) ~= 10)
    error('recon:SizeMismatch', '%s: Shapes: the size is %s, it must be [shapes 10]%s', name, ...
        recon.internal.size_text(size(own.Shapes)), recon.internal.last_dimension(size(own.Shapes), 10, 'Shapes'));
end
geometry.precision = values.Precision;
geometry.dims = dims;
end
