function [encoding, own, rest] = setup(name, first, data, list, own_names)
%SETUP  Returns the operator for a reconstruction, after checking the size of the data. For internal use.
%   first is an operator, or a trajectory: then list has the image size and the options of a new operator. own are the
%   options in own_names. rest are the dimensions of the result after those of an image: coils, frames.
what = [name ': the k-space data'];
recon.internal.need_numbers(data, what);
if isa(first, 'recon.Encoding')
    own = recon.internal.options(name, list, own_names, {});
    encoding = first;
    if encoding.adjoint
        error('recon:InvalidArgument', '%s: this is an adjoint operator, E'': give E', name);
    end
    rest = encoding.trailing_image_dims(data, what, 'd');
    return
end
[dims, list] = recon.internal.split_image_size(list);
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
    [~, ~, coils] = recon.internal.image_and_coils(ndim, dims, given.Maps, given.Voxels);
end
if ~isempty(coils)
    coils = recon.internal.one_number(coils, 'Coils');
end
rest = [coils, recon.internal.check_data_size(data, samples, coils, what, 'd')];
sizes = [rest, 1, 1];
% Options that are not given follow from the data.
from_data = {'Coils', sizes(1), 'Frames', prod(sizes(2:end)), 'Precision', recon.internal.number_class(data)};
for i = 1:2:numel(from_data)
    if ~any(strcmp(from_data{i}, others(1:2:end)))
        others(end + 1:end + 2) = from_data(i:i + 1);
    end
end
if estimate
    found = find(strcmp(others(1:2:end), 'Maps'), 1, 'last');
    plain = others;
    plain([2 * found - 1, 2 * found]) = [];
    estimator = recon.Encoding(first, dims, plain{:});
    others{2 * found} = recon.coilmaps(estimator, data);
    delete(estimator);
    % The first operator gave the warnings of this trajectory already.
    quiet = [warning('off', 'recon:Extent'), warning('off', 'recon:Tolerance'), warning('off', 'recon:Times'), ...
        warning('off', 'recon:Threads')];
    restore = onCleanup(@() warning(quiet));
end
encoding = recon.Encoding(first, dims, others{:});
if encoding.combines
    rest = rest(2:end);
end
end
