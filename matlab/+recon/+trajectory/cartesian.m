function k = cartesian(dims, varargin)
%CARTESIAN  A fully sampled Cartesian grid.
%   k = recon.trajectory.cartesian(dims) is [dims 2] for dims = [nx ny], [dims 3] for [nx ny nz], in cycles per voxel.
%   It is (index - floor(n/2)) / n on each axis; index counts from 0. The option 'Precision', 'double' or 'single', sets
%   its class.
%
%   Example
%       k = recon.trajectory.cartesian([64 48]);
%
%   See also recon.trajectory.radial.
recon.internal.need_arguments(nargin, 1, 'recon.trajectory.cartesian(dims)');
own = recon.internal.options('recon.trajectory.cartesian', varargin, {'Precision'}, {});
dims = recon.internal.image_size(dims, [], 'recon.trajectory.cartesian: dims');
if numel(dims) ~= 2 && numel(dims) ~= 3
    error('recon:InvalidSize', 'recon.trajectory.cartesian: dims has %d entries: give [nx ny] or [nx ny nz]', ...
        numel(dims));
end
k = recon.internal.make_trajectory('cartesian', num2cell(dims), dims, own);
end
