function k = propeller(blades, lines, readout, varargin)
%PROPELLER  Blades: strips of parallel lines, rotated about the centre of k-space.
%   k = recon.trajectory.propeller(blades, lines, readout) is [readout lines blades 2], in cycles per voxel. Lines have
%   the distance 1/readout: the readout is not oversampled.
%
%   k = recon.trajectory.propeller(blades, lines, readout, Name, Value, ...) sets options:
%
%       'Matrix'     scan matrix: lines have the distance 1/Matrix, and the readout is oversampled by readout/Matrix.
%                    From 2*lines to readout, which is the default
%       'Precision'  'double' (default) or 'single'
%
%   The blades cover k-space if blades * lines is at least pi/2 times the scan matrix.
%
%   Example
%       k = recon.trajectory.propeller(17, 24, 960, 'Matrix', 256);
%       d = recon.phantom.kspace(k, [256 256]);
%       x = recon.propeller(k, d, [256 256]);
%
%   See also recon.propeller, recon.trajectory.radial.
recon.internal.need_arguments(nargin, 3, 'recon.trajectory.propeller(blades, lines, readout)');
own = recon.internal.options('recon.trajectory.propeller', varargin, {'Matrix', 'Precision'}, {});
if isfield(own, 'Matrix')
    k = recon.internal.make_trajectory('propeller-scan', {blades, lines, readout, own.Matrix}, [], own);
else
    k = recon.internal.make_trajectory('propeller', {blades, lines, readout}, [], own);
end
end
