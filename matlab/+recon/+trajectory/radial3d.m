function k = radial3d(spokes, readout, varargin)
%RADIAL3D  3D spokes through the centre, at even distances over the sphere.
%   k = recon.trajectory.radial3d(spokes, readout) is [readout spokes 3], in cycles per voxel. The ends of the spokes
%   follow a spiral on the sphere from the pole to the equator. The option 'Precision', 'double' or 'single', sets the
%   class of k.
%
%   Example
%       k = recon.trajectory.radial3d(400, 64);
%       d = recon.phantom.kspace(k, [32 32 32]);
%       x = recon.grid(k, d, [32 32 32], 'Weights', 'ramp');
%
%   See also recon.trajectory.radial.
recon.internal.need_arguments(nargin, 2, 'recon.trajectory.radial3d(spokes, readout)');
own = recon.internal.options('recon.trajectory.radial3d', varargin, {'Precision'}, {});
k = recon.internal.make_trajectory('radial3d', {spokes, readout}, [], own);
end
