function tests = test_shapes()
%TEST_SHAPES  An array with its dimensions in another order is an error that says how to permute it, in every function.
%   The function rows has the table of all arguments. A new function or argument needs a line there.
tests = {@every_other_order_is_refused, @every_function_is_in_the_table, @rows_are_not_columns, @both_are_named, ...
    @square_arrays_are_taken_as_they_are, @one_column_of_everything, @nothing_is_empty, ...
    @gpu_arrays_of_single_are_single};
end

function list = rows()
% A row: a name, a function of one array, that array, its variable in messages ('' where messages have no permutation of
% it), and [] or a function. The function is for arrays that are valid in some other orders. For an order it returns the
% permutation of the result, [] where the order must be refused, and NaN where sizes cannot decide.
list = cell(0, 5);
for ndim = 2:3
    % All sizes differ, and no size is a product of others.
    n = [9 8 6];
    n = n(1:ndim);
    k = rand(13, 5, ndim) - 0.5;
    % The first samples are the centre of k-space, which coil maps need.
    [x, y, z] = ndgrid(-1:1, -1:1, -1:1);
    places = [x(:), y(:), z(:)];
    places = places(1:3 ^ ndim, 1:ndim);
    k = reshape(k, 65, ndim);
    k(1:3 ^ ndim, :) = places ./ n;
    k = reshape(k, 13, 5, ndim);
    S = complex(randn([n 4]), randn([n 4]));
    noise = complex(randn(1600, 4), randn(1600, 4));
    w = rand(13, 5) + 0.1;
    exact = {'Method', 'exact'};
    E = recon.Encoding(k, n, exact{:});
    C = recon.Encoding(k, n, 'Coils', 4, 'Frames', 7, exact{:});
    M = recon.Encoding(k, n, 'Maps', S, exact{:});
    counts = {[], 4, [4 7], [1 7]};
    positions = rand(10, ndim);
    for c = 1:numel(counts)
        d = complex(randn([13 5 counts{c}]), randn([13 5 counts{c}]));
        flat = reshape(d, recon.internal.full_size(65, counts{c}));
        list = [list; on_data(sprintf('%dD, data [%s]', ndim, num2str(size(d))), k, d, n, 2)]; %#ok<AGROW>
        list = [list; on_data(sprintf('%dD, data [%s]', ndim, num2str(size(flat))), k, flat, n, 1)]; %#ok<AGROW>
        if numel(counts{c}) == 2
            coils = counts{c}(1);
            maps = complex(randn([n coils]), randn([n coils]));
            list = [list; {
                sprintf('recon.fhd, %d coils with maps, frames', coils), ...
                    @(d) recon.fhd(k, d, n, 'Maps', maps, exact{:}), d, 'd', []
                sprintf('recon.cg, %d coils with maps, frames', coils), ...
                    @(d) recon.cg(k, d, n, 'Maps', maps, 'Iterations', 2, exact{:}), d, 'd', []
                }]; %#ok<AGROW>
        end
    end
    x = complex(randn(n), randn(n));
    coil_images = complex(randn([n 4]), randn([n 4]));
    y = complex(randn(13, 5, 4, 7), randn(13, 5, 4, 7));
    z = E * x;
    list = [list; {
        'E * x', @(x) E * x, x, 'x', []
        'recon.resizeimage', ...
            @(x) recon.resizeimage(x, struct('matrix', n, 'reconMatrix', n - 1, 'fov', n, 'reconFov', n - 1)), ...
            coil_images, 'x', []
        'E * x(:)', @(x) E * x, x(:), 'x', []
        'E * x, coils', @(x) E * x, coil_images, 'x', []
        'E * x, coils and frames in one piece', @(x) C * x, randn([n 4 7]), 'x', []
        'E * x, maps', @(x) M * x, x, 'x', []
        'E * x, maps and frames', @(x) M * x, randn([n 7]), 'x', []
        'E'' * y', @(y) E' * y, z, 'y', []
        'E'' * y(:)', @(y) E' * y, z(:), 'y', []
        'E'' * y, coils', @(y) E' * y, y(:, :, :, 1), 'y', []
        'E'' * y, coils and frames in one piece', @(y) C' * y, y, 'y', []
        'E'' * y, maps', @(y) M' * y, y(:, :, :, 1), 'y', []
        'E'' * y(:), maps', @(y) M' * y, reshape(y(:, :, :, 1), [], 1), 'y', []
        'E'' * y, maps and frames', @(y) M' * y, y, 'y', []
        'E.normal(x)', @(x) E.normal(x), x, 'x', []
        'E.normal(x(:))', @(x) E.normal(x), x(:), 'x', []
        'E.normal(x), maps', @(x) M.normal(x), x, 'x', []
        'E.rhs(y)', @(y) E.rhs(y), z, 'y', []
        'E.rhs(y), maps', @(y) M.rhs(y), y(:, :, :, 1), 'y', []
        'E.matrix() * x', @(x) E.matrix() * x, x, 'x', []
        'E.matrix() * x(:)', @(x) E.matrix() * x, x(:), 'x', []
        'E.matrix()'' * y', @(y) E.matrix()' * y, z, 'y', []
        'E.matrix()'' * y, maps', @(y) M.matrix()' * y, y(:, :, :, 1), 'y', []
        'E.afun(x)', @(x) E.afun(x, 'notransp'), x(:), 'x', []
        'E.afun(y)', @(y) E.afun(y, 'transp'), z(:), 'y', []
        'recon.cg(E, d)', @(d) recon.cg(E, d, 'Iterations', 1), z, 'd', []
        'recon.cg(E, d), maps', @(d) recon.cg(M, d, 'Iterations', 1), y(:, :, :, 1), 'd', []
        'recon.fhd(E, d)', @(d) recon.fhd(E, d), z, 'd', []
        'recon.grid(E, d)', @(d) recon.grid(E, d), z, 'd', []
        'recon.coilmaps(E, d)', @(d) recon.coilmaps(C, d, 'Calibration', 2), y, 'd', []
        'recon.Encoding(k, n)', @(k) recon.Encoding(k, n, exact{:}) * x, k, 'k', @keeps_coordinates
        'recon.Encoding(k, n), one shot', @(k) recon.Encoding(k, n, exact{:}) * x, reshape(k, [], ndim), 'k', []
        'recon.density(k, n)', @(k) recon.density(k, n, 'Iterations', 1), k, 'k', @keeps_coordinates
        'recon.phantom.kspace(k, n)', @(k) recon.phantom.kspace(k, n), k, 'k', @keeps_coordinates
        'Maps', @(Maps) recon.cg(k, y(:, :, :, 1), n, 'Maps', Maps, 'Iterations', 1), S, 'Maps', []
        'Maps of voxels', @(Maps) recon.cg(k, y(:, :, :, 1), n, 'Maps', Maps, 'Iterations', 1), ...
            reshape(S, [], 4), 'Maps', []
        'Maps of one coil', @(Maps) recon.fhd(k, z, n, 'Maps', Maps), x, 'Maps', []
        'Weights', @(Weights) recon.grid(k, z, n, 'Weights', Weights), w, 'Weights', []
        'Weights in a column', @(Weights) recon.grid(k, z, n, 'Weights', Weights), w(:), 'Weights', []
        'Weights of cg', @(Weights) recon.cg(k, z, n, 'Weights', Weights, 'Iterations', 1), w, 'Weights', []
        'Weights of an operator', @(Weights) recon.Encoding(k, n, 'Weights', Weights).rhs(z), w, 'Weights', []
        'FieldMap', @(FieldMap) recon.fhd(k, z, n, 'FieldMap', FieldMap, 'Times', w / 50, exact{:}), 50 * rand(n), ...
            'FieldMap', []
        'FieldMap in a column', @(FieldMap) recon.fhd(k, z, n, 'FieldMap', FieldMap, 'Times', w / 50, exact{:}), ...
            rand(prod(n), 1), 'FieldMap', []
        'DecayMap', @(DecayMap) recon.grid(k, z, n, 'DecayMap', DecayMap, 'Times', w / 50, exact{:}), rand(n), ...
            'DecayMap', []
        'DecayMap of cg', @(DecayMap) recon.cg(k, z, n, 'DecayMap', DecayMap, 'Times', w / 50, 'Iterations', 1), ...
            rand(n), 'DecayMap', []
        'Times', @(Times) recon.fhd(k, z, n, 'FieldMap', abs(x), 'Times', Times, exact{:}), w / 50, 'Times', []
        'Times in a column', @(Times) recon.fhd(k, z, n, 'FieldMap', abs(x), 'Times', Times, exact{:}), w(:) / 50, ...
            'Times', []
        'Times of one readout', @(Times) recon.fhd(k, z, n, 'FieldMap', abs(x), 'Times', Times, exact{:}), ...
            w(:, 1) / 50, 'Times', []
        'Times of an operator', @(Times) recon.Encoding(k, n, 'FieldMap', abs(x), 'Times', Times, exact{:}) * x, ...
            w / 50, 'Times', []
        'FieldMap of a phantom', @(FieldMap) recon.phantom.kspace(k, n, 'FieldMap', FieldMap, 'Times', w / 50, ...
            'Shapes', [1 0 0 0 0.5 0.4 0.5 0 0 0]), rand(n), 'FieldMap', []
        'Initial', @(Initial) recon.cg(k, z, n, 'Initial', Initial, 'Iterations', 1), x, 'Initial', []
        'Initial in a column', @(Initial) recon.cg(k, z, n, 'Initial', Initial, 'Iterations', 1), x(:), 'Initial', []
        'Initial of coils', @(Initial) recon.cg(k, y(:, :, :, 1), n, 'Initial', Initial, 'Iterations', 1), ...
            coil_images, 'Initial', []
        'Initial of frames', @(Initial) recon.cg(M, y, 'Initial', Initial, 'Iterations', 1), randn([n 7]), 'Initial', []
        'Initial of all frames', @(Initial) recon.cg(M, y, 'Initial', Initial, 'Iterations', 1), x, 'Initial', []
        'Reference', @(Reference) recon.cg(k, z, n, 'Reference', Reference, 'Prior', 'anatomical', 'Lambda', 1, ...
            'Iterations', 1), abs(x), 'Reference', []
        'Reference in a column', @(Reference) recon.cg(k, z, n, 'Reference', Reference, 'Prior', 'anatomical', ...
            'Lambda', 1, 'Iterations', 1), abs(x(:)), 'Reference', []
        'Prior', @(Prior) recon.cg(k, z, n, 'Prior', Prior, 'Lambda', 1, 'Iterations', 1), speye(7, prod(n)), ...
            'Prior', []
        'Voxels', @(Voxels) recon.fhd(k, z, n, 'Voxels', Voxels), rand(10, ndim), 'Voxels', []
        'E * x of listed voxels', @(x) recon.Encoding(k, n, 'Voxels', positions) * x, rand(10, 1), 'x', []
        'Maps of listed voxels', @(Maps) recon.fhd(k, y(:, :, :, 1), n, 'Voxels', positions, 'Maps', Maps), ...
            rand(10, 4), 'Maps', []
        'recon.fieldmap', @(images) recon.fieldmap(images, n, [0.002 0.004], 'Threshold', 0), ...
            complex(1 + rand([n 2]), rand([n 2])), 'images', []
        'recon.fieldmap, coils', @(images) recon.fieldmap(images, n, [0.002 0.004], 'Threshold', 0), ...
            complex(1 + rand([n 4 2]), rand([n 4 2])), 'images', []
        'recon.phasedifference', @(images) recon.phasedifference(images, coil_images, n), ...
            complex(rand(size(coil_images)), rand(size(coil_images))), 'images', []
        'the reference of recon.phasedifference', @(reference) recon.phasedifference(coil_images, reference, n), ...
            complex(rand(size(coil_images)), rand(size(coil_images))), 'reference', []
        'the size of recon.phasedifference', @(dims) recon.phasedifference(coil_images, coil_images, dims), n, '', []
        'the size of recon.fieldmap', @(dims) recon.fieldmap(complex(1 + rand([n 2]), 1), dims, [0.002 0.004], ...
            'Threshold', 0), n, '', []
        'recon.combine', @(images) recon.combine(images, n), coil_images, 'images', []
        'recon.whiten', @(d) recon.whiten(d, noise), y(:, :, :, 1), '', @(order) order
        'the noise of recon.whiten', @(noise) recon.whiten(y(:, :, :, 1), noise), noise, '', []
        'recon.compress', @(d) recon.compress(d, 2), randn(65, 4), 'd', []
        'recon.combine, frames', @(images) recon.combine(images, n), randn([n 4 7]), '', ...
            @(order) coils_or_frames(order, ndim)
        'recon.coilmaps, frames', @(d) recon.coilmaps(k, d, n, 'Calibration', 2, exact{:}), y, '', ...
            @(order) coils_or_frames(order, 2)
        'recon.combine, adaptive', @(images) recon.combine(images, n, 'Method', 'adaptive'), coil_images, 'images', []
        'the image of recon.metrics', @(image) recon.metrics(image, x), x + 1, 'image', []
        'the truth of recon.metrics', @(truth) recon.metrics(x + 1, truth), x, '', []
        'Mask', @(Mask) recon.metrics(x + 1, x, 'Mask', Mask), rand(n) > 0.5, 'Mask', []
        'Mask in a column', @(Mask) recon.metrics(x + 1, x, 'Mask', Mask), rand(prod(n), 1) > 0.5, 'Mask', []
        'Shapes of an image', @(Shapes) recon.phantom.image(n, 'Shapes', Shapes), shapes(), 'Shapes', []
        'Shapes of k-space', @(Shapes) recon.phantom.kspace(k, n, 'Shapes', Shapes), shapes(), 'Shapes', []
        'the size of recon.phantom.image', @(dims) recon.phantom.image(dims), n, '', []
        'the size of recon.phantom.kspace', @(dims) recon.phantom.kspace(k, dims), n, '', []
        'the size of recon.phantom.coilmaps', @(dims) recon.phantom.coilmaps(dims, 2), n, '', []
        'the size of recon.trajectory.cartesian', @(dims) recon.trajectory.cartesian(dims), n, '', []
        'the size of recon.combine', @(dims) recon.combine(coil_images, dims), n, '', []
        'the size of recon.fhd', @(dims) recon.fhd(k, z, dims), n, '', []
        'the size of recon.Encoding', @(dims) recon.Encoding(k, dims) * x, n, '', []
        }]; %#ok<AGROW>
    if ndim == 2
        c = complex(k(:, :, 1), k(:, :, 2));
        blades = recon.trajectory.propeller(7, 8, 24);
        m = [24 22];
        in_blades = recon.phantom.kspace(blades, m, 'Coils', 3);
        lines = recon.trajectory.cartesian([12 14]);
        lines = lines(:, 4:end, :);
        in_lines = recon.phantom.kspace(lines, [12 14], 'Coils', 3);
        list = [list; {
            'a complex k', @(k) recon.fhd(k, z, n), c, 'k', []
            'a complex k in a column', @(k) recon.fhd(k, z(:), n), c(:), 'k', []
            'a complex k for coils', @(k) recon.fhd(k, y, n), c, 'k', []
            'recon.fbp', @(d) recon.fbp(recon.trajectory.radial(5, 12), d, n), randn(12, 5, 3), 'd', []
            'recon.propeller', @(d) recon.propeller(blades, d, m), in_blades, 'd', []
            'recon.partialfourier', @(d) recon.partialfourier(lines, d, [12 14]), in_lines, 'd', []
            'recon.propeller in a column', @(d) recon.propeller(blades, d, m), reshape(in_blades, [], 3), 'd', []
            'k of recon.propeller', @(k) recon.propeller(k, in_blades, m), blades, 'k', []
            }]; %#ok<AGROW>
    end
end
end

function list = on_data(what, k, d, n, leading)
% Rows for the functions of a trajectory and data, with either of the two in another order. Where sizes cannot tell
% coils from frames, the images are in the order of the data.
name = @(f) sprintf('%s, %s', f, what);
pages = [];
if ndims(d) == leading + 2
    pages = @(order) pages_of(order, leading, numel(n));
end
t = {'Method', 'exact'};
list = {
    name('recon.fhd'), @(d) recon.fhd(k, d, n, t{:}), d, 'd', pages
    name('recon.grid'), @(d) recon.grid(k, d, n, t{:}), d, 'd', pages
    name('recon.cg'), @(d) recon.cg(k, d, n, 'Iterations', 1, t{:}), d, 'd', pages
    name('k of recon.fhd'), @(k) recon.fhd(k, d, n, t{:}), k, 'k', []
    name('k of recon.grid'), @(k) recon.grid(k, d, n, t{:}), k, 'k', []
    name('k of recon.cg'), @(k) recon.cg(k, d, n, 'Iterations', 1, t{:}), k, 'k', []
    name('k of recon.coilmaps'), @(k) recon.coilmaps(k, d, n, 'Calibration', 2, t{:}), k, 'k', []
    };
if leading == 1
    % Data with one dimension of samples fit a trajectory of any shape.
    list = list(1:3, :);
elseif ndims(d) == 3
    list(end + 1, :) = {name('recon.coilmaps'), @(d) recon.coilmaps(k, d, n, 'Calibration', 2, t{:}), d, 'd', []};
end
end

function order = pages_of(order, leading, ndim)
% Data with coils and frames exchanged give images with coils and frames exchanged.
if isequal(order, [1:leading, leading + 2, leading + 1])
    order = [1:ndim, ndim + 2, ndim + 1];
else
    order = [];
end
end

function order = keeps_coordinates(order)
% [shots readout dims] is also a trajectory: the samples and the result are in another order.
if order(end) == numel(order)
    order = [order(1:end - 1), numel(order)];
else
    order = [];
end
end

function order = coils_or_frames(order, leading)
% Coils and frames exchanged are the only orders that cannot be refused: sizes cannot tell one from the other.
if isequal(order(1:leading), 1:leading)
    order = NaN;
else
    order = [];
end
end

function list = shapes()
list = [1 0 0 0 0.5 0.4 1 0 0 0; 0.5 0.1 0.2 0 0.2 0.3 1 0.1 0 0];
end

function every_other_order_is_refused()
list = rows();
accepted = 0;
refused = 0;
failures = {};
for i = 1:size(list, 1)
    [what, f, array, name, as_good] = list{i, :};
    try
        expected = f(array);
    catch e
        failures{end + 1} = sprintf('%s: refused in its own order: %s', what, e.message); %#ok<AGROW>
        continue
    end
    orders = flipud(perms(1:ndims(array)));
    for j = 1:size(orders, 1)
        order = orders(j, :);
        other = permute(array, order);
        if isequal(size(other), size(array))
            continue
        end
        result_order = [];
        if ~isempty(as_good)
            result_order = as_good(order);
        end
        if isequaln(result_order, NaN)
            continue
        end
        problem = '';
        try
            result = f(other);
            if isempty(result_order)
                accepted = accepted + 1;
                problem = 'gives a result';
            elseif ~close_to(result, permute(expected, result_order))
                problem = 'gives another result than that of its own order';
            end
        catch e
            refused = refused + 1;
            problem = wrong_error(e, other, name, f, expected, ~isempty(as_good));
        end
        if ~isempty(problem)
            failures{end + 1} = sprintf('%s as [%s] in place of [%s] %s', what, num2str(size(other)), ...
                num2str(size(array)), problem); %#ok<AGROW>
        end
    end
end
fprintf('  %d orders of %d arguments: %d refused, %d gave a result\n', accepted + refused, size(list, 1), refused, ...
    accepted);
if ~isempty(failures)
    error('recontest:order', '%d failures:\n%s', numel(failures), strjoin(failures, sprintf('\n')));
end
check(refused > 500, 'there are many');
end

function flag = close_to(a, b)
flag = isequal(size(a), size(b)) && norm(a(:) - b(:)) <= 1e-9 * norm(b(:));
end

function problem = wrong_error(e, array, name, f, expected, in_any_order)
% '' where the error is right: it has an identifier, names the size, and its remedy leads to the expected result. With
% in_any_order the result may have its numbers in another order.
problem = '';
if ~strncmp(e.identifier, 'recon:', 6)
    problem = sprintf('ends with the error %s (%s)', e.identifier, e.message);
    return
end
if isempty(name)
    return
end
for attempt = 1:3
    if isempty(strfind(e.message, recon.internal.size_text(size(array)))) %#ok<STREMP>
        % A message about k may name the size of the data only.
        if ~strcmp(name, 'k')
            problem = sprintf('ends with an error that does not name the size: %s', e.message);
            return
        end
    end
    remedy = regexp(e.message, ['permute\(' name ', (\[[^\]]*\])\)'], 'tokens', 'once');
    if isempty(remedy)
        problem = sprintf('ends with an error without a remedy: %s', e.message);
        return
    end
    array = permute(array, str2num(remedy{1})); %#ok<ST2NM>
    try
        result = f(array);
        same = ~isnumeric(expected) || close_to(result, expected) || ...
            in_any_order && close_to(sort(abs(result(:))), sort(abs(expected(:))));
        if ~same
            problem = sprintf('has a remedy that leads to another result: %s', e.message);
        end
        return
    catch next
        e = next;
    end
end
problem = sprintf('has remedies that lead nowhere: %s', e.message);
end

function every_function_is_in_the_table()
% Exempt are functions without an array, functions of each element, and functions of files (test_files).
list = rows();
code = strjoin(cellfun(@func2str, list(:, 2), 'UniformOutput', false), ' ');
exempt = {'recon.build', 'recon.read', 'recon.write', 'recon.devices', 'recon.version', 'recon.show', ...
    'recon.phantom.noise', ...
    'recon.trajectory.radial', 'recon.trajectory.radial3d', 'recon.trajectory.spiral', 'recon.trajectory.rosette', ...
    'recon.trajectory.propeller', 'recon.trajectory.stackofstars', 'recon.trajectory.lissajous'};
package = fullfile(fileparts(fileparts(mfilename('fullpath'))), '+recon');
folders = {'', 'recon.'; '+trajectory', 'recon.trajectory.'; '+phantom', 'recon.phantom.'};
count = 0;
for i = 1:size(folders, 1)
    files = dir(fullfile(package, folders{i, 1}, '*.m'));
    for j = 1:numel(files)
        name = [folders{i, 2} files(j).name(1:end - 2)];
        if strcmp(files(j).name, 'Contents.m') || any(strcmp(name, exempt))
            continue
        end
        found = ~isempty(regexp(code, [regexptranslate('escape', name) ' *\('], 'once'));
        check(found, [name ' is in the table']);
        count = count + 1;
    end
end
check(count > 10, 'functions are found');
check_error(@() recon.fbp(rand(12, 5, 2) - 0.5, ones(5, 12), [8 8]), 'recon:SizeMismatch', 'permute(d, [2 1])');
check(isequal(size(recon.phantom.noise(ones(3, 1, 4), 10)), [3 1 4]), 'noise for each element');
end

function rows_are_not_columns()
% Samples, voxels and weights in one dimension are columns. An image size is a row.
k = rand(60, 2) - 0.5;
n = [9 8];
d = complex(randn(60, 1), randn(60, 1));
E = recon.Encoding(k, n);
check_error(@() recon.fhd(k, d.', n), 'recon:SizeMismatch', 'the size is 1 x 60, it must begin with 60');
check_error(@() recon.fhd(complex(k(:, 1), k(:, 2)).', d, n), 'recon:SizeMismatch', 'permute(k, [2 1])');
check_error(@() recon.grid(k, d, n, 'Weights', ones(1, 60)), 'recon:SizeMismatch', 'permute(Weights, [2 1])');
check_error(@() E * ones(1, 72), 'recon:SizeMismatch', 'permute(x, [2 1])');
check_error(@() E.matrix()' * d.', 'recon:SizeMismatch', 'permute(y, [2 1])');
M = recon.Encoding(rand(12, 5, 2) - 0.5, [], 'Maps', ones(9, 8, 3));
check_error(@() M' * ones(1, 180), 'recon:SizeMismatch', 'permute(y, [2 1])');
check_error(@() recon.fhd(k, d, n.'), 'recon:InvalidArgument', 'give a row');
% A trajectory [1 readout 2] and an image [1 ny] have one row, and are valid.
thin = recon.Encoding(reshape(k, 1, 60, 2), [1 8]);
y = thin * complex(randn(1, 8));
check(isequal(size(y), [1 60]) && isequal(size(thin' * y), [1 8]), 'a readout of one sample, an image of one row');
end

function both_are_named()
% Either the trajectory or the data are in another order: the error has both sizes, and a remedy for each.
k = permute(recon.trajectory.radial(16, 12), [2 1 3]);
d = ones(12, 16, 3);
functions = {@recon.fhd, @recon.grid, @recon.cg, @recon.coilmaps};
for i = 1:numel(functions)
    f = functions{i};
    words = {'12 x 16 x 3', '16 x 12', 'permute(d, [2 1 3])', 'permute(k, [2 1 3]) where the trajectory'};
    for j = 1:numel(words)
        check_error(@() f(k, d, [8 8]), 'recon:SizeMismatch', words{j});
    end
    f(permute(k, [2 1 3]), d, [8 8]);
    f(k, permute(d, [2 1 3]), [8 8]);
end
check_error(@() recon.fhd(k, d, [8 8], 'Maps', ones(8, 8, 4)), 'recon:SizeMismatch', '16 x 12 x 4');
check_error(@() recon.fhd(k, ones(16, 11), [8 8]), 'recon:SizeMismatch', '16 x 11');
check_error(@() recon.Encoding(k, [8 8 8]), 'recon:SizeMismatch', 'k has 2 coordinates');
% A known number of coils tells coils from frames.
S = ones(8, 8, 3);
check_error(@() recon.fhd(k, ones(16, 12, 4, 3), [8 8], 'Maps', S), 'recon:SizeMismatch', 'permute(d, [1 2 4 3])');
check_error(@() recon.fhd(k, ones(16, 12, 4, 3), [8 8], 'Coils', 3), 'recon:SizeMismatch', 'permute(d, [1 2 4 3])');
check_error(@() recon.Encoding(k, [8 8], 'Coils', 3)' * ones(16, 12, 2), 'recon:SizeMismatch', '16 x 12 x 3');
end

function square_arrays_are_taken_as_they_are()
% Sizes cannot tell a square array from its transpose, as docs/matlab.md says.
k = rand(8, 8, 2) - 0.5;
d = complex(randn(8), randn(8));
E = recon.Encoding(k, [6 6], 'Method', 'exact');
x = complex(randn(6), randn(6));
A = @(k) exp(-2i * pi * reshape(k, [], 2) * positions(6).');
check_close(E' * d, reshape(A(k)' * d(:), 6, 6), 1e-12, 'data as they are');
check_close(E' * d.', reshape(A(k)' * reshape(d.', [], 1), 6, 6), 1e-12, 'the transpose as it is');
check_close(E * x.', reshape(A(k) * reshape(x.', [], 1), 8, 8), 1e-12, 'an image as it is');
end

function list = positions(n)
[x, y] = ndgrid((0:n - 1) - floor(n / 2));
list = [x(:), y(:)];
end

function one_column_of_everything()
% Arrays with samples or voxels in one dimension give the same numbers.
k = rand(12, 5, 2) - 0.5;
n = [9 8];
S = complex(randn([n 3]), randn([n 3]));
d = complex(randn(12, 5, 3), randn(12, 5, 3));
w = rand(12, 5);
x = complex(randn(n), randn(n));
same = {'Iterations', 2, 'Lambda', 1, 'Prior', 'anatomical'};
o = [same, {'Maps', S, 'Weights', w, 'Initial', x, 'Reference', abs(x)}];
flat = [same, {'Maps', reshape(S, 72, 3), 'Weights', w(:), 'Initial', x(:), 'Reference', abs(x(:))}];
check(isequal(recon.cg(k, d, n, o{:}), recon.cg(reshape(k, 60, 2), reshape(d, 60, 3), n, flat{:})), 'recon.cg');
check(isequal(recon.fhd(k, d, n), recon.fhd(k, reshape(d, 60, 3), n)), 'data');
m = rand(n) > 0.5;
check(isequal(recon.metrics(x + 1, x, 'Mask', m), recon.metrics(x + 1, x, 'Mask', m(:))), 'Mask');
images = recon.fhd(k, d, n);
check(isequal(recon.combine(reshape(images, 72, 3), n), recon.combine(images, n)), 'recon.combine');
frames = recon.cg(k, cat(4, d, d), n, 'Maps', S, 'Iterations', 1, 'Initial', cat(3, x, x));
check(isequal(frames, recon.cg(k, cat(4, d, d), n, 'Maps', S, 'Iterations', 1, 'Initial', [x(:), x(:)])), 'Initial');
end

function nothing_is_empty()
% No option of any function may be empty: the error says what to give. The names come from each function's own error.
k = rand(12, 5, 2) - 0.5;
d = ones(12, 5);
n = [9 8];
calls = {
    @(varargin) recon.show(ones(n), varargin{:})
    @(varargin) recon.fhd(k, d, n, varargin{:})
    @(varargin) recon.grid(k, d, n, varargin{:})
    @(varargin) recon.cg(k, d, n, varargin{:})
    @(varargin) recon.cg(recon.Encoding(k, n), d, varargin{:})
    @(varargin) recon.fbp(k, d, n, varargin{:})
    @(varargin) recon.coilmaps(k, d, n, varargin{:})
    @(varargin) recon.density(k, n, varargin{:})
    @(varargin) recon.Encoding(k, n, varargin{:})
    @(varargin) recon.combine(ones([n 3]), n, varargin{:})
    @(varargin) recon.fieldmap(complex(ones([n 2]), 1), n, [0.002 0.004], varargin{:})
    @(varargin) recon.metrics(ones(n), ones(n), varargin{:})
    @(varargin) recon.phantom.image(n, varargin{:})
    @(varargin) recon.phantom.kspace(k, n, varargin{:})
    @(varargin) recon.phantom.coilmaps(n, 3, varargin{:})
    @(varargin) recon.phantom.noise(d, 10, varargin{:})
    @(varargin) recon.trajectory.cartesian(n, varargin{:})
    @(varargin) recon.trajectory.radial(5, 12, varargin{:})
    @(varargin) recon.trajectory.radial3d(5, 12, varargin{:})
    @(varargin) recon.trajectory.spiral(5, 12, 2, varargin{:})
    @(varargin) recon.trajectory.rosette(5, 12, 2, 3, varargin{:})
    @(varargin) recon.trajectory.lissajous(5, 12, 2, 3, varargin{:})
    @(varargin) recon.trajectory.propeller(5, 3, 12, varargin{:})
    @(varargin) recon.trajectory.stackofstars(5, 12, 3, varargin{:})
    @(varargin) recon.build(varargin{:})
    };
count = 0;
for i = 1:numel(calls)
    f = calls{i};
    names = options_of(f);
    for j = 1:numel(names)
        for empty = {[], '', {}, zeros(0, 3), single([]), sparse([])}
            check_error(@() f(names{j}, empty{1}), 'recon:InvalidArgument', 'leave the option out');
            count = count + 1;
        end
    end
end
check(count > 600, 'options are found');
check_error(@() recon.grid(k, d, n, 'Weights', []), 'recon:InvalidArgument', 'pipe-menon');
check_error(@() recon.fhd(k, d, n, 'Voxels', []), 'recon:InvalidArgument', '[voxels 2]');
check_error(@() recon.fhd(k, d, n, 'Method', ''), 'recon:InvalidArgument', '''exact''');
check_error(@() recon.density(k, n, 'Method', ''), 'recon:InvalidArgument', '''jackson''');
% Only the image size may be empty, beside maps.
check(isequal(size(recon.fhd(k, d, [], 'Maps', ones(n))), n), 'no image size beside maps');
end

function names = options_of(f)
try
    f('no such option', 1);
catch e
    check(strcmp(e.identifier, 'recon:UnknownOption'), 'an option that is not there');
    names = strsplit(regexprep(e.message, '.*Options are: ', ''), ', ');
    return
end
error('recontest:options', '%s takes any option', func2str(f));
end

function gpu_arrays_of_single_are_single()
% mock/gpuArray.m replaces MATLAB's gpuArray. isa(x, 'single') is false for a gpuArray. The class of its numbers is that
% of underlyingType, or of classUnderlying before R2020b.
mock = fullfile(fileparts(mfilename('fullpath')), 'mock');
before = addpath(mock);
cleanup = onCleanup(@() path(before));
gpu_arrays();
addpath(fullfile(mock, 'release'));
gpu_arrays();
end

function gpu_arrays()
k = rand(12, 5, 2) - 0.5;
n = [9 8];
d = complex(randn(12, 5), randn(12, 5));
host = {'GpuArray', false};
check(~isa(gpuArray(single(k)), 'single') && isa(gpuArray(k), 'gpuArray'), 'the stand-in');
check(strcmp(recon.Encoding(gpuArray(single(k)), n, host{:}).precision, 'single'), 'k');
check(strcmp(recon.Encoding(gpuArray(k), n, host{:}).precision, 'double'), 'k in double precision');
check(strcmp(recon.Encoding(k, n, 'Maps', gpuArray(ones(n, 'single')), host{:}).precision, 'single'), 'Maps');
check(strcmp(recon.Encoding(k, n, 'Weights', gpuArray(ones(12, 5, 'single')), host{:}).precision, 'single'), 'Weights');
E = recon.Encoding(gpuArray(single(k)), n, host{:});
check(isequal(E' * d, recon.Encoding(single(k), n)' * d), 'the same numbers');
E = recon.internal.setup('recon.fhd', k, gpuArray(single(d)), [{n}, host], {});
check(strcmp(E.precision, 'single'), 'the data');
E = recon.internal.setup('recon.fhd', single(k), gpuArray(d), [{n}, host], {});
check(strcmp(E.precision, 'double'), 'the data in double precision');
check(isa(recon.phantom.kspace(single(k), n), 'single'), 'k-space data of a phantom');
check(strcmp(recon.internal.number_class(gpuArray(1i)), 'double'), 'complex numbers');
% The same rules for shapes.
check_error(@() recon.Encoding(gpuArray(permute(k, [3 1 2])), n, host{:}), 'recon:SizeMismatch', 'permute(k, [2 3 1])');
check_error(@() recon.fhd(k, gpuArray(d.'), n, host{:}), 'recon:SizeMismatch', 'permute(d, [2 1])');
end
