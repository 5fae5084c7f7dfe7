function image = combine(images, dims, varargin)
%COMBINE  Combines the images of the coils into one image.
%   x = recon.combine(images, dims) is the root sum of squares over the coils. dims is the size of one image, [nx ny] or
%   [nx ny nz]. images is [nx ny coils] or [nx ny nz coils]; frames may follow.
%
%   x = recon.combine(images, dims, Name, Value, ...) sets options:
%
%       'Method'  'rss' (default), or 'adaptive': with coil sensitivity maps estimated from the images (Walsh et al.
%                 2000). 'adaptive' keeps the phase and has less noise
%
%   See also recon.grid, recon.coilmaps.
recon.internal.need_arguments(nargin, 2, 'recon.combine(images, dims)');
recon.internal.need_numbers(images, 'recon.combine: the coil images');
own = recon.internal.options('recon.combine', varargin, {'Method'}, {});
method = 'rss';
if isfield(own, 'Method')
    method = own.Method;
end
dims = recon.internal.image_size(dims, [], 'recon.combine: the image size');
rest = recon.internal.check_size(images, dims, [], true, ...
    {'recon.combine: the coil images', 'images', 'the image size'});
sizes = [rest, 1];
geometry = struct('precision', recon.internal.number_class(images), 'dims', dims, 'coils', sizes(1), ...
    'frames', prod(sizes(2:end)));
image = recon_mex('combine', geometry, images, method, recon.internal.full_size(dims, sizes(2:end)));
if strcmp(method, 'rss')
    image = real(image);
end
end
