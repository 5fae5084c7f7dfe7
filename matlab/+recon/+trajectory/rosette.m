function k = rosette(shots, readout, radial, angular, varargin)
%ROSETTE  2D rosettes.
%   k = recon.trajectory.rosette(shots, readout, radial, angular) is [readout shots 2], in cycles per voxel. Sample j of
%   a shot is 0.5 sin(2 pi radial u) exp(2i pi angular u), u = j / readout. Each shot is rotated by a golden angle
%   relative to the previous shot. radial is the number of oscillations of a shot, angular the number of its turns. The
%   option 'Precision', 'double' or 'single', sets the class of k.
%
%   Example
%       k = recon.trajectory.rosette(24, 1024, 5, 3);
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.spiral.
recon.internal.need_arguments(nargin, 4, 'recon.trajectory.rosette(shots, readout, radial, angular)');
own = recon.internal.options('recon.trajectory.rosette', varargin, {'Precision'}, {});
k = recon.internal.make_trajectory('rosette', {shots, readout, radial, angular}, [], own);
end
