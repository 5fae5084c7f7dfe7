function k = stackofstars(spokes, readout, partitions, varargin)
%STACKOFSTARS  2D spokes in planes that are stacked along kz.
%   k = recon.trajectory.stackofstars(spokes, readout, partitions) is [readout spokes partitions 3], in cycles per
%   voxel. Each partition has the spokes of recon.trajectory.radial(spokes, readout). Partition q is at
%   kz = (q - floor(partitions/2)) / partitions; q counts from 0.
%
%   k = recon.trajectory.stackofstars(spokes, readout, partitions, Name, Value, ...) sets options:
%
%       'Order'      'linear' (default), or 'golden': spoke p has the angle p times 111.246 degrees
%       'Precision'  'double' (default) or 'single'
%
%   Example
%       k = reshape(recon.trajectory.stackofstars(50, 64, 8), [], 3);
%       d = recon.phantom.kspace(k, [32 32 8]);
%       x = recon.grid(k, d, [32 32 8], 'Weights', 'ramp');
%
%   See also recon.trajectory.radial, recon.density, recon.phantom.kspace.
recon.internal.need_arguments(nargin, 3, 'recon.trajectory.stackofstars(spokes, readout, partitions)');
own = recon.internal.options('recon.trajectory.stackofstars', varargin, {'Order', 'Precision'}, {});
kind = recon.internal.spoke_order('stackofstars', own);
k = recon.internal.make_trajectory(kind, {spokes, readout, partitions}, [], own);
end
