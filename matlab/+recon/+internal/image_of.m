function [dims, voxels, coils] = image_of(ndim, dims, maps, list)
%IMAGE_OF  The grid's size, the size of an image (of a list of voxels: their number), and the coils of the maps.
%   maps and list are [] where there are none; coils is [] then. Without dims the maps tell. For internal use.
if ~isempty(maps)
    if ischar(maps)
        error('recon:InvalidArgument', 'Maps is a text: give an array, as recon.coilmaps estimates it from data');
    end
    recon.internal.numbers(maps, 'Maps');
    if isempty(dims)
        sizes = [size(maps), 1, 1];
        dims = sizes(1:ndim);
    end
end
if isempty(dims)
    error('recon:InvalidArgument', 'there is no image size: give [nx ny] or [nx ny nz], or coil maps');
end
dims = recon.internal.image_size(dims, ndim, 'the image size');
voxels = dims;
if ~isempty(list)
    recon.internal.numbers(list, 'Voxels');
    if ~ismatrix(list) || size(list, 2) ~= ndim
        error('recon:SizeMismatch', 'Voxels: the size is %s, it must be [voxels %d]%s', ...
            recon.internal.sizes(size(list)), ndim, recon.internal.last_dimension(size(list), ndim, 'Voxels'));
    end
    voxels = size(list, 1);
end
coils = [];
if ~isempty(maps)
    found = recon.internal.fit(maps, voxels, [], true, {'Maps', 'Maps', 'the image'});
    if numel(found) > 1
        error('recon:SizeMismatch', 'Maps: the size is %s, where the image is %s: one dimension of coils must follow', ...
            recon.internal.sizes(size(maps)), recon.internal.sizes(voxels));
    end
    coils = prod(found);
end
end
