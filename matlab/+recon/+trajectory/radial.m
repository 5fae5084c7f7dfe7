function k = radial(spokes, readout, varargin)
%RADIAL  2D spokes through the centre of k-space.
%   k = recon.trajectory.radial(spokes, readout) is [readout spokes 2], in cycles per voxel. Sample j of a spoke has the
%   signed radius (j - floor(readout/2)) / readout. Spoke p has the angle p pi / spokes. j and p count from 0.
%
%   k = recon.trajectory.radial(spokes, readout, Name, Value, ...) sets options:
%
%       'Order'      'linear' (default), or 'golden': spoke p has the angle p times 111.246 degrees
%       'Precision'  'double' (default) or 'single'
%
%   Example
%       k = recon.trajectory.radial(64, 256, 'Order', 'golden');
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.radial3d, recon.trajectory.stackofstars, recon.phantom.kspace.
recon.internal.need_arguments(nargin, 2, 'recon.trajectory.radial(spokes, readout)');
own = recon.internal.options('recon.trajectory.radial', varargin, {'Order', 'Precision'}, {});
kind = recon.internal.spoke_order('radial', own);
k = recon.internal.make_trajectory(kind, {spokes, readout}, [], own);
end
