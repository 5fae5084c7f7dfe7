function [d, deviation] = noise(d, snr, varargin)
%NOISE  Adds complex white Gaussian noise to k-space data.
%   d = recon.phantom.noise(d, snr) adds noise whose root mean square magnitude is 1/snr of the data's (not in dB).
%   [d, deviation] = ... also returns the noise's root mean square magnitude.
%   The option 'Seed' chooses the noise, the same for the same seed everywhere; default 1.
%
%   Example
%       k = recon.trajectory.radial(64, 256);
%       d = recon.phantom.noise(recon.phantom.kspace(k, [128 128]), 50, 'Seed', 7);
%
%   See also recon.phantom.kspace.
recon.internal.need(nargin, 2, 'recon.phantom.noise(d, snr)');
recon.internal.numbers(d, 'recon.phantom.noise: the data');
own = recon.internal.options('recon.phantom.noise', varargin, {'Seed'}, {});
seed = 1;
if isfield(own, 'Seed')
    seed = own.Seed;
end
[d, deviation] = recon_mex('add_noise', d, snr, seed, size(d));
end
