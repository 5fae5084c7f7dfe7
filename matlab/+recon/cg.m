function [image, report] = cg(k, d, varargin)
%CG  Regularised least squares by conjugate gradients.
%   x = recon.cg(k, d, dims) solves (E^H W E + lambda R^H R) x = E^H W d for the image x of size dims, [nx ny] or
%   [nx ny nz]. d are k-space data on the trajectory k. The method is that of Stone et al. 2008, and with coil
%   sensitivity maps CG-SENSE, Pruessmann et al. 2001.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel. d has the shape
%   of the trajectory's samples, then coils, then frames. Another order is an error. Without coil maps each coil has one
%   image, [dims coils frames]. With 'Maps' the coils are combined, [dims frames]. x has the class of d.
%
%   x = recon.cg(k, d, dims, Name, Value, ...) sets options:
%
%       'Maps'        coil sensitivity maps, [dims coils], or 'data': estimated from d (Walsh et al. 2000), relative
%                     to the coils' root sum of squares. help recon.coilmaps says when the estimate fails
%       'Iterations'  maximum number of iterations for each image; default 12
%       'Residual'    stop when the norm of the residual, divided by that of E^H W d, falls to this value; default 0:
%                     never
%       'Lambda'      weight of the prior, relative to the mean diagonal of E^H W E. This mean is the sum of the
%                     density weights if coil maps have unit norm. Default 0: no prior, whatever 'Prior' is
%       'LambdaUnit'  'relative' (default), or 'absolute': lambda is used in the equation above without scaling
%       'NoiseLevel'  the root of the mean |noise|^2 of a sample, in the unit of d (1 after recon.whiten), instead of
%                     'Lambda': lambda is computed so that the image is as far from the data as the noise is (the
%                     discrepancy principle, Morozov 1966). It takes seven to twelve solutions, and requires no
%                     density weights. If the level does not fit the data, there is the warning recon:Noise
%       'Prior'       R: 'identity' (default), 'differences' between neighbours, 'anatomical', or a sparse matrix with a
%                     column for each voxel
%       'Reference'   for 'anatomical': the reference image, real, of size dims
%       'Edge'        for 'anatomical': difference in the reference that counts as a border, as a fraction of its
%                     maximum magnitude; default 0.1
%       'Initial'     image to start from, of the size of x. It may also be one image of the operator, which is then
%                     the initial image of all coils and frames that are solved one by one. Default: zeros
%       'Weights'     density weights, or 'ramp', 'jackson', 'pipe-menon': faster convergence, more noise; default 1
%       'Progress'    true prints the progress. A function f(p) is called before the first iteration and after each one.
%                     p is a structure: image, images, iteration, iterations, residual. An error in f ends the
%                     solution. Ctrl-C ends it too, with the error recon:Cancelled, and frees everything
%
%   The options of the operator, for example 'Tolerance', 'Device' and 'Threads', are in help recon.Encoding. Among them
%   are 'FieldMap', 'DecayMap' and 'Times', for the image without the blur of off-resonance and decay. Many
%   iterations without a prior amplify the errors of the transforms: use the default 'Tolerance' or a smaller one.
%
%   [x, report] = recon.cg(...) also returns a structure. stop is 'iterations', 'tolerance' (the value of 'Residual' was
%   reached) or 'exact' (the residual cannot decrease further). iterations and residual are those of the image with the
%   largest residual, worst_image. images is the number of images. lambda is the absolute value. residuals is
%   [iterations + 1, images], NaN if an image needed fewer. q_seconds, adjoint_seconds and iteration_seconds are times.
%
%   x = recon.cg(E, d, Name, Value, ...) uses the operator E.
%
%   Example
%       k = recon.trajectory.radial(48, 256, 'Order', 'golden');
%       d = recon.phantom.noise(recon.phantom.kspace(k, [128 128], 'Coils', 8), 50);
%       x = recon.cg(k, d, [128 128], 'Maps', recon.phantom.coilmaps([128 128], 8), 'Iterations', 20);
%       recon.show(x)
%
%   See also recon.grid, recon.coilmaps, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.cg(k, d, dims)');
names = {'Iterations', 'Residual', 'Lambda', 'LambdaUnit', 'NoiseLevel', 'Prior', 'Reference', 'Edge', 'Initial', ...
    'Progress'};
[E, o, rest] = recon.internal.setup('recon.cg', k, d, varargin, names);
if isfield(o, 'Progress') && (islogical(o.Progress) || isnumeric(o.Progress)) && isscalar(o.Progress)
    if o.Progress
        o.Progress = @recon.internal.progress;
    else
        o = rmfield(o, 'Progress');
    end
end
if isfield(o, 'Progress') && isa(o.Progress, 'function_handle')
    f = o.Progress;
    o.Progress = @(p) recon.internal.catch_error(f, p);
end
o.Residuals = nargout > 1;
shape = recon.internal.full_size(E.imageSize, rest);
each = prod(E.kspaceShape);
count = numel(d) / each;
if count ~= round(count)
    error('recon:SizeMismatch', 'the k-space data are %s, %d elements: the operator takes %d, or a multiple', ...
        recon.internal.size_text(size(d)), numel(d), each);
end
one_for_all = false;
if isfield(o, 'Initial')
    one_for_all = fit_initial(E, o.Initial, rest, count);
end
if isfield(o, 'Reference')
    recon.internal.need_numbers(o.Reference, 'Reference');
    recon.internal.check_size(o.Reference, E.imageSize, [], false, {'Reference', 'Reference', 'the image'});
end
if count == 1
    [image, report] = solve(E, d, o, shape);
    return
end
% The operator processes fewer coils or frames at once: one solution after the other.
d = reshape(d, each, count);
initial = [];
if isfield(o, 'Initial') && ~one_for_all
    initial = reshape(o.Initial, [], count);
end
image = [];
for i = 1:count
    if ~isempty(initial)
        o.Initial = initial(:, i);
    end
    [x, r] = solve(E, d(:, i), o, E.imageShape);
    if i == 1
        image = zeros(numel(x), count, 'like', x);
        report = r;
    else
        rows = max(size(report.residuals, 1), size(r.residuals, 1));
        r.residuals = [pad(report.residuals, rows), pad(r.residuals, rows)];
        r.worst_image = r.worst_image + report.images;
        r.images = r.images + report.images;
        seconds = {'q_seconds', 'adjoint_seconds', 'iteration_seconds'};
        for s = 1:numel(seconds)
            r.(seconds{s}) = r.(seconds{s}) + report.(seconds{s});
        end
        if report.residual > r.residual
            kept = {'stop', 'worst_image', 'iterations', 'residual'};
            for s = 1:numel(kept)
                r.(kept{s}) = report.(kept{s});
            end
        end
        report = r;
    end
    image(:, i) = x(:);
end
image = reshape(image, shape);
end

function one_for_all = fit_initial(E, initial, rest, count)
% 'Initial' has the size of the result, or that of one image of the operator for all of its solutions, or is a column.
recon.internal.need_numbers(initial, 'Initial');
one_for_all = count > 1 && numel(initial) == prod(E.imageShape);
if one_for_all
    rest = E.imageShape(numel(E.imageSize) + 1:end);
end
if ~isequal(size(initial), [prod([E.imageSize, rest]), 1])
    recon.internal.check_size(initial, E.imageSize, rest, false, {'Initial', 'Initial', 'the result'});
end
end

function [image, report] = solve(E, d, o, shape)
[image, report, thrown, warnings] = recon_mex('cg', E.plan.id, d, o, shape);
if ~isempty(thrown)
    rethrow(thrown);
end
recon.internal.warn(warnings);
if o.Residuals
    % Rows of iterations that no image needed.
    report.residuals = report.residuals(any(~isnan(report.residuals), 2), :);
end
end

function residuals = pad(residuals, rows)
residuals(end + 1:rows, :) = NaN;
end
