function [encoding, own, rest] = setup(name, first, data, list, own_names)
%SETUP  The operator for a reconstruction: the one that was given, or one made from trajectory, image size and options.
%   The data fit it. rest is the shape of the result behind that of an image: coils, frames. For internal use.
what = [name ': the k-space data'];
recon.internal.numbers(data, what);
if isa(first, 'recon.Encoding')
    own = recon.internal.options(name, list, own_names, {});
    encoding = first;
    if encoding.adjoint
        error('recon:InvalidArgument', '%s: this is an adjoint operator, E'': give E', name);
    end
    rest = encoding.image_rest(data, what, 'd');
    return
end
[dims, list] = recon.internal.leading_size(list);
[own, others] = recon.internal.options(name, list, own_names, recon.internal.plan_options());
given = struct('Maps', [], 'Voxels', [], 'Coils', []);
for i = 1:2:numel(others)
    given.(others{i}) = others{i + 1};
end
[samples, ndim] = recon.internal.trajectory(first);
coils = given.Coils;
estimate = ischar(given.Maps) && strcmp(given.Maps, 'data');
if ~isempty(given.Maps) && ~estimate
    if ischar(given.Maps)
        error('recon:UnknownValue', '%s: Maps is ''%s'': give an array, or ''data'' to estimate them from the data', ...
            name, given.Maps);
    end
    [~, ~, coils] = recon.internal.image_of(ndim, dims, given.Maps, given.Voxels);
end
if ~isempty(coils)
    coils = recon.internal.count(coils, 'Coils');
end
rest = [coils, recon.internal.fit_data(data, samples, coils, what, 'd')];
sizes = [rest, 1, 1];
others = [{'Coils', sizes(1), 'Frames', prod(sizes(2:end)), 'Precision', recon.internal.class_of(data)}, others];
if estimate
    found = find(strcmp(others(1:2:end), 'Maps'), 1, 'last');
    plain = others;
    plain([2 * found - 1, 2 * found]) = [];
    estimator = recon.Encoding(first, dims, plain{:});
    others{2 * found} = recon.coilmaps(estimator, data);
    delete(estimator);
    % What this operator warned of the next one, of the same trajectory, need not say again.
    quiet = [warning('off', 'recon:Extent'), warning('off', 'recon:Tolerance')];
    restore = onCleanup(@() warning(quiet));
end
encoding = recon.Encoding(first, dims, others{:});
if encoding.combines
    rest = rest(2:end);
end
end
