function rest = trailing(array, leading, what, meaning)
%TRAILING  The dimensions of an array behind those that must lead it, which may also be one dimension or a vector.
%   For internal use.
sizes = size(array);
count = numel(leading);
padded = [sizes, ones(1, count)];
if isequal(padded(1:count), leading)
    rest = sizes(count + 1:end);
elseif sizes(1) == prod(leading)
    rest = sizes(2:end);
elseif numel(array) == prod(leading)
    rest = [];
else
    error('recon:SizeMismatch', '%s: the size is %s, which must begin with %s, the size of %s', what, ...
        recon.internal.sizes(sizes), recon.internal.sizes(leading), meaning);
end
rest = recon.internal.trim(rest);
end
