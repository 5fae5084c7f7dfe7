function tests = test_encoding()
%TEST_ENCODING  The operator against explicit sums, in all shapes of arrays, in solvers, copied, saved and deleted.
tests = {@explicit_sums, @adjointness, @normal_and_rhs, @shapes, @columns, @trajectories_as_users_write_them, ...
    @classes, @sizes, @in_pcg, @in_lsqr, @in_a_gradient_descent, @weights_by_name, @voxel_lists, @save_and_load, ...
    @kernel_in_a_file, @info_and_display, @maps_from_the_data, @maps_fail_as_documented};
end

function explicit_sums()
% Odd and even sizes, 2D and 3D, coils, both precisions, both methods.
cases = {[12 9], 'double', 'nufft', 1e-9; [12 9], 'single', 'nufft', 1e-5; [9 12], 'double', 'exact', 1e-12; ...
    [6 5 7], 'double', 'nufft', 1e-9; [6 5 7], 'single', 'nufft', 1e-5; [5 6 4], 'double', 'exact', 1e-12};
for i = 1:size(cases, 1)
    [dims, kind, method, bound] = cases{i, :};
    k = rand(60, 3, numel(dims)) - 0.5;
    maps = complex(randn([dims 3]), randn([dims 3]));
    A = explicit(k, dims);
    k = feval(kind, k);
    E = recon.Encoding(k, dims, 'Maps', feval(kind, maps), 'Method', method, 'Tolerance', min(bound, 1e-6));
    x = complex(randn(dims), randn(dims));
    y = zeros(60, 3, 3);
    for c = 1:3
        y(:, :, c) = reshape(A * (slice(maps, dims, c) .* x(:)), 60, 3);
    end
    % The explicit sums must use the rounded coordinates too.
    slack = 3 * bound + strcmp(kind, 'single') * 2e-6;
    check_close(E * feval(kind, x), feval(kind, y), slack, 'E * x');
    d = complex(randn(60, 3, 3), randn(60, 3, 3));
    z = zeros(prod(dims), 1);
    for c = 1:3
        z = z + conj(slice(maps, dims, c)) .* (A' * reshape(d(:, :, c), [], 1));
    end
    check_close(E' * feval(kind, d), feval(kind, reshape(z, dims)), slack, 'E'' * d');
end
end

function A = explicit(k, dims)
axes = cell(1, numel(dims));
for a = 1:numel(dims)
    axes{a} = (0:dims(a) - 1) - floor(dims(a) / 2);
end
grids = cell(1, numel(dims));
[grids{:}] = ndgrid(axes{:});
positions = cellfun(@(g) g(:), grids, 'UniformOutput', false);
A = exp(-2i * pi * (reshape(k, [], numel(dims)) * [positions{:}].'));
end

function s = slice(maps, dims, c)
maps = reshape(maps, prod(dims), []);
s = maps(:, c);
end

function adjointness()
% <E x, y> = <x, E' y> holds up to rounding for any tolerance.
cases = {[20 17], 'double', 1e-13; [20 17], 'single', 1e-5; [9 8 7], 'double', 1e-13};
for i = 1:size(cases, 1)
    [dims, kind, bound] = cases{i, :};
    k = feval(kind, rand(200, numel(dims)) - 0.5);
    E = recon.Encoding(k, dims, 'Maps', feval(kind, complex(randn([dims 4]), randn([dims 4]))), 'Tolerance', 1e-2);
    x = feval(kind, complex(randn(dims), randn(dims)));
    y = feval(kind, complex(randn(200, 4), randn(200, 4)));
    Ex = E * x;
    Ey = E' * y;
    left = y(:)' * Ex(:);
    right = Ey(:)' * x(:);
    check(abs(left - right) <= bound * norm(Ex(:)) * norm(y(:)), 'adjointness');
end
end

function normal_and_rhs()
k = rand(300, 2) - 0.5;
w = rand(300, 1) + 0.1;
maps = complex(randn(16, 14, 3), randn(16, 14, 3));
x = complex(randn(16, 14), randn(16, 14));
y = complex(randn(300, 3), randn(300, 3));
normals = {'toeplitz', 'transforms', 'auto'};
for i = 1:3
    E = recon.Encoding(k, [16 14], 'Maps', maps, 'Weights', w, 'Tolerance', 1e-9, 'Normal', normals{i});
    check_close(E.normal(x), E' * (w .* (E * x)), 1e-8, 'E^H W E');
    check_close(E.rhs(y), E' * (w .* y), 1e-12, 'E^H W y');
    n = E.normal(x(:));
    check(isequal(size(n), [224 1]) && isequal(reshape(n, 16, 14), E.normal(x)), 'normal keeps the shape');
end
end

function shapes()
k = recon.trajectory.radial(7, 20);
dims = [10 8];
plain = recon.Encoding(k, dims);
y = plain * ones(dims);
check(isequal(size(y), [20 7]), 'one image');
check(isequal(size(plain' * y), dims), 'one coil');
check(isequal(size(plain' * y(:)), dims), 'a column is one coil''s samples');
y = plain * randn([dims 3]);
check(isequal(size(y), [20 7 3]), 'images of coils');
x = plain' * y;
check(isequal(size(x), [dims 3]), 'coils');
check(isequal(x(:, :, 2), plain' * y(:, :, 2)), 'coils are transformed each');
check(isequal(plain' * reshape(y, 140, 3), x), 'samples as one dimension');
check(isequal(size(plain * randn([dims 3 2])), [20 7 3 2]), 'frames');

maps = complex(randn([dims 3]), randn([dims 3]));
coils = recon.Encoding(k, [], 'Maps', maps);
y = coils * ones(dims);
check(isequal(size(y), [20 7 3]), 'with maps');
frames = coils * randn([dims 2]);
check(isequal(size(frames), [20 7 3 2]), 'frames with maps');
x = coils' * frames;
check(isequal(size(x), [dims 2]), 'frames combined');
check(isequal(x(:, :, 2), coils' * frames(:, :, :, 2)), 'frames are transformed each');
check(isequal(size(coils.rhs(frames)), [dims 2]), 'frames of rhs');

k3 = recon.trajectory.radial3d(9, 12);
cube = recon.Encoding(k3, [6 5 4]);
check(isequal(size(cube * ones(6, 5, 4)), [12 9]), '3D');
check(isequal(size(cube' * ones(12, 9, 2)), [6 5 4 2]), '3D coils');
check(isequal(size(recon.Encoding(k3, 6)' * ones(12, 9)), [6 6 6]), 'one size for all axes');
check(isequal(size(recon.phantom.image(int32(6))), [6 6]), 'a size of an integer class');
check(isequal(size(recon.trajectory.radial(uint8(3), 4)), [4 3 2]), 'counts of an integer class');

% A dimension of one, and one sample.
thin = recon.Encoding(rand(30, 2) - 0.5, [12 1]);
check(isequal(size(thin * ones(12, 1)), [30 1]) && isequal(size(thin' * ones(30, 1)), [12 1]), 'a thin image');
one = recon.Encoding([0.1 0.2], [4 4]);
check(isequal(size(one * ones(4)), [1 1]) && isequal(size(one' * 1), [4 4]), 'one sample');
end

function columns()
k = recon.trajectory.radial(7, 20);
dims = [10 8];
maps = complex(randn([dims 3]), randn([dims 3]));
E = recon.Encoding(k, [], 'Maps', maps);
x = complex(randn(dims), randn(dims));
y = E * x;
check(isequal(E * x(:), y(:)), 'a column in, a column out');
z = E' * y;
check(isequal(E' * y(:), z(:)), 'back, as a column');
A = E.matrix();
check(isequal(A * x(:), y(:)) && isequal(A' * y(:), z(:)) && isequal(A' * y, z(:)), 'the matrix gives columns');
single_coil = recon.Encoding(rand(40, 2) - 0.5, dims).matrix();
check(isequal(size(single_coil' * ones(40, 1)), [80 1]) && isequal(size(single_coil * ones(dims)), [40 1]), ...
    'of one coil too');
check(isequal(A * x, y(:)) && isequal(A * [x(:), 2 * x(:)], [y(:), 2 * y(:)]), 'and takes images, and several columns');
check(isequal(E.afun(x(:), 'notransp'), y(:)) && isequal(E.afun(y(:), 'transp'), z(:)), 'afun');
B = A';
check(isequal(B' * x(:), y(:)), 'the adjoint of the adjoint');
end

function trajectories_as_users_write_them()
k = recon.trajectory.spiral(5, 40, 3);
dims = [16 16];
x = complex(randn(dims), randn(dims));
y = recon.Encoding(k, dims) * x;
check(isequal(recon.Encoding(reshape(k, [], 2), dims) * x, y(:)), '[samples 2]');
c = complex(k(:, :, 1), k(:, :, 2));
check(isequal(recon.Encoding(c, dims) * x, y), 'kx + i ky, [readout shots]');
check(isequal(recon.Encoding(c(:), dims) * x, y(:)), 'kx + i ky, a column');
% 0.5, the last value of linspace(-0.5, 0.5, n), is the frequency -0.5, also with a rounding error above 0.5.
edge = [0.5 0.5; -0.5 -0.5; 0.5 -0.5; 0.50000001 -0.50000001];
y = recon.Encoding(edge, dims) * x;
check(all(y == y(1)), '0.5 is -0.5');
y = recon.Encoding(double(0.5 - 1e-12) * [1 1; 1 1], dims, 'Precision', 'single') * x;
check(all(isfinite(y)), 'what single precision rounds to 0.5');
end

function classes()
k = rand(50, 2) - 0.5;
D = recon.Encoding(k, [8 8]);
check(strcmp(D.precision, 'double') && isa(D * ones(8), 'double') && isa(D * ones(8, 'single'), 'single'), 'double');
S = recon.Encoding(single(k), [8 8]);
check(strcmp(S.precision, 'single') && isa(S * ones(8), 'double'), 'single');
check(isa(S' * ones(50, 1, 'single'), 'single'), 'single, with single data');
check(strcmp(recon.Encoding(k, [8 8], 'Precision', 'single').precision, 'single'), 'asked for');
check(strcmp(recon.Encoding(k, [], 'Maps', ones(8, 8, 2, 'single')).precision, 'single'), 'of the maps');
x = randn(8);
check(isequal(D * x, D * complex(x)), 'real is complex with zeros');
check(isequal(S * x, double(S * single(x))), 'converted first');
check(isa(recon.fhd(k, ones(50, 1, 'single'), [8 8]), 'single'), 'data decide');
check(isa(recon.cg(single(k), ones(50, 1), [8 8]), 'double'), 'data decide');
end

function sizes()
E = recon.Encoding(recon.trajectory.radial(7, 20), [], 'Maps', ones(10, 8, 3));
check(isequal(size(E), [420 80]) && isequal(size(E'), [80 420]), 'size');
check(size(E, 1) == 420 && size(E, 2) == 80 && size(E, 3) == 1, 'size of a dimension');
[m, n] = size(E);
check(m == 420 && n == 80, 'sizes apart');
check(isequal(size(recon.Encoding(rand(30, 2) - 0.5, [8 8], 'Coils', 2, 'Frames', 3)), [180 384]), 'without maps');
check(~isreal(E), 'isreal');
end

function [E, y, truth] = scan()
dims = [24 24];
maps = recon.phantom.coilmaps(dims, 4);
E = recon.Encoding(rand(2500, 2) - 0.5, dims, 'Maps', maps, 'Tolerance', 1e-8);
truth = recon.phantom.image(dims);
y = E * truth;
end

function in_pcg()
[E, y, truth] = scan();
b = E.rhs(y);
[x, flag] = pcg(@(x) E.normal(x), b(:), 1e-6, 300);
check(flag == 0, 'pcg converged');
check_close(reshape(x, 24, 24), complex(truth), 1e-2, 'pcg');
end

function in_lsqr()
[E, y, truth] = scan();
if exist('lsqr', 'file') || exist('lsqr', 'builtin')
    x = lsqr(@(v, flag) E.afun(v, flag), y(:), 1e-8, 300);
else
    x = own_lsqr(E.matrix(), y(:), 300);
end
check_close(reshape(x, 24, 24), complex(truth), 1e-2, 'lsqr');
end

function x = own_lsqr(A, b, iterations)
% Paige and Saunders 1982, with the operator as the matrix: Octave 7 has no lsqr.
x = zeros(size(A, 2), 1);
beta = norm(b);
u = b / beta;
v = A' * u;
alpha = norm(v);
v = v / alpha;
w = v;
phi = beta;
rho = alpha;
for i = 1:iterations
    u = A * v - alpha * u;
    beta = norm(u);
    u = u / beta;
    v = A' * u - beta * v;
    alpha = norm(v);
    v = v / alpha;
    r = norm([rho beta]);
    c = rho / r;
    s = beta / r;
    theta = s * alpha;
    rho = -c * alpha;
    x = x + (c * phi / r) * w;
    w = v - (theta / r) * w;
    phi = s * phi;
    if abs(phi) * alpha < 1e-12
        break
    end
end
end

function in_a_gradient_descent()
% A gradient descent on arrays in the shapes of images and data.
[E, y, truth] = scan();
x = zeros(24);
v = ones(24);
for i = 1:10
    v = E.normal(v / norm(v(:)));
end
step = 1 / norm(v(:));
first = norm(y(:));
for i = 1:20
    residual = y - E * x;
    x = x + step * (E' * residual);
end
residual = y - E * x;
check(norm(residual(:)) < 0.3 * first, 'the residual falls');
check(norm(x(:) - truth(:)) < norm(truth(:)), 'the image improves');
end

function weights_by_name()
k = recon.trajectory.radial(20, 40);
E = recon.Encoding(k, [20 20], 'Weights', 'ramp', 'Tolerance', 1e-8);
w = recon.density(k, [20 20], 'Method', 'ramp', 'Tolerance', 1e-8);
y = complex(randn(40, 20), randn(40, 20));
check_close(E.rhs(y), E' * (w .* y), 1e-12, 'ramp');
end

function voxel_lists()
k = rand(40, 2) - 0.5;
list = [0 0; 1.5 -2.25; 3 3];
E = recon.Encoding(k, [8 8], 'Voxels', list);
x = [1; 2i; -1];
y = E * x;
check_close(y, exp(-2i * pi * (k * list.')) * x, 1e-12, 'a list');
check(isequal(size(E' * y), [3 1]), 'its shape');
end

function save_and_load()
k = recon.trajectory.radial(7, 20);
maps = complex(randn(10, 8, 3), randn(10, 8, 3));
E = recon.Encoding(k, [10 8], 'Maps', maps, 'Weights', 'ramp', 'Tolerance', 1e-6, 'Threads', 1);
y = E * ones(10, 8);
% MATLAB calls saveobj and loadobj itself; Octave cannot save objects.
saved = saveobj(E'); %#ok<NASGU>
file = [tempname() '.mat'];
cleanup = onCleanup(@() delete(file));
save(file, 'saved');
clear E
again = load(file);
E = recon.Encoding.loadobj(again.saved)';
check(isequal(E * ones(10, 8), y), 'the operator made again');
check(E.info().threads == 1, 'with its options');
check(isequal(E.rhs(y), E' * (recon.density(k, [10 8], 'Method', 'ramp', 'Tolerance', 1e-6) .* y)), 'and weights');
end

function kernel_in_a_file()
k = rand(200, 2) - 0.5;
file = tempname();
cleanup = onCleanup(@() delete(file));
x = complex(randn(16), randn(16));
E = recon.Encoding(k, [16 16], 'Normal', 'toeplitz');
E.saveq(file);
F = recon.Encoding(k, [16 16], 'Normal', 'toeplitz');
F.loadq(file);
check(isequal(F.normal(x), E.normal(x)), 'Q from a file');
G = recon.Encoding(k(1:100, :), [16 16], 'Normal', 'toeplitz');
check_error(@() G.loadq(file), 'recon:BadFile');
check_error(@() G.loadq([file 'x']), 'recon:IO');
end

function info_and_display()
E = recon.Encoding(rand(200, 2) - 0.5, [16 12], 'Threads', 1, 'Device', 'cpu', 'Tolerance', 1e-3);
s = E.info();
check(s.threads == 1 && strcmp(s.device, 'cpu') && strcmp(s.method, 'nufft') && strcmp(s.precision, 'double'), 'info');
check(s.error <= 1e-3 && s.width > 1 && all(s.grid >= [16 12]) && s.host_bytes > 0 && s.seconds >= 0, 'its figures');
check(strcmp(s.device_reason, 'requested') && s.estimated_cpu_ms == 0 && s.estimated_gpu_ms == 0, 'the reason');
text = evalc('disp(E)');
check(~isempty(strfind(text, '16 x 12 image')) && ~isempty(strfind(text, '200 samples')), 'disp'); %#ok<STREMP>
check(~isempty(strfind(evalc('disp(E'')'), 'adjoint')), 'disp of the adjoint'); %#ok<STREMP>
check(ischar(recon.version()) && isstruct(recon.devices()), 'version and devices');
end

function maps_from_the_data()
dims = [32 32];
k = recon.trajectory.radial(60, 64);
d = recon.phantom.kspace(k, dims, 'Coils', 4);
maps = recon.coilmaps(k, d, dims);
check(isequal(size(maps), [dims 4]), 'maps');
expected = recon.cg(k, d, dims, 'Maps', maps, 'Iterations', 3);
check(isequal(recon.cg(k, d, dims, 'Maps', 'data', 'Iterations', 3), expected), '''data'' is coilmaps');
x = recon.cg(k, d, dims, 'Maps', 'data', 'Iterations', 10);
q = recon.metrics(abs(x), recon.phantom.image(dims), 'Scale', 'best');
check(q.percent_error < 40, 'an image');
end

function maps_fail_as_documented()
% The table of docs/matlab.md, on the brain of the examples: errors of estimated maps, and of images with these maps and
% with the true maps. Calibration too small, no centre of k-space, strong phase, and noise.
folder = fullfile(fileparts(fileparts(mfilename('fullpath'))), 'examples', 'private');
here = cd(folder);
shapes = brain();
cd(here);
n = [192 192];
truth = recon.phantom.image(n, 'Shapes', shapes);
k = recon.trajectory.radial(24, 384, 'Order', 'golden');
outer = k(hypot(k(:, 1, 1), k(:, 1, 2)) >= 1 / 192, :, :);
phase = exp(2i * pi * 12 * ((0:191).' - 96) / 192);
% Columns: name, trajectory, image, noise, calibration, bounds of the maps' error in percent, bounds of the image's
% error divided by the error with the true maps.
cases = {'nothing', k, truth, 40, 24, [0 3], [0.85 1]; 'a calibration of 4', k, truth, 40, 4, [10 20], [1.02 1.3]; ...
    'a calibration of 48', k, truth, 40, 48, [0 3], [0.85 1]; ...
    'no samples at the centre', outer, truth, 40, 24, [30 55], [2.5 4.5]; ...
    'a phase of 12 cycles', k, truth .* phase, 40, 24, [15 35], [1.5 3]; ...
    'noise of 1/10', k, truth, 10, 24, [0 5], [1.2 1.9]};
for i = 1:size(cases, 1)
    [what, trajectory, object, snr, calibration, maps_bounds, image_bounds] = cases{i, :};
    [maps_error, ratio] = with_estimated_maps(what, trajectory, object, snr, calibration);
    check(maps_error > maps_bounds(1) && maps_error < maps_bounds(2), [what ': the maps'' error']);
    check(ratio > image_bounds(1) && ratio < image_bounds(2), [what ': the image''s error']);
end
end

function [maps_error, ratio] = with_estimated_maps(what, k, object, snr, calibration)
n = size(object);
true_maps = recon.phantom.coilmaps(n, 8);
d = recon.phantom.noise(recon.Encoding(k, n, 'Maps', true_maps, 'Tolerance', 1e-5) * object, snr);
rss = sqrt(sum(abs(true_maps).^2, 3));
maps = recon.coilmaps(k, d, n, 'Calibration', calibration);
% The part of the true sensitivities that is orthogonal to the estimate. The estimate has unit norm.
along = abs(sum(conj(maps) .* true_maps, 3)) ./ rss;
part = max(0, 1 - along.^2);
maps_error = 100 * sqrt(mean(part(abs(object) > 0.1)));
outside = 100 * sqrt(mean(part(object == 0)));
errors = zeros(1, 2);
both = {maps, true_maps ./ rss};
for i = 1:2
    x = recon.cg(k, d, n, 'Maps', both{i}, 'Iterations', 20);
    q = recon.metrics(abs(x), abs(object) .* rss, 'Scale', 'best');
    errors(i) = q.percent_error;
end
fprintf('  %s: maps %.1f %% (outside the object %.1f), image %.1f %%, with the true maps %.1f %%\n', what, ...
    maps_error, outside, errors);
ratio = errors(1) / errors(2);
end
