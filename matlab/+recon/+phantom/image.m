function x = image(dims, varargin)
%IMAGE  The image of a phantom of ellipses or ellipsoids.
%   x = recon.phantom.image(dims) is the head of Shepp and Logan with raised contrast, real, of size dims, [nx ny] or
%   [nx ny nz].
%
%   x = recon.phantom.image(dims, Name, Value, ...) sets options:
%
%       'Shapes'       [shapes 10], a row each: density, centre x y z, semi-axes x y z, Euler angles phi theta psi in
%                      radians (turned by Rz(phi) Ry(theta) Rz(psi)); [-1, 1] spans the field of view
%       'Supersample'  points a voxel and axis over which the density is averaged; default 4
%       'Precision'    'double' or 'single'
%
%   Example
%       recon.show(recon.phantom.image([128 128]))
%
%   See also recon.phantom.kspace, recon.metrics.
recon.internal.need(nargin, 1, 'recon.phantom.image(dims)');
own = recon.internal.options('recon.phantom.image', varargin, {'Shapes', 'Supersample', 'Precision'}, {});
[geometry, values] = recon.internal.phantom_geometry('recon.phantom.image', dims, [], own, ...
    struct('Shapes', [], 'Supersample', 4, 'Precision', 'double'));
x = recon_mex('phantom_image', geometry, values.Shapes, values.Supersample, recon.internal.full_size(geometry.dims));
end
