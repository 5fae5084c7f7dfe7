function numbers(array, what)
%NUMBERS  Refuses what is not a full array of single or double. For internal use.
if ~isfloat(array) || issparse(array)
    kind = class(array);
    if issparse(array)
        kind = ['sparse ' kind];
    end
    error('recon:InvalidArgument', '%s: this is a %s array; give a full array of single or double', what, kind);
end
if isempty(array)
    error('recon:InvalidArgument', '%s: this is empty (%s)', what, recon.internal.sizes(size(array)));
end
end
