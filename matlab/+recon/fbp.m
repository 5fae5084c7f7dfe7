function image = fbp(k, d, varargin)
%FBP  Filtered backprojection of 2D radial data.
%   x = recon.fbp(k, d, dims) takes what recon.grid takes. This version of the library answers recon:Unsupported:
%   recon.grid with 'Weights', 'ramp' serves the same purpose.
%
%   See also recon.grid.
recon.internal.need(nargin, 2, 'recon.fbp(k, d, dims)');
E = recon.internal.setup('recon.fbp', k, d, varargin, {});
image = E.transform('fbp', d);
end
