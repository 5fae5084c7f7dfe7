function [image, motion] = propeller(k, d, varargin)
%PROPELLER  Motion-corrected image from PROPELLER blades (Pipe 1999).
%   x = recon.propeller(k, d, dims) estimates the motion of the object in the plane and the phase of each blade, from
%   the centre of k-space that all blades measure. x is the gridding reconstruction of the corrected data, of size
%   dims, [nx ny], with the scale of recon.grid. Blades that disagree with the others have lower weights.
%
%   k is [readout lines blades 2], or complex, kx + 1i*ky, in cycles per voxel: strips of parallel lines about the
%   centre of k-space, in the order of acquisition. Alternate lines may have the opposite direction. [readout shots 2]
%   and [samples 2] are valid too: recon finds the lines of each blade. Other trajectories are an error. Voxels are
%   assumed to be square. d has the shape [readout lines blades], then coils, then frames. Frames are corrected one by
%   one. Without coil maps each coil has one image, [dims coils frames].
%
%   x = recon.propeller(k, d, dims, Name, Value, ...) sets options:
%
%       'Lines'        lines of a blade; default 0: all successive lines that are parallel and evenly spaced
%       'Phase'        'smooth' (default): removes the phase of a smooth image of each blade, coil by coil, including
%                      the smooth phase of the object and of the coils. 'constant': removes one phase per
%                      blade, the same in all coils. 'none': removes nothing
%       'Rotation'     true (default): estimates and corrects rotations
%       'Translation'  true (default): estimates and corrects translations
%       'Weighting'    true (default): blades that disagree with the others have lower weights in the image
%
%   'Weights' are an error, and the weights of an operator are not used: the corrected samples have their own weights.
%   'Maps' combine the coils. They require 'Phase' to be 'constant' or 'none', because 'smooth' removes the coils'
%   phases. 'Maps', 'data' are estimated before the correction. 'FieldMap' and 'DecayMap' are an error. The other
%   options are those of the operator, for example 'Precision' and 'Threads': see recon.Encoding.
%
%   [x, motion] = recon.propeller(...) also returns a structure:
%
%       rotation     [blades frames], rotation of the object in degrees about the voxel floor(n/2) + 1, from the first
%                    dimension of the image to the second, relative to its mean over all blades
%       translation  [2 blades frames], translation after the rotation, in voxels along the first and second dimension
%       phase        [blades frames], phase in radians that was removed from the blade; with 'smooth' the mean over the
%                    image
%       correlation  [blades frames], correlation of the corrected blade with all others, about the centre of k-space, 0
%                    to 1
%       weight       [blades frames], weight of the blade where it overlaps with others, from 0 to 1
%       lines        lines of a blade
%       k, d, w      the corrected scan: trajectory, [size of the samples, frames, 2], data of the size of d, and
%                    density weights, [size of the samples, frames]. k is complex if the input is. Samples that a
%                    rotation moves out of [-0.5, 0.5) are at the edge, with weight 0
%
%   Use the corrected scan like any other scan:
%
%       x = recon.cg(motion.k, motion.d, dims, 'Weights', motion.w);
%
%   If blades do not agree after the correction, there is the warning recon:Blades: the object moved through the plane
%   or rotated by more than 45 degrees, or 'Lines' is wrong.
%
%   x = recon.propeller(E, d, Name, Value, ...) uses the operator E, which must have the coils and frames of d.
%
%   Example
%       k = recon.trajectory.propeller(12, 16, 128);
%       d = recon.phantom.kspace(k, [96 96]);
%       [x, motion] = recon.propeller(k, d, [96 96]);
%       recon.show(x)
%
%   See also recon.trajectory.propeller, recon.grid, recon.cg, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.propeller(k, d, dims)');
name = 'recon.propeller';
names = {'Lines', 'Phase', 'Rotation', 'Translation', 'Weighting', 'Weights'};
[E, own, rest] = recon.internal.setup(name, k, d, varargin, names);
if isfield(own, 'Weights')
    error('recon:InvalidArgument', ['%s: the corrected samples have their own density weights, which motion.w ' ...
        'returns: leave out Weights'], name);
end
E.refuse_off_resonance(name);
if isa(d, 'gpuArray') || isfield(E.options, 'GpuArray') && E.options.GpuArray
    error('recon:Unsupported', '%s: blades are corrected in the host''s memory: gather k, d and Maps', name);
end
shape = recon.internal.full_size(E.imageSize, rest);
counts = [E.coils, prod(rest)];
if ~E.combines
    sizes = [rest, 1];
    rest = sizes(2:end);
    counts = [sizes(1), prod(rest)];
end
if ~isequal(counts, [E.coils, E.frames])
    error('recon:SizeMismatch', ['%s: the data have %d coils and %d frames, the operator %d and %d: give the ' ...
        'trajectory instead of it, and leave out Coils and Frames'], name, counts(1), counts(2), E.coils, E.frames);
end
geometry = E.geometry;
geometry.weights = [];
options = E.options;
samples = E.sampleSize;
complex_k = ~isreal(geometry.k);
if ~isa(k, 'recon.Encoding')
    % Frees its memory while the blades are corrected.
    delete(E);
end
[image, found, warnings] = recon_mex('propeller', geometry, options, own, d, shape);
recon.internal.warn(warnings);
numbers = reshape(found.motion, 6, []);
of_blades = recon.internal.full_size(found.blades, rest);
motion.rotation = reshape(numbers(1, :), of_blades);
motion.translation = reshape(numbers(2:3, :), recon.internal.full_size(2, found.blades, rest));
motion.phase = reshape(numbers(4, :), of_blades);
motion.correlation = reshape(numbers(5, :), of_blades);
motion.weight = reshape(numbers(6, :), of_blades);
motion.lines = found.lines;
motion.k = found.k;
if complex_k
    motion.k = reshape(complex(found.k(:, 1), found.k(:, 2)), recon.internal.full_size(samples, rest));
else
    motion.k = reshape(found.k, [samples, recon.internal.trim_ones(rest), 2]);
end
motion.d = reshape(found.d, size(d));
motion.w = reshape(found.w, recon.internal.full_size(samples, rest));
end
