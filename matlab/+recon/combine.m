function image = combine(images, dims, varargin)
%COMBINE  Combines the images of coils into one.
%   x = recon.combine(images, dims) is the root of the sum of squared magnitudes over the coils of images, which are
%   [nx ny coils] or [nx ny nz coils], then frames, where dims is the size of one image, [nx ny] or [nx ny nz].
%
%   x = recon.combine(images, dims, Name, Value, ...) sets options:
%
%       'Method'  'rss', or 'adaptive': with sensitivities estimated from the images (Walsh et al. 2000); keeps the
%                 phase, and less noise
%
%   See also recon.grid, recon.coilmaps.
recon.internal.need(nargin, 2, 'recon.combine(images, dims)');
recon.internal.numbers(images, 'recon.combine: the coil images');
own = recon.internal.options('recon.combine', varargin, {'Method'}, {});
method = 'rss';
if isfield(own, 'Method')
    method = own.Method;
end
dims = recon.internal.image_size(dims, [], 'recon.combine: the image size');
rest = recon.internal.fit(images, dims, [], true, {'recon.combine: the coil images', 'images', 'the image size'});
sizes = [rest, 1];
geometry = struct('precision', recon.internal.class_of(images), 'dims', dims, 'coils', sizes(1), ...
    'frames', prod(sizes(2:end)));
image = recon_mex('combine', geometry, images, method, recon.internal.full_size(dims, sizes(2:end)));
if strcmp(method, 'rss')
    image = real(image);
end
end
