function [whitened, matrix] = whiten(d, noise, varargin)
%WHITEN  Makes the noise of all coils independent with variance 1.
%   d = recon.whiten(d, noise) whitens k-space data d by samples without signal. noise has the coils in its last
%   dimension. The dimension of d with the same length counts the coils. 400 samples per coil give an error of about
%   10 %; with fewer samples there is the warning recon:Noise. Combined images and recon.cg have less noise with
%   whitened data, because they assume that the coils' noise is equal and independent.
%
%   [d, M] = recon.whiten(d, noise) also returns the matrix, [coils coils]. Transform known coil maps by the same
%   matrix. Maps that recon.coilmaps estimates from whitened data are already right:
%
%       maps = recon.whiten(maps, [], 'Matrix', M)
%
%   d = recon.whiten(d, [], 'Covariance', C) whitens by a known covariance of the coils' noise, [coils coils], the mean
%   of n * n'.
%
%   d = recon.whiten(d, noise, Name, Value, ...) sets options:
%
%       'NoiseDwell', 'Dwell'  time between samples of the noise and of the data, in the same unit. Noise that is
%                              sampled more slowly has less variance. Default: they are equal
%       'NoiseBandwidth'       the receiver's noise bandwidth over its sampling bandwidth, from 0 to 1 (default),
%                              relativeReceiverNoiseBandwidth of ISMRMRD
%       'Dim'                  the dimension of d that counts the coils. Required if several have the same length
%
%   See also recon.compress, recon.coilmaps, recon.cg.
recon.internal.need_arguments(nargin, 2, 'recon.whiten(d, noise)');
name = 'recon.whiten';
recon.internal.need_numbers(d, [name ': the data']);
own = recon.internal.options(name, varargin, ...
    {'Covariance', 'Matrix', 'NoiseDwell', 'Dwell', 'NoiseBandwidth', 'Dim'}, {});
given = [~isempty(noise), isfield(own, 'Covariance'), isfield(own, 'Matrix')];
if sum(given) ~= 1
    error('recon:InvalidArgument', '%s: give either noise, or [] and ''Covariance'', or [] and ''Matrix''', name);
end
sampling = intersect(fieldnames(own), {'NoiseDwell', 'Dwell', 'NoiseBandwidth'});
if ~given(1) && ~isempty(sampling)
    error('recon:InvalidArgument', '%s: ''%s'' goes with noise: a covariance is that of the data''s noise', name, ...
        sampling{1});
end
if given(1)
    recon.internal.need_numbers(noise, [name ': the noise']);
    sizes = size(noise);
    if numel(sizes) == 2 && sizes(1) == sizes(2) && sizes(1) > 1 && isequal(noise, noise')
        error('recon:InvalidArgument', ...
            '%s: the noise is a Hermitian matrix: recon.whiten(d, [], ''Covariance'', noise) takes a covariance', name);
    end
    if isfield(own, 'NoiseDwell') ~= isfield(own, 'Dwell')
        error('recon:InvalidArgument', '%s: ''NoiseDwell'' and ''Dwell'' go together: give both', name);
    end
    values = recon.internal.defaults(struct('NoiseDwell', 1, 'Dwell', 1, 'NoiseBandwidth', 1), own);
    coils = sizes(end);
    [covariance, warnings] = recon_mex('noise_covariance', noise, coils, values.NoiseDwell, values.Dwell, ...
        values.NoiseBandwidth);
    recon.internal.warn(warnings);
elseif given(2)
    covariance = own.Covariance;
end
if given(3)
    matrix = own.Matrix;
else
    matrix = recon_mex('whitening', covariance);
end
whitened = recon.internal.virtual_coils(name, d, matrix, own);
end
