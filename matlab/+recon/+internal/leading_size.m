function [dims, list] = leading_size(list)
%LEADING_SIZE  The image size before the name-value arguments, or []. For internal use.
dims = [];
if ~isempty(list) && isnumeric(list{1})
    dims = list{1};
    list = list(2:end);
end
end
