function [dims, list] = leading_size(list)
%LEADING_SIZE  An image size in front of name-value arguments, [] where there is none. For internal use.
dims = [];
if ~isempty(list) && isnumeric(list{1})
    dims = list{1};
    list = list(2:end);
end
end
