function image = fbp(k, d, varargin)
%FBP  Filtered backprojection of 2D radial data, at any angles.
%   x = recon.fbp(k, d, dims) is the image of size dims, [nx ny], of k-space data d on the spokes k. Each spoke is
%   multiplied by the ramp |k|, transformed to positions along its line, and added to every voxel by linear
%   interpolation (Schiwietz et al. 2006). It is scaled as recon.grid is: a fully sampled object keeps its
%   scale.
%
%   k is [readout spokes 2], or complex, kx + 1i*ky, in cycles per voxel: spokes through the centre of k-space, each
%   sampled evenly, in the order of acquisition. Other trajectories are an error. d has the shape [readout spokes], then
%   coils, then frames. Without coil maps each coil has one image, [dims coils frames]. With 'Maps' the coils are
%   combined, [dims frames].
%
%   x = recon.fbp(k, d, dims, Name, Value, ...) sets options:
%
%       'Filter'   the window that multiplies the ramp: 'ram-lak' (default): no window; 'shepp-logan', 'cosine',
%                  'hamming', 'hann': each with less noise and less detail than the previous one
%
%   'Weights' are an error, and the weights of an operator are not used: the weight of a sample is the area of k-space
%   that it represents. 'FieldMap' and 'DecayMap' are an error: use recon.grid or recon.cg. The other options are
%   those of the operator, for example 'Maps', 'Precision' and 'Threads': see recon.Encoding.
%
%   x = recon.fbp(E, d, ...) uses the operator E.
%
%   Example
%       k = recon.trajectory.radial(200, 256);
%       d = recon.phantom.kspace(k, [128 128]);
%       recon.show(recon.fbp(k, d, [128 128], 'Filter', 'shepp-logan'))
%
%   See also recon.grid, recon.cg, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.fbp(k, d, dims)');
[E, own] = recon.internal.setup('recon.fbp', k, d, varargin, {'Filter', 'Weights'});
if isfield(own, 'Weights')
    error('recon:InvalidArgument', ['recon.fbp: backprojection computes its own weights, the area of k-space of ' ...
        'each sample: leave out Weights, or use recon.grid']);
end
E.refuse_off_resonance('recon.fbp');
values = recon.internal.defaults(struct('Filter', 'ram-lak'), own);
image = E.transform('fbp', d, values.Filter);
end
