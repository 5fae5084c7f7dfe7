function [encoding, own, rest] = setup(name, first, data, list, own_names)
%SETUP  The operator for a reconstruction: the one that was given, or one made from trajectory, image size and options.
%   rest is the shape of the data behind that of the samples: coils, frames. For internal use.
recon.internal.numbers(data, [name ': the k-space data']);
if isa(first, 'recon.Encoding')
    own = recon.internal.options(name, list, own_names, {});
    encoding = first;
    if encoding.adjoint
        error('recon:InvalidArgument', '%s: this is an adjoint operator, E'': give E', name);
    end
    rest = recon.internal.trailing(data, encoding.sampleSize, [name ': the k-space data'], 'the trajectory''s samples');
    return
end
[dims, list] = recon.internal.leading_size(list);
[own, others] = recon.internal.options(name, list, own_names, recon.internal.plan_options());
samples = recon.internal.trajectory(first);
rest = recon.internal.trailing(data, samples, [name ': the k-space data'], 'the trajectory''s samples');
sizes = [rest, 1, 1];
others = [{'Coils', sizes(1), 'Frames', prod(sizes(2:end)), 'Precision', class_of(data)}, others];
maps = 2 * find(strcmp(others(1:2:end), 'Maps'), 1, 'last') - 1;
if ~isempty(maps) && ischar(others{maps + 1})
    if ~strcmp(others{maps + 1}, 'data')
        error('recon:UnknownValue', '%s: Maps is ''%s'': give an array, or ''data'' to estimate them from the data', ...
            name, others{maps + 1});
    end
    plain = others([1:maps - 1, maps + 2:end]);
    others{maps + 1} = recon.coilmaps(first, data, dims, plain{:});
end
encoding = recon.Encoding(first, dims, others{:});
end

function name = class_of(data)
name = class(data);
if strcmp(name, 'gpuArray')
    name = classUnderlying(data);
end
end
