function image = resizeimage(x, info)
%RESIZEIMAGE  Converts images from the encoded to the reconstructed matrix of a scan.
%   y = recon.resizeimage(x, info) returns the images x, of info.matrix voxels, with info.reconMatrix voxels. info is a
%   structure of recon.read; info.fov and info.reconFov are the fields of view of the two matrices. Dimensions that
%   follow, such as coils and frames, stay as they are.
%
%   If the new voxels have a different size, the image is interpolated by Fourier to exactly that size. Then the middle
%   is cut out, or surrounded by zeros. The voxel with index floor(n/2), counted from 0, keeps its position.
%
%   Scanners often measure a larger field of view along the readout than they reconstruct. The program `recon` resizes
%   every image.
%
%   Example
%       info = struct('matrix', [128 64], 'reconMatrix', [64 64], 'fov', [400 200 5], 'reconFov', [200 200 5]);
%       y = recon.resizeimage(recon.phantom.image([128 64]), info);
%
%   See also recon.read, recon.cg.
recon.internal.need_arguments(nargin, 2, 'recon.resizeimage(x, info)');
recon.internal.need_numbers(x, 'recon.resizeimage: the images');
needed = {'matrix', 'reconMatrix', 'fov', 'reconFov'};
if ~isstruct(info) || numel(info) ~= 1 || ~all(isfield(info, needed))
    error('recon:InvalidArgument', ['recon.resizeimage: info must be one structure with matrix, reconMatrix, ' ...
        'fov and reconFov, as recon.read returns it']);
end
from = recon.internal.image_size(info.matrix, [], 'recon.resizeimage: info.matrix');
ndim = numel(from);
to = [recon.internal.image_size(info.reconMatrix, [], 'recon.resizeimage: info.reconMatrix'), 1];
if ~any(ndim == [2 3]) || any(numel(to) == [1 2]) || numel(to) > 4 || any(to(ndim + 1:end) ~= 1)
    error('recon:SizeMismatch', ...
        'recon.resizeimage: info.matrix is %s and info.reconMatrix %s: both must have two, or three sizes', ...
        mat2str(info.matrix), mat2str(info.reconMatrix));
end
to = to(1:ndim);
fov = [field_of_view(info.fov, ndim, 'fov'); field_of_view(info.reconFov, ndim, 'reconFov')];
% Without fields of view the voxels of both matrices have the same size.
fov(:, any(fov == 0, 1)) = 0;
rest = recon.internal.check_size(x, from, [], true, {'recon.resizeimage: the images', 'x', 'info.matrix'});
geometry = struct('precision', recon.internal.number_class(x), 'dims', from, 'coils', prod(rest), 'frames', 1);
image = recon_mex('resize', geometry, fov(1, :), to, fov(2, :), x, recon.internal.full_size(to, rest));
if isreal(x)
    image = real(image);
end
end

function fov = field_of_view(fov, ndim, name)
if ~isnumeric(fov) || ~isreal(fov) || ~any(numel(fov) == [ndim, 3]) || ~all(isfinite(fov)) || any(fov < 0)
    error('recon:InvalidArgument', 'recon.resizeimage: info.%s must be [x y z] in mm', name);
end
fov = double(fov(1:ndim));
fov = fov(:).';
end
