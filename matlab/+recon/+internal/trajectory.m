function [samples, ndim] = trajectory(k)
%TRAJECTORY  The shape of a trajectory's samples and its dimensions, from [samples dims], [readout shots dims] or complex.
%   For internal use.
recon.internal.numbers(k, 'the trajectory k');
samples = size(k);
if ~isreal(k)
    ndim = 2;
    if isvector(k) && size(k, 1) == 1 && numel(k) > 1
        error('recon:SizeMismatch', 'the trajectory k is %s: a complex one is a column: permute(k, [2 1])', ...
            recon.internal.sizes(size(k)));
    end
else
    ndim = samples(end);
    if ndim ~= 2 && ndim ~= 3
        error('recon:SizeMismatch', ['the trajectory k is %s, its last dimension must be 2 or 3, as of [samples 2], ' ...
            '[readout shots 2], the same with 3, or complex(kx, ky)%s'], recon.internal.sizes(size(k)), ...
            recon.internal.last_dimension(size(k), [2 3], 'k'));
    end
    samples = samples(1:end - 1);
end
samples = recon.internal.trim(samples);
if isempty(samples)
    samples = 1;
end
end
