function maps = coilmaps(dims, coils, varargin)
%COILMAPS  Sensitivity maps of coils at equal distances around the field of view.
%   S = recon.phantom.coilmaps(dims, coils) is complex, [nx ny coils] or [nx ny nz coils]. The option 'Precision',
%   'double' or 'single', sets its class.
%
%   Example
%       S = recon.phantom.coilmaps([128 128], 8);
%       recon.show(S)
%
%   See also recon.phantom.kspace.
recon.internal.need_arguments(nargin, 2, 'recon.phantom.coilmaps(dims, coils)');
own = recon.internal.options('recon.phantom.coilmaps', varargin, {'Precision'}, {});
geometry = recon.internal.phantom_geometry('recon.phantom.coilmaps', dims, [], own, struct('Precision', 'double'));
geometry.coils = recon.internal.one_number(coils, 'recon.phantom.coilmaps: coils');
coils = geometry.coils;
maps = recon_mex('phantom_coil_maps', geometry, recon.internal.full_size(geometry.dims, coils));
end
