function image = combine(images, varargin)
%COMBINE  Combines the images of coils into one.
%   x = recon.combine(images) is the root of the sum of squared magnitudes over the coils of images, [nx ny coils].
%
%   x = recon.combine(images, Name, Value, ...) sets options:
%
%       'Method'  'rss', or 'adaptive': with sensitivities estimated from the images; keeps the phase, and less noise
%       'Dims'    dimensions of an image: 2 for [nx ny coils frames], 3 for [nx ny nz coils] and [nx ny nz coils frames]
%
%   See also recon.grid, recon.coilmaps.
recon.internal.need(nargin, 1, 'recon.combine(images)');
recon.internal.numbers(images, 'recon.combine: the coil images');
own = recon.internal.options('recon.combine', varargin, {'Method', 'Dims'}, {});
method = 'rss';
if isfield(own, 'Method')
    method = own.Method;
end
ndim = 2;
if ndims(images) > 3 && ~isfield(own, 'Dims')
    error('recon:InvalidArgument', ['recon.combine: the coil images are %s: say with ''Dims'', 2 that they are ' ...
        '[nx ny coils frames], or with ''Dims'', 3 that they are [nx ny nz coils]'], recon.internal.sizes(size(images)));
end
if isfield(own, 'Dims')
    ndim = own.Dims;
    if ~isequal(ndim, 2) && ~isequal(ndim, 3)
        error('recon:InvalidArgument', 'recon.combine: Dims must be 2 or 3');
    end
end
sizes = [size(images), 1, 1, 1];
dims = sizes(1:ndim);
coils = sizes(ndim + 1);
frames = sizes(ndim + 2:end);
geometry = struct('precision', class(images), 'dims', dims, 'coils', coils, 'frames', prod(frames));
image = recon_mex('combine', geometry, images, method, recon.internal.full_size(dims, frames));
if strcmp(method, 'rss')
    image = real(image);
end
end
