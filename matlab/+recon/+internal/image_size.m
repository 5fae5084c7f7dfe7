function dims = image_size(dims, what)
%IMAGE_SIZE  An image size as a row of doubles, from any class of real numbers. For internal use.
if ~isnumeric(dims) || ~isreal(dims) || issparse(dims) || isempty(dims)
    error('recon:InvalidArgument', '%s is a %s %s: give [nx ny] or [nx ny nz]', what, recon.internal.sizes(size(dims)), ...
        class(dims));
end
dims = double(reshape(dims, 1, []));
end
