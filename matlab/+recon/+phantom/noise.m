function [d, deviation] = noise(d, snr, varargin)
%NOISE  Adds complex white Gaussian noise to k-space data.
%   d = recon.phantom.noise(d, snr) adds noise. Its root mean square magnitude is that of the data divided by snr (not
%   in dB). [d, deviation] = ... also returns the root mean square magnitude of the noise.
%   The option 'Seed' chooses the noise; default 1. A seed gives the same noise on every machine.
%
%   Example
%       k = recon.trajectory.radial(64, 256);
%       d = recon.phantom.noise(recon.phantom.kspace(k, [128 128]), 50, 'Seed', 7);
%
%   See also recon.phantom.kspace.
recon.internal.need_arguments(nargin, 2, 'recon.phantom.noise(d, snr)');
recon.internal.need_numbers(d, 'recon.phantom.noise: the data');
own = recon.internal.options('recon.phantom.noise', varargin, {'Seed'}, {});
seed = 1;
if isfield(own, 'Seed')
    seed = own.Seed;
end
[d, deviation] = recon_mex('add_noise', d, snr, seed, size(d));
end
