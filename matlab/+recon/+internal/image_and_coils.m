function [dims, voxels, coils] = image_and_coils(ndim, dims, maps, list)
%IMAGE_AND_COILS  Returns the grid size, the image size and the number of coils. For internal use.
%   maps and list (the option Voxels) may be []. Without dims, the size of maps decides. With a list, the size of an
%   image is the number of voxels in it. coils is [] without maps.
if ~isempty(maps)
    if ischar(maps)
        error('recon:InvalidArgument', 'Maps is a text: give an array, as recon.coilmaps estimates it from data');
    end
    recon.internal.need_numbers(maps, 'Maps');
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
    recon.internal.need_numbers(list, 'Voxels');
    if ~ismatrix(list) || size(list, 2) ~= ndim
        error('recon:SizeMismatch', 'Voxels: the size is %s, it must be [voxels %d]%s', ...
            recon.internal.size_text(size(list)), ndim, recon.internal.last_dimension(size(list), ndim, 'Voxels'));
    end
    voxels = size(list, 1);
end
coils = [];
if ~isempty(maps)
    found = recon.internal.check_size(maps, voxels, [], true, {'Maps', 'Maps', 'the image'});
    if numel(found) > 1
        error('recon:SizeMismatch', ...
            'Maps: the size is %s, where the image is %s: one dimension of coils must follow', ...
            recon.internal.size_text(size(maps)), recon.internal.size_text(voxels));
    end
    coils = prod(found);
end
end
