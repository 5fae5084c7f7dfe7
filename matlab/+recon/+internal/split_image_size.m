function [dims, list] = split_image_size(list)
%SPLIT_IMAGE_SIZE  Splits the image size, or [], off the name-value arguments. For internal use.
dims = [];
if ~isempty(list) && isnumeric(list{1})
    dims = list{1};
    list = list(2:end);
end
end
