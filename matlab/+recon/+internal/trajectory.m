function [samples, ndim] = trajectory(k)
%TRAJECTORY  The shape of a trajectory's samples and its dimensions, from [samples dims], [readout shots dims] or complex.
%   For internal use.
recon.internal.numbers(k, 'the trajectory k');
if ~isreal(k)
    ndim = 2;
    samples = size(k);
    if isvector(k)
        samples = numel(k);
    end
else
    samples = size(k);
    ndim = samples(end);
    if ndim ~= 2 && ndim ~= 3
        hint = 'give [samples 2], [readout shots 2], the same with 3, or complex(kx, ky)';
        if size(k, 1) == 2 || size(k, 1) == 3
            hint = 'it seems to hold coordinates in its first dimension: transpose it, k.''';
            if ndims(k) > 2 %#ok<ISMAT>
                hint = sprintf('it seems to hold coordinates in its first dimension: permute(k, [%s])', ...
                    num2str([2:ndims(k), 1]));
            end
        end
        error('recon:SizeMismatch', 'the trajectory k is %s, its last dimension must be 2 or 3: %s', ...
            recon.internal.sizes(size(k)), hint);
    end
    samples = samples(1:end - 1);
end
samples = recon.internal.trim(samples);
if isempty(samples)
    samples = 1;
end
end
