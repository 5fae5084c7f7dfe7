function k = spiral(interleaves, readout, turns, varargin)
%SPIRAL  2D spirals from the centre outwards.
%   k = recon.trajectory.spiral(interleaves, readout, turns) is [readout interleaves 2], in cycles per voxel. Sample j
%   of interleaf p has the radius 0.5 u and the angle 2 pi (turns u + p / interleaves), u = j / readout.
%
%   k = recon.trajectory.spiral(interleaves, readout, turns, Name, Value, ...) sets options:
%
%       'Density'    the radius is 0.5 u^density. 1 (default) is the Archimedean spiral. Larger values sample the centre
%                    more densely
%       'Precision'  'double' (default) or 'single'
%
%   An image of n x n voxels is fully sampled if interleaves * turns is at least n/2.
%
%   Example
%       k = recon.trajectory.spiral(16, 2000, 8);
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.radial.
recon.internal.need_arguments(nargin, 3, 'recon.trajectory.spiral(interleaves, readout, turns)');
own = recon.internal.options('recon.trajectory.spiral', varargin, {'Density', 'Precision'}, {});
density = 1;
if isfield(own, 'Density')
    density = own.Density;
end
k = recon.internal.make_trajectory('spiral', {interleaves, readout, turns, density}, [], own);
end
