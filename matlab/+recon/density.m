function weights = density(k, varargin)
%DENSITY  Density compensation weights: the volume of k-space that each sample represents.
%   w = recon.density(k, dims) computes the weights for the trajectory k and images of size dims, by the fixed-point
%   iteration of Pipe and Menon 1999. w has the shape of the trajectory's samples, and the class of k. Pass it as the
%   option 'Weights'.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel.
%
%   w = recon.density(k, dims, Name, Value, ...) sets options:
%
%       'Method'      'pipe-menon' (default): any trajectory 'ramp': |k|^(n-1), for spokes through the centre (in 2D at
%                     any angles), even (Archimedean) spirals, and stacks of either; other trajectories are an error
%                     'jackson': any trajectory, one over the density of samples, in one step (Jackson et al. 1991)
%       'Iterations'  maximum number of iterations of 'pipe-menon'; default 30
%       'Change'      for 'pipe-menon': stop when the RMS error of the density changes by less than this; default 1e-3
%
%   The error of a gridded phantom, with k-space fully sampled, is 0.4 to 3 % with 'pipe-menon', 0 to 3 % with 'ramp',
%   and 5 to 15 % with 'jackson'.
%
%   The options of the operator, for example 'Precision', 'Device' and 'Threads', are in help recon.Encoding.
%
%   w = recon.density(E, ...) uses the operator E.
%
%   Example
%       k = recon.trajectory.propeller(12, 24, 256);
%       w = recon.density(k, [128 128]);
%
%   See also recon.grid, recon.Encoding.
recon.internal.need_arguments(nargin, 1, 'recon.density(k, dims)');
names = {'Method', 'Iterations', 'Change'};
if isa(k, 'recon.Encoding')
    own = recon.internal.options('recon.density', varargin, names, {});
    E = k;
else
    [dims, varargin] = recon.internal.split_image_size(varargin);
    others = setdiff(recon.internal.plan_options(), ...
        {'Method', 'Weights', 'Maps', 'FieldMap', 'DecayMap', 'Times', 'Coils', 'Frames'});
    [own, others] = recon.internal.options('recon.density', varargin, names, others);
    E = recon.Encoding(k, dims, others{:});
end
values = recon.internal.defaults(struct('Method', 'pipe-menon', 'Iterations', 30, 'Change', 1e-3), own);
weights = recon_mex('density', E.plan.id, values.Method, values.Iterations, values.Change, ...
    recon.internal.full_size(E.sampleSize));
end
