function k = propeller(blades, lines, readout, varargin)
%PROPELLER  Blades: strips of parallel lines, rotated about the centre of k-space.
%   k = recon.trajectory.propeller(blades, lines, readout) is [readout lines blades 2], in cycles per voxel. Lines have
%   the distance 1/readout. The option 'Precision', 'double' or 'single', sets the class of k.
%
%   Example
%       k = recon.trajectory.propeller(12, 24, 256);
%       w = recon.density(k, [256 256]);
%
%   See also recon.propeller, recon.trajectory.radial.
recon.internal.need_arguments(nargin, 3, 'recon.trajectory.propeller(blades, lines, readout)');
own = recon.internal.options('recon.trajectory.propeller', varargin, {'Precision'}, {});
k = recon.internal.make_trajectory('propeller', {blades, lines, readout}, [], own);
end
