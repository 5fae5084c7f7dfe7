function [geometry, values] = phantom_geometry(name, dims, own, values)
%PHANTOM_GEOMETRY  Image size and class for the phantoms, and options over their defaults. For internal use.
given = fieldnames(own);
for i = 1:numel(given)
    if isfield(values, given{i})
        values.(given{i}) = own.(given{i});
    end
end
recon.internal.numbers(dims, [name ': the image size'], true);
dims = double(reshape(dims, 1, []));
geometry.precision = values.Precision;
geometry.dims = dims;
end
