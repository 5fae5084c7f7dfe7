function tests = test_c_values()
%TEST_C_VALUES  Every function against results of the C API for the same input, which tests/reference.c wrote.
tests = {@values_2d_single, @values_2d_double, @values_3d_single, @values_3d_double, @trajectories, @blades};
end

function values_2d_single()
scan('2D_single_', 2e-6);
end

function values_2d_double()
scan('2D_double_', 1e-13);
end

function values_3d_single()
scan('3D_single_', 2e-6);
end

function values_3d_double()
scan('3D_double_', 1e-13);
end

function trajectories()
classes = {'single', 'double'};
for i = 1:2
    p = {'Precision', classes{i}};
    r = @(name) read(['trajectory_' classes{i} '_' name]);
    t = @(k, name) check_same(k, r(name), classes{i}, name);
    t(recon.trajectory.cartesian([7 6 5], p{:}), 'cartesian');
    t(recon.trajectory.radial(6, 11, p{:}), 'radial');
    t(recon.density(recon.trajectory.radial(6, 11, p{:}), [8 8], 'Method', 'ramp', p{:}), 'ramp');
    t(recon.trajectory.radial(6, 11, 'Order', 'golden', p{:}), 'golden');
    t(recon.trajectory.radial3d(6, 11, p{:}), 'radial3d');
    t(recon.trajectory.stackofstars(6, 11, 4, p{:}), 'stack');
    t(recon.trajectory.stackofstars(6, 11, 4, 'Order', 'golden', p{:}), 'stack_golden');
    t(recon.trajectory.spiral(6, 11, 2.5, 'Density', 1.5, p{:}), 'spiral');
    t(recon.trajectory.rosette(6, 11, 2, 3, p{:}), 'rosette');
    t(recon.trajectory.lissajous(6, 11, 3, 4, p{:}), 'lissajous');
    t(recon.trajectory.propeller(3, 4, 11, p{:}), 'propeller');
    t(recon.trajectory.propeller(3, 4, 11, 'Matrix', 9, p{:}), 'propeller_scan');
end
check(isa(recon.trajectory.radial(6, 11), 'double'), 'a trajectory is double unless asked otherwise');
end

function blades()
classes = {'single', 'double'};
for i = 1:2
    r = @(what) read(['blades_' classes{i} '_' what]);
    options = {{}, {'Phase', 'constant', 'Lines', 10, 'Rotation', false, 'Weighting', false}};
    for j = 1:2
        s = @(what) read(sprintf('blades%d_%s_%s', j - 1, classes{i}, what));
        [x, motion] = recon.propeller(r('k'), r('kspace'), [32 30], options{j}{:}, 'Tolerance', 1e-5);
        numbers = cat(1, reshape(motion.rotation, 1, 9, 2), motion.translation, reshape(motion.phase, 1, 9, 2), ...
            reshape(motion.correlation, 1, 9, 2), reshape(motion.weight, 1, 9, 2));
        check(isequal(numbers, s('motion')), 'motion is the C API''s to the bit');
        check_same(x, s('image'), classes{i}, 'image');
        check_same(motion.k, s('where'), classes{i}, 'k');
        check_same(motion.w, s('weights'), classes{i}, 'w');
        check_same(motion.d, s('corrected'), classes{i}, 'd');
    end
end
end

function check_same(a, b, kind, what)
check(isa(a, kind), [what ' has its class']);
check(isequal(a, b), [what ' is the C API''s to the bit']);
end

function scan(name, bound)
r = @(what) read([name what]);
k = r('k');
d = r('kspace');
x = r('image');
maps = r('maps');
weights = r('weights');
kind = class(d);
dims = size(x);
ndim = size(k, 3);
dims = dims(1:ndim);
t = {'Tolerance', 1e-5};

    function same(a, what)
        check(isa(a, kind), [what ' has the class of the data']);
        check_close(a, r(what), bound, what);
    end

% The operator.
E = recon.Encoding(k, dims, 'Maps', maps, 'Weights', weights, t{:});
same(E * x, 'forward');
same(E' * d, 'fhd');
same(E.rhs(d), 'rhs');
same(E.normal(x), 'normal');
q = E.q();
same(q, 'q');
P = recon.Encoding(k, dims, 'Coils', size(d, 3), 'Frames', size(d, 4), t{:});
same(P * r('images'), 'plain_forward');
same(P' * d, 'plain_fhd');

% Reconstructions, from the trajectory, and with operators that transform frames one by one or together.
same(recon.fhd(k, d, dims, 'Maps', maps, t{:}), 'fhd');
same(recon.fhd(E, d), 'fhd');
same(recon.fhd(k, d, dims, t{:}), 'plain_fhd');
same(recon.grid(k, d, dims, 'Maps', maps, 'Weights', weights, t{:}), 'grid');
same(recon.grid(E, d), 'grid');
same(recon.grid(k, d, dims, t{:}), 'plain_grid');
same(recon.cg(k, d, dims, t{:}), 'plain_cg');
if ndim == 2
    same(recon.fbp(r('spokes'), d, dims, t{:}), 'ram-lak');
    S = recon.Encoding(r('spokes'), dims, 'Coils', size(d, 3), 'Frames', size(d, 4), t{:});
    filters = {'ram-lak', 'shepp-logan', 'cosine', 'hamming', 'hann'};
    for i = 1:numel(filters)
        same(recon.fbp(S, d, 'Filter', filters{i}), filters{i});
    end
end
same(recon.fhd(k, d, dims, 'Method', 'exact', 'Basis', 'box'), 'exact_fhd');
same(recon.fhd(k, d, dims, 'Voxels', r('voxels')), 'list_fhd');
G = recon.Encoding(k, dims, 'Coils', size(d, 3), 'Frames', size(d, 4), 'Tolerance', 1e-2, 'Window', 'gaussian', ...
    'Normal', 'transforms', 'Basis', 'box');
same(G.normal(r('images')), 'gaussian_normal');
W = recon.Encoding(k, dims, 'Coils', size(d, 3), 'Frames', size(d, 4), 'Tolerance', 0.1, 'Width', 4, ...
    'Oversampling', 1.5);
check(W.info().width == 4 && W.info().oversampling >= 1.5, 'width and oversampling');
same(W' * d, 'narrow_fhd');
same(recon.fhd(k, d, dims, 'Width', 4, 'Oversampling', 1.5, 'Tolerance', 0.1), 'narrow_fhd');

% Conjugate gradients with every prior.
values = r('matrix_values');
columns = r('matrix_columns');
R = sparse(1:numel(columns), columns, double(values), numel(columns), prod(dims));
priors = {'identity', {}; 'differences', {'Initial', x}; 'anatomical', {'Reference', r('reference'), 'Edge', 0.2}; ...
    'matrix', {'Prior', R}};
for i = 1:size(priors, 1)
    what = priors{i, 1};
    o = [{'Iterations', 5, 'Lambda', 0.3, 'Prior', what}, priors{i, 2}];
    if strcmp(what, 'matrix')
        o = [{'Iterations', 5, 'Lambda', 0.3}, priors{i, 2}];
    end
    [y, report] = recon.cg(k, d, dims, 'Maps', maps, 'Weights', weights, t{:}, o{:});
    same(y, ['cg_' what]);
    check_close(report.residuals, r(['residuals_' what]), 10 * bound, ['residuals of ' what]);
    check(report.iterations == 5 && strcmp(report.stop, 'iterations') && report.images == size(d, 4), 'the report');
    check(report.residual == max(report.residuals(6, :)) && report.adjoint_seconds > 0, 'the report''s figures');
    [y, framewise] = recon.cg(E, d, o{:});
    same(y, ['cg_' what]);
    check_close(framewise.residuals, report.residuals, 10 * bound, 'residuals of frames one by one');
    check(framewise.worst_image == report.worst_image && framewise.images == report.images, 'their report');
end

% Coil maps, combined coils, metrics and phantoms.
same(recon.coilmaps(k, d, dims, 'Calibration', 2, t{:}), 'estimated_maps');
same(recon.coilmaps(P, d, 'Calibration', 2), 'estimated_maps');
methods = {'pipe-menon', 'jackson'};
for i = 1:2
    same(recon.density(k, dims, 'Method', methods{i}, 'Iterations', 7, 'Change', 1e-9, t{:}), methods{i});
end
same(recon.density(P, 'Iterations', 7, 'Change', 1e-9), 'pipe-menon');
images = r('images');
rss = recon.combine(images, dims);
check(isreal(rss) && isa(rss, kind), 'a root of squares is real, of the images'' class');
check_close(rss, r('rss'), bound, 'rss');
same(recon.combine(images, dims, 'Method', 'adaptive'), 'adaptive');

truth = maps(:, :, :, 1);
image = x(:, :, :, 1);
if ndim == 2
    truth = maps(:, :, 1);
    image = x(:, :, 1);
end
quality(recon.metrics(image, truth), r('quality'), bound);
mask = reshape(r('mask') ~= 0, size(image));
quality(recon.metrics(image, truth, 'Mask', mask, 'Scale', 'best'), r('quality_masked'), bound);
quality(recon.metrics(image, truth, 'Part', 'magnitude', 'Scale', 'best'), r('quality_magnitude'), bound);

p = {'Precision', kind};
phantom = recon.phantom.image(dims, 'Supersample', 3, p{:});
check(isreal(phantom) && isa(phantom, kind), 'a phantom is real, of the class asked for');
check_close(phantom, r('phantom'), bound, 'phantom');
same(recon.phantom.coilmaps(dims, size(d, 3), p{:}), 'phantom_maps');
shapes = [1 0.1 -0.2 0 0.5 0.3 0.6 0.4 0 0; -0.5 0 0.1 0 0.2 0.2 0.3 0 0 0];
clean = recon.phantom.kspace(k, dims, 'Coils', size(d, 3), 'Shapes', shapes);
same(clean, 'phantom_kspace');
[noisy, deviation] = recon.phantom.noise(clean, 20, 'Seed', 42);
same(noisy, 'noisy');
check_close(deviation, r('deviation'), bound, 'deviation');
end

function quality(q, expected, bound)
check_close([q.percent_error q.mse q.psnr_db q.snr_db real(q.scale) imag(q.scale)], expected, 100 * bound, 'metrics');
end

function array = read(name)
folder = getenv('RECON_TEST_REFERENCE');
if isempty(folder)
    error('recontest:skip', 'because RECON_TEST_REFERENCE names no folder');
end
file = fopen(fullfile(folder, name), 'r');
if file < 0
    error('recontest:missing', 'no file %s', name);
end
closing = onCleanup(@() fclose(file));
words = strsplit(strtrim(fgetl(file)), ' ');
dims = cellfun(@str2double, words(3:end));
complex_numbers = strcmp(words{2}, '1');
array = fread(file, Inf, [words{1} '=>' words{1}]);
if complex_numbers
    array = complex(array(1:2:end), array(2:2:end));
end
% Files of a 2D image have a third dimension of 1.
if strncmp(name, '2D', 2) && numel(dims) > 3 && dims(3) == 1
    dims(3) = [];
end
array = reshape(array, [dims 1]);
end
