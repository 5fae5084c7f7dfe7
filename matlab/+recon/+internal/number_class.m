function name = number_class(array)
%NUMBER_CLASS  Returns the class of the numbers in an array or gpuArray. For internal use.
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
