function k = rosette(shots, readout, radial, angular, varargin)
%ROSETTE  2D rosettes.
%   k = recon.trajectory.rosette(shots, readout, radial, angular) is [readout shots 2], in cycles per voxel:
%   0.5 sin(2 pi radial u) exp(2i pi angular u), u = j / readout, each shot turned by a golden angle. radial and angular
%   count the oscillations and turns of a shot. The option 'Precision', 'double' or 'single', sets the class of k.
%
%   Example
%       k = recon.trajectory.rosette(24, 1024, 5, 3);
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.spiral.
recon.internal.need(nargin, 4, 'recon.trajectory.rosette(shots, readout, radial, angular)');
own = recon.internal.options('recon.trajectory.rosette', varargin, {'Precision'}, {});
k = recon.internal.generate('rosette', {shots, readout, radial, angular}, [], own);
end
