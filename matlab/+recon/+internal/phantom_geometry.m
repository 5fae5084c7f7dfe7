function [geometry, values] = phantom_geometry(name, dims, own, values)
%PHANTOM_GEOMETRY  Image size and class for the phantoms, and options over their defaults. For internal use.
values = recon.internal.defaults(values, own);
dims = recon.internal.image_size(dims, [name ': the image size']);
if isscalar(dims)
    dims = [dims dims];
end
geometry.precision = values.Precision;
geometry.dims = dims;
end
