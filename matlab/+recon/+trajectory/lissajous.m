function k = lissajous(shots, readout, x_frequency, y_frequency, varargin)
%LISSAJOUS  A closed 2D Lissajous curve, cut into shots.
%   k = recon.trajectory.lissajous(shots, readout, x_frequency, y_frequency) is [readout shots 2], in cycles per voxel:
%   0.5 sin(2 pi x_frequency u) and 0.5 sin(2 pi y_frequency u). u grows from 0 to 1 over all samples. The frequencies
%   have no common factor, and one of them is even; otherwise, the curve would be traced several times. The option
%   'Precision', 'double' or 'single', sets the class of k.
%
%   An image of n x n voxels is fully sampled if both frequencies are at least 1.25 n.
%
%   Example
%       k = recon.trajectory.lissajous(16, 2000, 80, 81);
%       plot(k(:, :, 1), k(:, :, 2))
%
%   See also recon.trajectory.rosette.
recon.internal.need_arguments(nargin, 4, 'recon.trajectory.lissajous(shots, readout, x_frequency, y_frequency)');
own = recon.internal.options('recon.trajectory.lissajous', varargin, {'Precision'}, {});
k = recon.internal.make_trajectory('lissajous', {shots, readout, x_frequency, y_frequency}, [], own);
end
