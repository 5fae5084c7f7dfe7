function maps = coilmaps(k, d, varargin)
%COILMAPS  Coil sensitivities from the data's own centre of k-space.
%   S = recon.coilmaps(k, d, dims) estimates sensitivities, [dims coils], scaled to sum |S|^2 = 1 over coils, from
%   k-space data d on the trajectory k. Frames are averaged. Give S to the option 'Maps'.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel. d has the shape
%   of the trajectory's samples, then coils, then frames.
%
%   S = recon.coilmaps(k, d, dims, Name, Value, ...) sets options:
%
%       'Calibration'  width of the centre of k-space that is used, in samples of a Cartesian scan; default 24
%
%   and those of the operator: see recon.Encoding.
%
%   Example
%       k = recon.trajectory.radial(96, 256);
%       d = recon.phantom.kspace(k, [128 128], 'Coils', 8);
%       S = recon.coilmaps(k, d, [128 128]);
%       x = recon.cg(k, d, [128 128], 'Maps', S);
%
%   See also recon.cg, recon.combine.
recon.internal.need(nargin, 2, 'recon.coilmaps(k, d, dims)');
[E, own, rest] = recon.internal.setup('recon.coilmaps', k, d, varargin, {'Calibration'});
if E.combines
    error('recon:InvalidArgument', 'recon.coilmaps: the operator has coil maps already: leave Maps out');
end
calibration = 24;
if isfield(own, 'Calibration')
    calibration = own.Calibration;
end
sizes = [rest, 1];
if sizes(1) ~= E.coils || prod(sizes) ~= E.coils * E.frames
    error('recon:SizeMismatch', 'recon.coilmaps: the data have %d coils, the operator %d: give the trajectory in its place', ...
        sizes(1), E.coils);
end
maps = recon_mex('coil_maps', E.plan.id, d, calibration, recon.internal.full_size(E.imageSize, E.coils));
end
