function name = class_of(array)
%CLASS_OF  The class of an array's numbers, which of a gpuArray is that of what it holds. For internal use.
name = class(array);
if strcmp(name, 'gpuArray')
    if exist('underlyingType') %#ok<EXIST>
        name = underlyingType(array);
    else
        % MATLAB before R2020b.
        name = classUnderlying(array);
    end
end
end
