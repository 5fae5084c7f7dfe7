function g = off_resonance(g, own, voxels, samples)
%OFF_RESONANCE  Checks the options FieldMap, DecayMap and Times, and adds them to a geometry. For internal use.
%   own contains the given options, voxels is the size of an image, samples the shape of the samples. A column of one
%   readout's times becomes the times of all samples.
names = {'FieldMap', 'DecayMap'};
fields = {'field_map', 'decay_map'};
there = '';
for i = 1:numel(names)
    g.(fields{i}) = [];
    if isfield(own, names{i})
        there = names{i};
        check_map(own.(names{i}), names{i}, voxels);
        g.(fields{i}) = own.(names{i});
    end
end
g.times = [];
if isfield(own, 'Times')
    if isempty(there)
        error('recon:InvalidArgument', ['Times was given without a map: give FieldMap or DecayMap too, or leave ' ...
            'Times out']);
    end
    g.times = of_all_samples(own.Times, samples);
elseif ~isempty(there)
    error('recon:InvalidArgument', '%s was given without Times: give the time of each sample in seconds, [%s]', ...
        there, strrep(recon.internal.size_text(recon.internal.full_size(samples)), ' x ', ' '));
end
end

function check_map(map, name, voxels)
recon.internal.need_numbers(map, name);
need_real(map, name);
recon.internal.check_size(map, voxels, [], false, {name, name, 'the image'});
unknown = find(~isfinite(map), 1);
if ~isempty(unknown)
    error('recon:NotFinite', '%s: element %d is %g: it must be a number, 0 where unknown', name, unknown, map(unknown));
end
if strcmp(name, 'DecayMap') && any(map(:) < 0)
    first = find(map < 0, 1);
    error('recon:InvalidArgument', '%s: element %d is %g 1/s: rates must not be negative, because signals do not grow', ...
        name, first, map(first));
end
end

function times = of_all_samples(times, samples)
recon.internal.need_numbers(times, 'Times');
need_real(times, 'Times');
shots = prod(samples(2:end));
readout = samples(1);
if shots > 1 && isequal(sort(size(times)), sort([readout, 1]))
    if size(times, 2) > 1
        error('recon:SizeMismatch', ...
            'Times: the size is %s, those of one readout are a column: permute(Times, [2 1])', ...
            recon.internal.size_text(size(times)));
    end
    if any(samples(2:end) == readout)
        % k may have its shots first: then these would be the times of shots.
        error('recon:SizeMismatch', ['Times: the size is %s, where the trajectory''s samples are %s: sizes do not ' ...
            'tell which dimension is the readout. Give a time for each sample: repmat(Times, [1 %s]) where it is ' ...
            'the first'], recon.internal.size_text(size(times)), recon.internal.size_text(samples), ...
            strrep(recon.internal.size_text(samples(2:end)), ' x ', ' '));
    end
    times = repmat(times, [1, samples(2:end)]);
end
whose = 'the trajectory''s samples';
if shots > 1
    whose = sprintf('%s; %d x 1 where all readouts have the same times', whose, readout);
end
recon.internal.check_size(times, samples, [], false, {'Times', 'Times', whose, 'k'});
unknown = find(~isfinite(times), 1);
if ~isempty(unknown)
    error('recon:NotFinite', 'Times: element %d is %g: it must be a number of seconds', unknown, times(unknown));
end
end

function need_real(array, name)
if ~isreal(array)
    error('recon:InvalidArgument', '%s is a complex %s array: give real numbers', name, ...
        recon.internal.size_text(size(array)));
end
end
