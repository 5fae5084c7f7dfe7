function x = image(dims, varargin)
%IMAGE  The image of a phantom of ellipses or ellipsoids.
%   x = recon.phantom.image(dims) is the head phantom of Shepp and Logan with increased contrast. x is real, of size
%   dims, [nx ny] or [nx ny nz].
%
%   x = recon.phantom.image(dims, Name, Value, ...) sets options:
%
%       'Shapes'       [shapes 10], one row for each ellipse: density, centre x y z, semi-axes x y z, Euler angles phi
%                      theta psi in radians. The rotation is Rz(phi) Ry(theta) Rz(psi). The field of view is [-1, 1]
%       'Supersample'  the density of a voxel is averaged over this number of points along each axis; default 4
%       'Precision'    'double' (default) or 'single'
%
%   Example
%       recon.show(recon.phantom.image([128 128]))
%
%   See also recon.phantom.kspace, recon.metrics.
recon.internal.need_arguments(nargin, 1, 'recon.phantom.image(dims)');
own = recon.internal.options('recon.phantom.image', varargin, {'Shapes', 'Supersample', 'Precision'}, {});
[geometry, values] = recon.internal.phantom_geometry('recon.phantom.image', dims, [], own, ...
    struct('Shapes', [], 'Supersample', 4, 'Precision', 'double'));
x = recon_mex('phantom_image', geometry, values.Shapes, values.Supersample, recon.internal.full_size(geometry.dims));
end
