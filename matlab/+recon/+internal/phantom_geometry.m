function [geometry, values] = phantom_geometry(name, dims, own, values)
%PHANTOM_GEOMETRY  Image size and class for the phantoms, and options over their defaults. For internal use.
given = fieldnames(own);
for i = 1:numel(given)
    if isfield(values, given{i})
        values.(given{i}) = own.(given{i});
    end
end
dims = recon.internal.image_size(dims, [name ': the image size']);
if isscalar(dims)
    dims = [dims dims];
end
geometry.precision = values.Precision;
geometry.dims = dims;
end
