function weights = density(k, varargin)
%DENSITY  Density weights: the volume of k-space that each sample stands for.
%   w = recon.density(k, dims) computes them for the trajectory k and images of size dims by the fixed point of Pipe and
%   Menon 1999. w has the shape of the trajectory's samples and its class; give it to the option 'Weights'.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel.
%
%   w = recon.density(k, dims, Name, Value, ...) sets options:
%
%       'Method'      'pipe-menon', for any trajectory: 0.4 to 3 % error of a gridded phantom where sampling is full;
%                     'ramp', |k|^(n-1): even spokes through the centre, even (Archimedean) spirals, and stacks of either:
%                     0 to 2 %, others are refused; or
%                     'jackson', one over the density of samples (Jackson et al. 1991): any, in one step, 5 to 15 %
%       'Iterations'  of 'pipe-menon', at most; default 30
%       'Change'      of 'pipe-menon': stop when the RMS error of the density changes by less than this; default 1e-3
%
%   and those of the operator, as 'Precision', 'Device', 'Threads': see recon.Encoding.
%
%   w = recon.density(E, ...) uses an operator made before.
%
%   Example
%       k = recon.trajectory.propeller(12, 24, 256);
%       w = recon.density(k, [128 128]);
%
%   See also recon.grid, recon.Encoding.
recon.internal.need(nargin, 1, 'recon.density(k, dims)');
names = {'Method', 'Iterations', 'Change'};
if isa(k, 'recon.Encoding')
    own = recon.internal.options('recon.density', varargin, names, {});
    E = k;
else
    [dims, varargin] = recon.internal.leading_size(varargin);
    others = setdiff(recon.internal.plan_options(), {'Method', 'Weights', 'Maps', 'Coils', 'Frames'});
    [own, others] = recon.internal.options('recon.density', varargin, names, others);
    E = recon.Encoding(k, dims, others{:});
end
values = recon.internal.defaults(struct('Method', 'pipe-menon', 'Iterations', 30, 'Change', 1e-3), own);
weights = recon_mex('density', E.plan.id, values.Method, values.Iterations, values.Change, ...
    recon.internal.full_size(E.sampleSize));
end
