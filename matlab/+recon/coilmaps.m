function maps = coilmaps(k, d, varargin)
%COILMAPS  Coil sensitivity maps estimated from the centre of k-space (Walsh et al. 2000).
%   S = recon.coilmaps(k, d, dims) estimates coil sensitivity maps, [dims coils], from k-space data d on the trajectory
%   k. Frames are averaged. Pass S as the option 'Maps'.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel. d has the shape
%   of the trajectory's samples, then coils, then frames.
%
%   S is an estimate by the adaptive method of Walsh et al., MRM 43:682, 2000, from images of low resolution. In each
%   voxel it is the dominant eigenvector of the coils' covariance around that voxel. It is relative: the sum of |S|^2
%   over the coils is 1, and its phase is that of the combined coils. So an image with these maps is the object times
%   the root sum of squares of the true sensitivities. S is 0 in voxels whose signal is below 1 % of its maximum: there
%   is no object. If samples are about 1/FOV apart, it is also 0 in the corners of the field of view.
%
%   The estimate fails if the centre of k-space has no signal or few samples, if the object is larger than the field of
%   view, or if the phase of the image varies strongly. It also fails if 'Calibration' is too small for the
%   sensitivities, or so large that gaps between the samples cause aliasing. docs/matlab.md has numbers.
%
%   S = recon.coilmaps(k, d, dims, Name, Value, ...) sets options:
%
%       'Calibration'  width of the central region of k-space, in samples of a Cartesian scan. Default: 24,
%                      and in a plane up to 48 if k-space is sampled without gaps to that width
%
%   The options of the operator are in help recon.Encoding. Maps are estimated with 'FieldMap' and without
%   'DecayMap'.
%
%   Example
%       k = recon.trajectory.radial(96, 256);
%       d = recon.phantom.kspace(k, [128 128], 'Coils', 8);
%       S = recon.coilmaps(k, d, [128 128]);
%       x = recon.cg(k, d, [128 128], 'Maps', S);
%
%   See also recon.cg, recon.combine.
recon.internal.need_arguments(nargin, 2, 'recon.coilmaps(k, d, dims)');
[E, own, rest] = recon.internal.setup('recon.coilmaps', k, d, varargin, {'Calibration'});
if E.combines
    error('recon:InvalidArgument', 'recon.coilmaps: the operator has coil maps already: leave Maps out');
end
calibration = 0;
if isfield(own, 'Calibration')
    calibration = own.Calibration;
end
sizes = [rest, 1];
if sizes(1) ~= E.coils || prod(sizes) ~= E.coils * E.frames
    error('recon:SizeMismatch', ...
        'recon.coilmaps: the data have %d coils, the operator %d: give the trajectory instead of it', ...
        sizes(1), E.coils);
end
maps = recon_mex('coil_maps', E.plan.id, d, calibration, recon.internal.full_size(E.imageSize, E.coils));
end
