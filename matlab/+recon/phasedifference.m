function difference = phasedifference(images, reference, dims, varargin)
%PHASEDIFFERENCE  The phase of images minus that of reference images, or the velocity that it encodes.
%   p = recon.phasedifference(images, reference, dims) is the phase of the sum over coils of images .* conj(reference),
%   in radians, in [-pi, pi). dims is the size of one image, [nx ny] or [nx ny nz]. Both arrays are [nx ny coils] or
%   [nx ny nz coils]; frames may follow. The phases of coils cancel: do not combine coils by the root of the sum of
%   squares, which loses the phase. Voxels without signal in one of the images are 0.
%
%   p = recon.phasedifference(images, reference, dims, Name, Value, ...) sets options:
%
%       'Venc'     the velocity that causes a phase of pi, in any unit. The result is then a velocity in this unit, in
%                  [-Venc, Venc)
%       'Maxwell'  four coefficients of concomitant fields in cycles per square metre, MaxwellCoefficient_0 to
%                  MaxwellCoefficient_3 of ISMRMRD's header (Bernstein et al. 1998). The phase
%                  2*pi*(c(1)*z^2 + c(2)*(x^2 + y^2) + c(3)*x*z + c(4)*y*z) is added; negate c to subtract it
%       'Origin'   [x y z] of the first voxel in mm from the isocentre; required with Maxwell
%       'Steps'    [3 3], column i is the step in mm along image dimension i; required with Maxwell
%
%   x, y and z of Maxwell, Origin and Steps are along the gradients' axes, z along the main field. For a patient with
%   the head first and supine (HFS), they are [1 -1 -1] .* position, with ISMRMRD's positions (x to the left, y to the
%   back, z to the head).
%
%   If neighbouring voxels with signal differ by more than pi, there is the warning recon:Wraps: the velocity may exceed
%   Venc.
%
%   Example
%       x = recon.phantom.image([64 64]);
%       v = 80 * x / max(x(:));
%       images = x .* exp(1i * pi * v / 150);
%       velocity = recon.phasedifference(images, complex(x), [64 64], 'Venc', 150);
%
%   See also recon.grid, recon.cg, recon.combine.
name = 'recon.phasedifference';
recon.internal.need_arguments(nargin, 3, 'recon.phasedifference(images, reference, dims)');
recon.internal.need_numbers(images, [name ': the images']);
recon.internal.need_numbers(reference, [name ': the reference']);
own = recon.internal.options(name, varargin, {'Venc', 'Maxwell', 'Origin', 'Steps'}, {});
dims = recon.internal.image_size(dims, [], [name ': the image size']);
rest = recon.internal.check_size(images, dims, [], true, {[name ': the images'], 'images', 'the image size'});
other = recon.internal.check_size(reference, dims, [], true, {[name ': the reference'], 'reference', 'the image size'});
if ~isequal(rest, other)
    error('recon:SizeMismatch', '%s: the images are %s and the reference is %s: they must have the same size', name, ...
        recon.internal.size_text(size(images)), recon.internal.size_text(size(reference)));
end
class_name = recon.internal.number_class(images);
if ~strcmp(class_name, recon.internal.number_class(reference))
    error('recon:InvalidArgument', '%s: the images are %s and the reference is %s: convert one of them', name, ...
        class_name, recon.internal.number_class(reference));
end
if isfield(own, 'Maxwell') ~= isfield(own, 'Origin') || isfield(own, 'Maxwell') ~= isfield(own, 'Steps')
    error('recon:InvalidArgument', '%s: Maxwell, Origin and Steps belong together: give all three, or none', name);
end
if isfield(own, 'Steps') && ~isequal(size(own.Steps), [3 3])
    error('recon:SizeMismatch', '%s: Steps is %s: give [3 3], with a step in mm in each column', name, ...
        recon.internal.size_text(size(own.Steps)));
end
sizes = [rest, 1];
geometry = struct('precision', class_name, 'dims', dims, 'coils', sizes(1), 'frames', prod(sizes(2:end)));
[difference, warnings] = recon_mex('phase_difference', geometry, images, reference, own, ...
    recon.internal.full_size(dims, sizes(2:end)));
recon.internal.warn(warnings);
end
