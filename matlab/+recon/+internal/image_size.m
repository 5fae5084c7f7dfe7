function dims = image_size(dims, ndim, what)
%IMAGE_SIZE  An image size as a row of ndim doubles, from any class of real numbers; one number stands for all of them.
%   Where ndim is [], 2 or 3 as they are given, 2 for one number. For internal use.
if ~isnumeric(dims) || ~isreal(dims) || issparse(dims) || isempty(dims) || size(dims, 1) ~= 1 || ~ismatrix(dims)
    error('recon:InvalidArgument', '%s is a %s %s: give a row, [nx ny] or [nx ny nz]', what, ...
        recon.internal.sizes(size(dims)), class(dims));
end
dims = double(dims);
if isscalar(dims)
    dims = repmat(dims, 1, max([ndim, 2]));
end
if ~isempty(ndim) && numel(dims) ~= ndim
    error('recon:SizeMismatch', ['%s is %s, %d dimensions, where the trajectory k has %d coordinates (its last ' ...
        'dimension)'], what, mat2str(dims), numel(dims), ndim);
end
end
