function [image, report] = partialfourier(k, d, varargin)
%PARTIALFOURIER  Images of k-space of which one side is missing along one axis.
%   x = recon.partialfourier(k, d, dims) is the image of size dims, [nx ny] or [nx ny nz], with the scale of recon.grid.
%   recon.grid replaces the missing side by zeros, which blurs the image. This function fills it: the image must have a
%   smooth phase, which is that of the symmetric centre of k-space.
%
%   The axis and the width of the symmetric centre follow from k. Any trajectory is possible: Cartesian lines and
%   partitions, asymmetric echoes, stacks of spokes or spirals. Other axes must be complete, and the short side must
%   have at least four samples. If no side is missing, or if lines between are missing (parallel imaging), there is an
%   error.
%
%   k and d have the shapes of recon.grid. Without coil maps each coil has an image and a phase of its own, [dims coils
%   frames]. With 'Maps' the coils are combined, [dims frames]. Images are complex and keep their phase.
%
%   x = recon.partialfourier(k, d, dims, Name, Value, ...) sets options:
%
%       'Algorithm'   'pocs' (default): projection onto convex sets (Haacke et al. 1991), iterations. 'homodyne':
%                     homodyne detection (Noll et al. 1991), one step with a larger error
%       'Iterations'  maximum number of iterations of 'pocs' for each image; default 20
%       'Change'      relative change of an image, in [0, 1), at which its iterations end; default 5e-4. 0: all
%                     iterations are done
%
%   The other options are those of the operator, for example 'Weights' and 'Maps': see recon.Encoding. 'FieldMap',
%   'DecayMap', 'Voxels' and the basis 'box' are errors. Cartesian data without 'Weights' have equal weights.
%
%   [x, report] = recon.partialfourier(...) also returns a structure:
%
%       axis        dimension of the image along which a side is missing: 1, 2 or 3
%       extent      [below above], measured samples below and above k = 0 along it
%       iterations  largest number of iterations of an image
%       change      largest relative change of an image in its last iteration
%       residual    difference between the data and those of the image with the smooth phase, relative to the data
%
%   If the phase is not smooth (a residual above 0.2), or the short side has fewer than seven samples, there is the
%   warning recon:PartialFourier.
%
%   x = recon.partialfourier(E, d, Name, Value, ...) uses the operator E, which must have the coils and frames of d.
%
%   Example
%       k = recon.trajectory.cartesian([128 128]);
%       k = k(:, 49:end, :);
%       d = recon.phantom.kspace(k, [128 128]);
%       recon.show(recon.partialfourier(k, d, [128 128]))
%
%   See also recon.grid, recon.combine, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.partialfourier(k, d, dims)');
name = 'recon.partialfourier';
[E, own, rest] = recon.internal.setup(name, k, d, varargin, {'Algorithm', 'Iterations', 'Change'});
E.refuse_off_resonance(name);
if isa(d, 'gpuArray') || isfield(E.options, 'GpuArray') && E.options.GpuArray
    error('recon:Unsupported', '%s: images are computed from data in the host''s memory: gather k, d and Maps', name);
end
shape = recon.internal.full_size(E.imageSize, rest);
counts = [E.coils, prod(rest)];
if ~E.combines
    sizes = [rest, 1];
    counts = [sizes(1), prod(sizes(2:end))];
end
if ~isequal(counts, [E.coils, E.frames])
    error('recon:SizeMismatch', ['%s: the data have %d coils and %d frames, the operator %d and %d: give the ' ...
        'trajectory instead of it, and leave out Coils and Frames'], name, counts(1), counts(2), E.coils, E.frames);
end
geometry = E.geometry;
options = E.options;
if ~isa(k, 'recon.Encoding')
    % Frees its memory while the images are computed.
    delete(E);
end
[image, report, warnings] = recon_mex('partial_fourier', geometry, options, own, d, shape);
% The operator gave the warnings of the trajectory already.
recon.internal.warn(warnings(strcmp({warnings.identifier}, 'recon:PartialFourier')));
end
