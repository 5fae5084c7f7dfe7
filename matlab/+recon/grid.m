function image = grid(k, d, varargin)
%GRID  Gridding reconstruction: the density-compensated adjoint.
%   x = recon.grid(k, d, dims) is the image of size dims, [nx ny] or [nx ny nz], of k-space data d on the trajectory k.
%   It is scaled: a fully sampled object keeps its scale. Density compensation is that of Pipe and
%   Menon 1999. The option 'Weights' sets other weights, or 'ramp' or 'jackson'.
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel. d has the shape
%   of the trajectory's samples, then coils, then frames. Without coil maps each coil has one image, [dims coils
%   frames]. With 'Maps' the coils are combined, [dims frames]. 'Maps', 'data' estimates coil sensitivity maps from d
%   (Walsh et al. 2000): see recon.coilmaps.
%
%   x = recon.grid(k, d, dims, Name, Value, ...) sets further options: see recon.Encoding. With 'FieldMap' and 'Times'
%   this is conjugate-phase reconstruction (Maeda et al. 1988).
%
%   x = recon.grid(E, d) uses the operator E.
%
%   Example
%       k = recon.trajectory.radial(200, 256);
%       d = recon.phantom.kspace(k, [128 128], 'Coils', 8);
%       x = recon.combine(recon.grid(k, d, [128 128], 'Weights', 'ramp'), [128 128]);
%       recon.show(x)
%
%   See also recon.cg, recon.density, recon.combine, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.grid(k, d, dims)');
E = recon.internal.setup('recon.grid', k, d, varargin, {});
image = E.transform('grid', d);
end
