function [map, decay, report] = fieldmap(images, dims, echo_times, varargin)
%FIELDMAP  A field map, in Hz, from images of two or more echoes.
%   f = recon.fieldmap(images, dims, echo_times) is off-resonance in Hz, of size dims, [nx ny] or [nx ny nz], from the
%   phase growth between echoes; for three or more echoes by a weighted fit. images is complex, [dims echoes] or
%   [dims coils echoes], with coils that are not combined. echo_times are in seconds and increase. The signal of a voxel
%   at time t is multiplied by exp(-2i*pi*f*t).
%
%   Weighted smoothing fills voxels without signal. If the phase wraps, it is unwrapped along neighbours, with the
%   warning recon:Wraps. Each connected piece of the object may be off by a multiple of report.period, which does not
%   change any phase: the multiple with the median nearest to 0 Hz is selected. An object at 450 Hz, measured by
%   echoes 2.5 ms apart, is reported at 50 Hz.
%
%   f = recon.fieldmap(images, dims, echo_times, Name, Value, ...) sets options:
%
%       'Smoothing'  weight of differences between neighbouring voxels, relative to that of a voxel of median signal;
%                    default 0.2. 0: voxels with signal keep their measured values
%       'Threshold'  signal below this part of the maximum is ignored, and so is signal that may be noise alone;
%                    default 0.1. 0: all voxels count
%       'Unwrap'     true (default): phase wraps are removed. There is a warning in both cases
%       'Threads'    CPU threads; default 0: all processors. The bits are the same for any number
%
%   [f, decay, report] = recon.fieldmap(...) also returns the map of decay, R2* in 1/s, and a structure:
%
%       limit       the largest |f| in Hz that the phase determines without a wrap: 1 / (2 shortest echo spacing)
%       signal      the part of the voxels that has signal
%       change      weighted RMS in Hz of the changes by smoothing, in voxels with signal
%       jumps       pairs of neighbouring voxels with signal whose phases jumped by more than pi
%       unwrapped   voxels whose phase was unwrapped
%       unresolved  pairs that still jump: there the map is wrong on one side
%       period      the ambiguity of each piece in Hz: 1 / spacing of evenly spaced echoes
%       pieces      separate pieces of voxels with signal
%       undecided   voxels in pieces for which noise hides the multiple of 1 / (shortest spacing) within the period
%
%   Example
%       f = 60 * recon.phantom.image([64 64]);
%       x = recon.phantom.image([64 64]);
%       echo_times = [0.004 0.006];
%       images = cat(3, x .* exp(-2i * pi * f * 0.004), x .* exp(-2i * pi * f * 0.006));
%       map = recon.fieldmap(images, [64 64], echo_times);
%
%   See also recon.grid, recon.cg.
recon.internal.need_arguments(nargin, 3, 'recon.fieldmap(images, dims, echo_times)');
name = 'recon.fieldmap';
recon.internal.need_numbers(images, [name ': the images']);
own = recon.internal.options(name, varargin, {'Smoothing', 'Threshold', 'Unwrap', 'Threads'}, {});
dims = recon.internal.image_size(dims, [], [name ': the image size']);
if numel(dims) > 3
    error('recon:InvalidSize', '%s: the image size is %s: give [nx ny] or [nx ny nz]', name, mat2str(dims));
end
recon.internal.need_numbers(echo_times, [name ': the echo times']);
if ~isreal(echo_times) || ~isvector(echo_times)
    error('recon:InvalidArgument', '%s: the echo times are %s: give a row of seconds', name, ...
        recon.internal.size_text(size(echo_times)));
end
if any(~(dims >= 1)) || any(dims ~= fix(dims))
    error('recon:InvalidSize', '%s: the image size is %s: give whole numbers from 1', name, mat2str(dims));
end
echoes = numel(echo_times);
coils = max(1, floor(numel(images) / prod(dims) / echoes));
if coils == 1 && isequal(size(images), [dims, 1, echoes])
    images = reshape(images, recon.internal.full_size(dims, echoes));
end
following = [coils, echoes];
if coils == 1
    following = echoes;
end
recon.internal.check_size(images, dims, following, false, ...
    {[name ': the images'], 'images', 'the image size, coils if there are several, and the echo times'});
[map, decay, report, warnings] = recon_mex('field_map', images, dims, coils, echo_times, own, nargout > 1);
recon.internal.warn(warnings);
end
