function out = virtual_coils(name, d, matrix, own)
%VIRTUAL_COILS  Computes virtual coils from the coils of d and a matrix, in the same dimension. For internal use.
%   own may have a field Dim, that dimension. Otherwise it is the dimension whose length is the number of columns of
%   the matrix.
recon.internal.need_numbers(matrix, [name ': the matrix']);
if ndims(matrix) > 2
    error('recon:SizeMismatch', '%s: the matrix is %s: give [virtual coils, coils]', name, ...
        recon.internal.size_text(size(matrix)));
end
coils = size(matrix, 2);
sizes = size(d);
if isfield(own, 'Dim')
    dim = own.Dim;
elseif coils == 1
    % Any dimension of 1 element works.
    dim = numel(sizes) + 1;
else
    dim = find(sizes == coils);
    if isempty(dim)
        error('recon:SizeMismatch', '%s: no dimension of the data, %s, has the %d coils of the matrix or the noise', ...
            name, recon.internal.size_text(sizes), coils);
    end
    if numel(dim) > 1
        error('recon:InvalidArgument', ...
            '%s: %d dimensions of the data, %s, have %d elements: say which counts the coils, as in ''Dim'', %d', ...
            name, numel(dim), recon.internal.size_text(sizes), coils, dim(end));
    end
end
[inner, found] = recon.internal.coil_dimension(name, d, dim);
if found ~= coils
    error('recon:SizeMismatch', ...
        '%s: dimension %d of the data, %s, has %d elements, but the matrix or the noise is of %d coils', name, dim, ...
        recon.internal.size_text(sizes), found, coils);
end
sizes(end + 1:dim) = 1;
sizes(dim) = size(matrix, 1);
out = recon_mex('virtual_coils', matrix, d, inner, recon.internal.full_size(sizes));
end
