function d = kspace(k, dims, varargin)
%KSPACE  The k-space data of a phantom of ellipses or ellipsoids, from its analytic Fourier transform.
%   d = recon.phantom.kspace(k, dims) has the shape of the samples of the trajectory k (see recon.Encoding). dims is the
%   size of the image, [nx ny] or [nx ny nz]. The unit of d is density times voxels.
%
%   d = recon.phantom.kspace(k, dims, Name, Value, ...) sets options:
%
%       'Coils'      number of coils, with the sensitivity maps of recon.phantom.coilmaps; they are the last dimension
%                    of d. Default: one coil of uniform sensitivity
%       'Shapes'     [shapes 10], see recon.phantom.image; default: the head phantom of Shepp and Logan
%       'FieldMap'   off-resonance in Hz, of size dims, with 'Times' as in recon.Encoding: the data are those of an
%                    object with that off-resonance. Likewise 'DecayMap', decay rates in 1/s
%       'Times'      the time of each sample in seconds, for these maps
%       'Threads'    CPU threads; default: all
%       'Precision'  'double' or 'single'; default: the class of k
%
%   Example
%       k = recon.trajectory.radial(64, 256);
%       d = recon.phantom.kspace(k, [128 128], 'Coils', 8);
%
%   See also recon.phantom.image, recon.phantom.noise, recon.trajectory.radial.
recon.internal.need_arguments(nargin, 2, 'recon.phantom.kspace(k, dims)');
names = {'Coils', 'Shapes', 'FieldMap', 'DecayMap', 'Times', 'Threads', 'Precision'};
own = recon.internal.options('recon.phantom.kspace', varargin, names, {});
[samples, ndim] = recon.internal.trajectory(k);
model = 'uniform';
coils = 1;
if isfield(own, 'Coils')
    model = 'ring';
    coils = recon.internal.one_number(own.Coils, 'recon.phantom.kspace: Coils');
end
[geometry, values] = recon.internal.phantom_geometry('recon.phantom.kspace', dims, ndim, own, ...
    struct('Shapes', [], 'Threads', 0, 'Precision', recon.internal.number_class(k)));
geometry.k = k;
geometry = recon.internal.off_resonance(geometry, own, geometry.dims, samples);
geometry.coils = coils;
d = recon_mex('phantom_kspace', geometry, values.Shapes, model, values.Threads, ...
    recon.internal.full_size(samples, coils));
end
