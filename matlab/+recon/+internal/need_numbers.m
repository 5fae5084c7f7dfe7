function need_numbers(array, what)
%NEED_NUMBERS  Ends with an error unless array is full, not empty, and of class single or double. For internal use.
if ~isfloat(array) || issparse(array)
    kind = class(array);
    if issparse(array)
        kind = ['sparse ' kind];
    end
    error('recon:InvalidArgument', '%s: this is a %s array; give a full array of single or double', what, kind);
end
if isempty(array)
    error('recon:InvalidArgument', '%s: this is empty (%s)', what, recon.internal.size_text(size(array)));
end
end
