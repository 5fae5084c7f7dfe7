function [inner, coils] = coil_dimension(name, d, dim)
%COIL_DIMENSION  Returns the number of elements before and in a dimension of d. For internal use.
dim = recon.internal.one_number(dim, [name ': Dim']);
if ~(dim >= 1 && dim == fix(dim) && dim <= 32)
    error('recon:InvalidArgument', '%s: Dim is %g: it is the number of a dimension, from 1', name, dim);
end
inner = 1;
for i = 1:dim - 1
    inner = inner * size(d, i);
end
coils = size(d, dim);
end
