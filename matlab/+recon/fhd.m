function image = fhd(k, d, varargin)
%FHD  The adjoint of the encoding operator: F^H d.
%   x = recon.fhd(k, d, dims) is E^H d for k-space data d on the trajectory k, without weights and without scaling
%   (F^H d in Stone et al. 2008). x is an image of size dims, [nx ny] or [nx ny nz].
%
%   k is [samples 2] or [readout shots 2], with 3 for 3D, or complex, kx + 1i*ky, in cycles per voxel. d has the shape
%   of the trajectory's samples, then coils, then frames. Without coil maps each coil has one image, [dims coils
%   frames]. With 'Maps' the coils are combined, [dims frames].
%
%   x = recon.fhd(k, d, dims, Name, Value, ...) sets options of the operator, for example 'Maps', 'FieldMap', 'Method',
%   'Tolerance' and 'Device': see recon.Encoding. 'Maps', 'data' estimates coil sensitivity maps from d: see
%   recon.coilmaps.
%
%   x = recon.fhd(E, d) uses the operator E.
%
%   Example
%       k = recon.trajectory.spiral(16, 2000, 8);
%       d = recon.phantom.kspace(k, [128 128]);
%       x = recon.fhd(k, d, [128 128], 'Method', 'exact');
%
%   See also recon.grid, recon.cg, recon.Encoding.
recon.internal.need_arguments(nargin, 2, 'recon.fhd(k, d, dims)');
E = recon.internal.setup('recon.fhd', k, d, varargin, {});
image = E.transform('fhd', d);
end
