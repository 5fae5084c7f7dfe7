function k = cartesian(dims, varargin)
%CARTESIAN  A fully sampled Cartesian grid.
%   k = recon.trajectory.cartesian(dims) is [dims 2] for dims = [nx ny], [dims 3] for [nx ny nz], in cycles per voxel:
%   (index - floor(n/2)) / n on each axis, index from 0. The option 'Precision', 'double' or 'single', sets its class.
%
%   Example
%       k = recon.trajectory.cartesian([64 48]);
%
%   See also recon.trajectory.radial.
own = recon.internal.options('recon.trajectory.cartesian', varargin, {'Precision'}, {});
recon.internal.numbers(dims, 'recon.trajectory.cartesian: dims', true);
if numel(dims) ~= 2 && numel(dims) ~= 3
    error('recon:InvalidSize', 'recon.trajectory.cartesian: dims has %d entries: give [nx ny] or [nx ny nz]', numel(dims));
end
k = recon.internal.generate('cartesian', num2cell(reshape(dims, 1, [])), reshape(dims, 1, []), own);
end
