function [samples, ndim] = trajectory(k)
%TRAJECTORY  Returns the shape of a trajectory's samples, and its number of dimensions. For internal use.
%   k is [samples dims] or [readout shots dims], or complex.
recon.internal.need_numbers(k, 'the trajectory k');
samples = size(k);
if ~isreal(k)
    ndim = 2;
    if isvector(k) && size(k, 1) == 1 && numel(k) > 1
        error('recon:SizeMismatch', 'the trajectory k is %s: a complex one is a column: permute(k, [2 1])', ...
            recon.internal.size_text(size(k)));
    end
else
    ndim = samples(end);
    if ndim ~= 2 && ndim ~= 3
        error('recon:SizeMismatch', ['the trajectory k is %s, its last dimension must be 2 or 3, as of ' ...
            '[samples 2], [readout shots 2], the same with 3, or complex(kx, ky)%s'], ...
            recon.internal.size_text(size(k)), recon.internal.last_dimension(size(k), [2 3], 'k'));
    end
    samples = samples(1:end - 1);
end
samples = recon.internal.trim_ones(samples);
if isempty(samples)
    samples = 1;
end
end
