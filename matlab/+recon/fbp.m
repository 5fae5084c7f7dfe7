function image = fbp(k, d, varargin)
%FBP  Filtered backprojection of 2D radial data.
%   x = recon.fbp(k, d, dims) takes the arguments of recon.grid. In this version it ends with the error
%   recon:Unsupported. Use recon.grid with 'Weights', 'ramp' instead.
%
%   See also recon.grid.
recon.internal.need_arguments(nargin, 2, 'recon.fbp(k, d, dims)');
E = recon.internal.setup('recon.fbp', k, d, varargin, {});
image = E.transform('fbp', d);
end
