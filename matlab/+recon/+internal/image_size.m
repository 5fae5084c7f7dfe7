function dims = image_size(dims, ndim, what)
%IMAGE_SIZE  Returns an image size as a row of ndim doubles, from any class of real numbers. For internal use.
%   One number is the size along every dimension. If ndim is [], the row keeps its entries, and one number gives two.
if ~isnumeric(dims) || ~isreal(dims) || issparse(dims) || isempty(dims) || size(dims, 1) ~= 1 || ~ismatrix(dims)
    error('recon:InvalidArgument', '%s is a %s %s: give a row, [nx ny] or [nx ny nz]', what, ...
        recon.internal.size_text(size(dims)), class(dims));
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
