function k = radial(spokes, readout, varargin)
%RADIAL  2D spokes through the centre of k-space.
%   k = recon.trajectory.radial(spokes, readout) is [readout spokes 2], in cycles per voxel: sample j of a spoke lies at
%   the signed radius (j - floor(readout/2)) / readout, j from 0; spoke p at the angle p pi / spokes.
%
%   k = recon.trajectory.radial(spokes, readout, Name, Value, ...) sets options:
%
%       'Order'      'linear', or 'golden': spoke p at p times 111.246 degrees
%       'Precision'  'double' or 'single'
%
%   Example
%       k = recon.trajectory.radial(64, 256, 'Order', 'golden');
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.radial3d, recon.trajectory.stackofstars, recon.phantom.kspace.
recon.internal.need(nargin, 2, 'recon.trajectory.radial(spokes, readout)');
own = recon.internal.options('recon.trajectory.radial', varargin, {'Order', 'Precision'}, {});
kind = recon.internal.spoke_order('radial', own);
k = recon.internal.generate(kind, {spokes, readout}, [], own);
end
