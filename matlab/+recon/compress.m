function [compressed, matrix, energies] = compress(d, coils, varargin)
%COMPRESS  Computes fewer virtual coils that contain most of the signal.
%   c = recon.compress(d, coils) computes this number of virtual coils from k-space data d, [samples coils]. They are
%   the principal components of the data, the strongest first (Buehrer et al. 2007). recon.cg becomes faster by about
%   the ratio of the coils. Whiten the data first, with recon.whiten.
%
%   c = recon.compress(d, [], 'Energy', 0.99) keeps the smallest number of virtual coils with this part of the energy,
%   from 0 to 1.
%
%   [c, M, energies] = recon.compress(...) returns the matrix, [virtual coils, coils], and the part of the energy in
%   each virtual coil, including the discarded ones. Transform known coil maps by the same matrix. Maps that
%   recon.coilmaps estimates from compressed data are already right:
%
%       maps = recon.compress(maps, [], 'Matrix', M)
%
%   'Dim' is the dimension of d that counts the coils. It is required if d has more than two dimensions:
%
%       c = recon.compress(d, 8, 'Dim', 3)       % d is [readout spokes coils]
%
%   Frames in later dimensions have the same virtual coils.
%
%   If the virtual coils contain less than 95 % of the energy, there is the warning recon:Compression.
%
%   See also recon.whiten, recon.coilmaps, recon.cg.
recon.internal.need_arguments(nargin, 2, 'recon.compress(d, coils)');
name = 'recon.compress';
recon.internal.need_numbers(d, [name ': the data']);
own = recon.internal.options(name, varargin, {'Energy', 'Matrix', 'Dim'}, {});
if ~isempty(coils) + isfield(own, 'Energy') + isfield(own, 'Matrix') ~= 1
    error('recon:InvalidArgument', '%s: give either the coils, or [] and ''Energy'', or [] and ''Matrix''', name);
end
energies = [];
if isfield(own, 'Matrix')
    matrix = own.Matrix;
else
    keep = 0;
    energy = 0;
    if isfield(own, 'Energy')
        energy = recon.internal.one_number(own.Energy, [name ': Energy']);
        if energy == 0
            error('recon:InvalidArgument', '%s: Energy is 0: it must be above 0 and at most 1', name);
        end
    else
        keep = recon.internal.one_number(coils, [name ': the coils']);
        if keep > 0 && keep < 1
            error('recon:InvalidArgument', ...
                '%s: %g coils: a part of the energy is recon.compress(d, [], ''Energy'', %g)', name, keep, keep);
        end
        if keep == 0
            error('recon:InvalidSize', '%s: 0 virtual coils: keep at least one', name);
        end
    end
    if ~isfield(own, 'Dim')
        if ndims(d) > 2
            error('recon:InvalidArgument', ...
                '%s: the data are %s: say which dimension counts the coils, as in ''Dim'', %d', name, ...
                recon.internal.size_text(size(d)), ndims(d));
        end
        if size(d, 2) > size(d, 1)
            error('recon:InvalidArgument', ...
                ['%s: the data are %s, fewer samples than coils: permute(d, [2 1]) where the coils come first, ' ...
                '''Dim'', 2 where they do not'], name, recon.internal.size_text(size(d)));
        end
        own.Dim = 2;
    end
    [inner, count] = recon.internal.coil_dimension(name, d, own.Dim);
    [matrix, energies, warnings] = recon_mex('compression', d, inner, count, keep, energy);
    recon.internal.warn(warnings);
end
compressed = recon.internal.virtual_coils(name, d, matrix, own);
end
