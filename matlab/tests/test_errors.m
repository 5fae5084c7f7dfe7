function tests = test_errors()
%TEST_ERRORS  Wrong arguments end with an error that has an identifier of recon, and never end the process.
tests = {@wrong_trajectories, @wrong_sizes, @wrong_data, @wrong_maps_and_weights, @wrong_options, @options_given_twice, ...
    @wrong_cg_options, @wrong_operators, @deleted_operators, @wrong_helpers, @anything_anywhere, @anything_to_the_mex_file};
end

function wrong_trajectories()
d = ones(10, 1);
f = @(k) @() recon.fhd(k, d, [8 8]);
check_error(f('trajectory'), 'recon:InvalidArgument', 'char');
check_error(f({1, 2}), 'recon:InvalidArgument', 'cell');
check_error(f(struct('k', 1)), 'recon:InvalidArgument', 'struct');
check_error(f(sparse(rand(10, 2) - 0.5)), 'recon:InvalidArgument', 'sparse');
check_error(f(int16(zeros(10, 2))), 'recon:InvalidArgument', 'int16');
check_error(f(true(10, 2)), 'recon:InvalidArgument', 'logical');
check_error(f([]), 'recon:InvalidArgument', 'empty');
check_error(f(@sin), 'recon:InvalidArgument', 'function_handle');
check_error(f(zeros(2, 10)), 'recon:SizeMismatch', 'permute(k, [2 1])');
check_error(f(zeros(2, 5, 4)), 'recon:SizeMismatch', 'permute(k, [2 3 1])');
check_error(f(zeros(10, 5)), 'recon:SizeMismatch', 'last dimension');
check_error(f(zeros(10, 3)), 'recon:SizeMismatch', '3 coordinates');
check_error(f(complex(zeros(9, 1), 1)), 'recon:SizeMismatch', 'begin with 9');
bad = zeros(10, 2);
bad(3, 2) = NaN;
check_error(f(bad), 'recon:NotFinite', 'count from 0');
bad(3, 2) = Inf;
check_error(f(bad), 'recon:NotFinite');
bad(3, 2) = 1.7;
check_error(f(bad), 'recon:CoordinateOutOfRange', '1.7');
check_error(@() recon.fhd(complex(zeros(10, 1), 0.1), d, [8 8 8]), 'recon:SizeMismatch');
end

function wrong_sizes()
k = zeros(10, 2);
f = @(dims) @() recon.Encoding(k, dims);
check_error(f([]), 'recon:InvalidArgument', 'image size');
check_error(f([8 8 8]), 'recon:SizeMismatch');
check_error(f([0 8]), 'recon:InvalidSize');
check_error(f([-8 8]), 'recon:InvalidArgument');
check_error(f([8.5 8]), 'recon:InvalidArgument', '8.5');
check_error(f([NaN 8]), 'recon:InvalidArgument');
check_error(f([1e300 8]), 'recon:InvalidArgument');
check_error(f([2^52 2^52]), 'recon:SizeOverflow');
check_error(f([2^24 2^24]), 'recon:OutOfHostMemory');
check_error(f([8 8i]), 'recon:InvalidArgument');
check_error(@() recon.Encoding(k, 'large'), 'recon:UnknownOption');
check_error(@() recon.Encoding(k, {8, 8}), 'recon:InvalidArgument');
check_error(@() recon.Encoding(), 'recon:InvalidArgument');
check_error(@() recon.Encoding(k), 'recon:InvalidArgument', 'image size');
check_error(@() recon.fhd(k), 'recon:InvalidArgument');
end

function wrong_data()
k = recon.trajectory.radial(5, 12);
functions = {@recon.fhd, @recon.grid, @recon.cg, @recon.coilmaps};
for i = 1:numel(functions)
    f = @(d) @() functions{i}(k, d, [8 8]);
    check_error(f('data'), 'recon:InvalidArgument', 'char');
    check_error(f({}), 'recon:InvalidArgument', 'cell');
    check_error(f(struct()), 'recon:InvalidArgument');
    check_error(f([]), 'recon:InvalidArgument', 'empty');
    check_error(f(sparse(ones(12, 5))), 'recon:InvalidArgument', 'sparse');
    check_error(f(true(12, 5)), 'recon:InvalidArgument', 'logical');
    check_error(f(int32(ones(12, 5))), 'recon:InvalidArgument', 'int32');
    check_error(f(ones(12, 6)), 'recon:SizeMismatch', '12 x 5');
end
end

function wrong_maps_and_weights()
k = recon.trajectory.radial(5, 12);
d = ones(12, 5, 3);
f = @(varargin) @() recon.cg(k, d, [8 8], varargin{:});
check_error(f('Maps', ones(8, 8, 2)), 'recon:SizeMismatch', '12 x 5 x 2');
check_error(f('Maps', ones(8, 7, 3)), 'recon:SizeMismatch', '8 x 7');
check_error(f('Maps', ones(8, 8, 3, 2)), 'recon:SizeMismatch');
check_error(f('Maps', {1}), 'recon:InvalidArgument', 'cell');
check_error(f('Maps', 'mine'), 'recon:UnknownValue', 'mine');
check_error(@() recon.Encoding(k, [8 8], 'Maps', 'data'), 'recon:InvalidArgument', 'recon.coilmaps');
check_error(f('Maps', NaN(8, 8, 3)), 'recon:NotFinite');
check_error(f('Weights', ones(12, 4)), 'recon:SizeMismatch', '60 x 1');
check_error(f('Maps', ones(8, 8, 3), 'Coils', 2), 'recon:SizeMismatch', 'Coils says 2');
check_error(f('Weights', -ones(12, 5)), 'recon:InvalidArgument');
check_error(f('Weights', NaN(12, 5)), 'recon:NotFinite');
check_error(f('Weights', 1i * ones(12, 5)), 'recon:InvalidArgument', 'real');
check_error(f('Weights', 'heavy'), 'recon:UnknownValue', 'pipe-menon');
check_error(f('Weights', sparse(ones(12, 5))), 'recon:InvalidArgument', 'sparse');
check_error(f('Voxels', ones(4, 3)), 'recon:SizeMismatch');
end

function wrong_options()
k = zeros(10, 2);
f = @(varargin) @() recon.Encoding(k, [8 8], varargin{:});
check_error(f('Tolerence', 1e-3), 'recon:UnknownOption', 'Tolerance');
check_error(f('Tolerance'), 'recon:InvalidArgument', 'no value');
check_error(f(1e-3), 'recon:InvalidArgument');
check_error(f('Tolerance', 2), 'recon:ToleranceOutOfRange');
check_error(f('Tolerance', NaN), 'recon:ToleranceOutOfRange');
check_error(f('Tolerance', '1e-3'), 'recon:InvalidArgument', 'Tolerance');
check_error(f('Tolerance', [1 2]), 'recon:InvalidArgument');
check_error(f('Width', 1), 'recon:InvalidArgument', '2 to 16');
check_error(f('Width', 17), 'recon:InvalidArgument', '2 to 16');
check_error(f('Width', 1e12), 'recon:InvalidArgument', '2 to 16');
check_error(f('Width', 4.5), 'recon:InvalidArgument', 'Width');
check_error(f('Width', -4), 'recon:InvalidArgument', 'Width');
check_error(f('Width', NaN), 'recon:InvalidArgument', 'Width');
check_error(f('Width', 3, 'Window', 'bilinear'), 'recon:InvalidArgument', 'bilinear');
check_error(f('Width', []), 'recon:InvalidArgument', 'one number');
check_error(f('Oversampling', 1.2), 'recon:InvalidArgument', '1.25 to 2.5');
check_error(f('Oversampling', 3), 'recon:InvalidArgument', '1.25 to 2.5');
check_error(f('Oversampling', Inf), 'recon:InvalidArgument', '1.25 to 2.5');
check_error(f('Oversampling', NaN), 'recon:InvalidArgument', '1.25 to 2.5');
check_error(f('Oversampling', [1.5 2]), 'recon:InvalidArgument', 'Oversampling');
check_error(f('Oversampling', 2, 'Method', 'exact'), 'recon:InvalidArgument', 'exact');
check_error(f('Width', 4, 'Method', 'exact'), 'recon:InvalidArgument', 'exact');
check_error(f('Width', 4, 'Oversampling', 1.5, 'Tolerance', 1e-5), 'recon:ToleranceOutOfRange', 'would meet it');
check_error(f('Method', 'fast'), 'recon:UnknownValue', '''nufft''');
check_error(f('Method', 3), 'recon:InvalidArgument', 'text');
check_error(f('Precision', 'half'), 'recon:UnknownValue', '''single''');
check_error(f('Device', 'tpu'), 'recon:UnknownValue', '''cuda''');
check_error(f('Gpus', 0), 'recon:InvalidArgument', 'from 1');
check_error(f('Gpus', 1:100), 'recon:InvalidArgument');
check_error(f('Threads', -1), 'recon:InvalidArgument');
check_error(f('Threads', 1.5), 'recon:InvalidArgument');
check_error(f('MemoryLimit', 10), 'recon:MemoryLimit');
check_error(f('Coils', 0), 'recon:InvalidSize');
check_error(f('Simd', 'mmx'), 'recon:UnknownValue');
check_error(f('Window', 'hann'), 'recon:UnknownValue');
check_error(f('Basis', ['box'; 'box']), 'recon:InvalidArgument');
check_error(f('Method', repmat('x', 1, 500)), 'recon:InvalidArgument', '500');
if isempty(recon.devices())
    check_error(f('Device', 'cuda'), 'recon:NoDevice');
    check_error(f('Gpus', 1), 'recon:NoDevice');
end
check_error(f('Method', 'nufft', 'Voxels', ones(3, 2)), 'recon:Unsupported');
end

function options_given_twice()
n = [8 8];
k = recon.trajectory.radial(16, 12);
d = complex(randn(12, 16), randn(12, 16));
E = recon.Encoding(k, n);
x = complex(randn(n), randn(n));
images = complex(randn([n 1 2]), randn([n 1 2]));
twice = {
    'Tolerance', @(o) recon.Encoding(k, n, o{:}), 1e-4
    'Threads', @(o) recon.fhd(k, d, n, o{:}), 1
    'Precision', @(o) recon.fhd(k, d, n, o{:}), 'double'
    'Coils', @(o) recon.grid(k, d, n, o{:}), 1
    'Iterations', @(o) recon.cg(k, d, n, o{:}), 2
    'Iterations', @(o) recon.cg(E, d, o{:}), 2
    'Calibration', @(o) recon.coilmaps(k, d, n, o{:}), 8
    'Filter', @(o) recon.fbp(k, d, n, o{:}), 'hann'
    'Change', @(o) recon.density(k, n, o{:}), 1e-2
    'Method', @(o) recon.combine(x, n, o{:}), 'rss'
    'Scale', @(o) recon.metrics(x, x, o{:}), 'best'
    'Threshold', @(o) recon.fieldmap(images, n, [0.001 0.002], o{:}), 0
    'Venc', @(o) recon.phasedifference(images, images, n, o{:}), 150
    'Weights', @(o) E.settrajectory(k, o{:}), ones(12, 16)
    'Order', @(o) recon.trajectory.radial(5, 12, o{:}), 'golden'
    'Supersample', @(o) recon.phantom.image(n, o{:}), 2
    'Coils', @(o) recon.phantom.kspace(k, n, o{:}), 2
};
for i = 1:size(twice, 1)
    [name, f, value] = twice{i, :};
    check_error(@() f({name, value, name, value}), 'recon:InvalidArgument', ['''' name ''' is given twice']);
    check_error(@() f({name, value, lower(name), value}), 'recon:InvalidArgument', ['''' name ''' is given twice']);
    f({name, value});
end
check_error(@() recon.cg(k, d, n, struct('Iterations', 2, 'iterations', 3)), 'recon:InvalidArgument', 'given twice');
end

function wrong_cg_options()
k = recon.trajectory.radial(5, 12);
d = ones(12, 5);
f = @(varargin) @() recon.cg(k, d, [8 8], varargin{:});
check_error(f('Iterations', -1), 'recon:InvalidArgument');
check_error(f('Iterations', 'many'), 'recon:InvalidArgument', 'Iterations');
check_error(f('Iterations', Inf), 'recon:InvalidArgument');
check_error(f('Residual', 1), 'recon:ToleranceOutOfRange');
check_error(f('Lambda', -1), 'recon:InvalidArgument');
check_error(f('Lambda', 1, 'Prior', 'wavelets'), 'recon:UnknownValue', 'differences');
check_error(f('Lambda', 1, 'Prior', eye(64)), 'recon:InvalidArgument', 'sparse');
check_error(f('Lambda', 1, 'Prior', speye(63)), 'recon:SizeMismatch', '64');
check_error(f('Lambda', 1, 'Prior', sparse(true(2, 64))), 'recon:SizeMismatch');
check_error(f('Lambda', 1, 'Prior', 'anatomical'), 'recon:InvalidArgument', 'Reference');
check_error(f('Lambda', 1, 'Prior', 'anatomical', 'Reference', ones(8, 7)), 'recon:SizeMismatch');
check_error(f('Lambda', 1, 'Prior', 'anatomical', 'Reference', 1i * ones(8)), 'recon:InvalidArgument', 'real');
check_error(f('Initial', ones(7)), 'recon:SizeMismatch');
check_error(f('Initial', NaN(8)), 'recon:NotFinite');
check_error(f('Progress', 'yes'), 'recon:InvalidArgument');
check_error(f('Progress', [true false]), 'recon:InvalidArgument');
bad = d;
bad(7) = NaN;
check_error(@() recon.cg(k, bad, [8 8]), 'recon:NotFinite', 'count from 0');
check_error(@() recon.fbp(rand(60, 2) - 0.5, ones(60, 1), [8 8]), 'recon:InvalidArgument', '2D radial data');
check_error(@() recon.fbp(k, d, [8 8], 'Weights', 'ramp'), 'recon:InvalidArgument', 'leave out Weights');
check_error(@() recon.fbp(k, d, [8 8], 'weights', ones(12, 5)), 'recon:InvalidArgument', 'leave out Weights');
check_error(@() recon.fbp(k, d, [8 8], struct('Weights', 'ramp')), 'recon:InvalidArgument', 'leave out Weights');
check_error(@() recon.fbp(k, d, [8 8], 'Filter', 'hanning'), 'recon:UnknownValue', 'shepp-logan');
check_error(@() recon.fbp(recon.trajectory.radial3d(40, 16), ones(16, 40), [8 8 8]), 'recon:Unsupported', '3 axes');
end

function wrong_operators()
E = recon.Encoding(recon.trajectory.radial(5, 12), [], 'Maps', ones(8, 8, 3));
check_error(@() E * E, 'recon:InvalidArgument');
check_error(@() horzcat(E, E), 'recon:Unsupported');
check_error(@() vertcat(E, E), 'recon:Unsupported');
check_error(@() normal(E', ones(8)), 'recon:InvalidArgument', 'adjoint');
check_error(@() rhs(E', ones(12, 5, 3)), 'recon:InvalidArgument', 'adjoint');
check_error(@() recon.cg(E', ones(12, 5, 3)), 'recon:InvalidArgument', 'adjoint');
check_error(@() E.saveq(3), 'recon:InvalidArgument', 'text');
check_error(@() ones(8) * E, 'recon:InvalidArgument');
check_error(@() E.', 'recon:Unsupported', 'E''');
check_error(@() E * ones(8, 7), 'recon:SizeMismatch', '8 x 7');
check_error(@() E * ones(63, 1), 'recon:SizeMismatch', '64');
check_error(@() E * 'x', 'recon:InvalidArgument');
check_error(@() E * {1}, 'recon:InvalidArgument');
check_error(@() E * [], 'recon:InvalidArgument');
check_error(@() E * sparse(ones(8)), 'recon:InvalidArgument', 'sparse');
check_error(@() E * int8(ones(8)), 'recon:InvalidArgument');
check_error(@() E' * ones(12, 5), 'recon:SizeMismatch', 'coils');
check_error(@() E' * ones(12, 5, 2), 'recon:SizeMismatch', '12 x 5 x 3');
check_error(@() E' * ones(12, 4, 3), 'recon:SizeMismatch');
check_error(@() E' * ones(179, 1), 'recon:SizeMismatch');
check_error(@() E.matrix() * ones(8, 7), 'recon:SizeMismatch');
check_error(@() E.normal(ones(7)), 'recon:SizeMismatch');
check_error(@() E.normal('x'), 'recon:InvalidArgument');
check_error(@() E.normal(NaN(8)), 'recon:NotFinite');
check_error(@() E.rhs({}), 'recon:InvalidArgument');
check_error(@() E.afun(ones(64, 1), 'sideways'), 'recon:UnknownValue');
check_error(@() E.loadq(17), 'recon:InvalidArgument');
check_error(@() recon.cg(E, ones(12, 5, 2)), 'recon:SizeMismatch');
check_error(@() recon.cg(E, ones(12, 5, 3), [8 8]), 'recon:InvalidArgument');
check_error(@() recon.coilmaps(E, ones(12, 5, 3)), 'recon:InvalidArgument', 'already');
check_error(@() recon.grid(E, ones(12, 5, 3), 'Tolerance', 1e-3), 'recon:UnknownOption');
end

function deleted_operators()
E = recon.Encoding(zeros(10, 2), [8 8]);
F = E';
delete(E);
check_error(@() E * ones(8), 'recon:Deleted');
check_error(@() F * ones(10, 1), 'recon:Deleted');
check_error(@() E.normal(ones(8)), 'recon:Deleted');
check_error(@() E.info(), 'recon:Deleted');
check_error(@() E.q(), 'recon:Deleted');
check_error(@() recon.cg(E, ones(10, 1)), 'recon:Deleted');
check_error(@() recon.density(E), 'recon:Deleted');
delete(E);
disp(E);
end

function wrong_helpers()
check_error(@() recon.trajectory.radial(0, 10), 'recon:InvalidSize');
check_error(@() recon.trajectory.radial(1e15, 1e15), 'recon:SizeOverflow');
check_error(@() recon.trajectory.radial(-1, 10), 'recon:InvalidArgument');
check_error(@() recon.trajectory.radial('a', 10), 'recon:InvalidArgument');
check_error(@() recon.trajectory.radial([1 2], 10), 'recon:InvalidArgument');
check_error(@() recon.trajectory.radial(5, 10, 'Order', 'random'), 'recon:UnknownValue');
check_error(@() recon.trajectory.radial(5, 10, 'Precision', 'int'), 'recon:UnknownValue');
check_error(@() recon.trajectory.stackofstars(5, 10, 0), 'recon:InvalidSize');
check_error(@() recon.trajectory.stackofstars(5, 10, 2, 'Order', 'random'), 'recon:UnknownValue');
check_error(@() recon.trajectory.spiral(5, 10, NaN), 'recon:InvalidArgument');
check_error(@() recon.trajectory.lissajous(4, 100, 12, 18), 'recon:InvalidArgument', 'common factor 6');
check_error(@() recon.trajectory.lissajous(4, 100, 3, 5), 'recon:InvalidArgument', 'both odd');
check_error(@() recon.trajectory.lissajous(4, 100, 3.5, 4), 'recon:InvalidArgument', 'frequency along x is 3.5');
check_error(@() recon.trajectory.propeller(5, 10, 10), 'recon:InvalidArgument');
check_error(@() recon.trajectory.propeller(5, 9, 40, 'Matrix', 16), 'recon:InvalidArgument', 'at most 8 lines');
check_error(@() recon.trajectory.propeller(5, 4, 16, 'Matrix', 40), 'recon:InvalidArgument', 'at least 40 samples');
check_error(@() recon.trajectory.propeller(5, 4, 16, 'Matrix', 0), 'recon:InvalidSize', 'scan matrix is 0');
check_error(@() recon.trajectory.propeller(5, 4, 16, 'Matrix', 8.5), 'recon:InvalidArgument', 'scan matrix');
check_error(@() recon.trajectory.propeller(5, 4, 16, 'Matrix', [8 8]), 'recon:InvalidArgument', 'Matrix');
check_error(@() recon.trajectory.propeller(5, 4, 16, 'Matrix', []), 'recon:InvalidArgument', ...
    'the scan matrix, one number');
check_error(@() recon.trajectory.cartesian([8 8 8 8]), 'recon:InvalidSize');
check_error(@() recon.phantom.image([0 8]), 'recon:InvalidSize');
check_error(@() recon.phantom.image('8'), 'recon:InvalidArgument');
check_error(@() recon.phantom.image([8 8], 'Shapes', ones(2, 9)), 'recon:SizeMismatch');
check_error(@() recon.phantom.image([8 8], 'Shapes', NaN(2, 10)), 'recon:NotFinite');
check_error(@() recon.phantom.image([8 8], 'Supersample', 0), 'recon:InvalidSize');
check_error(@() recon.phantom.coilmaps([8 8], 0), 'recon:InvalidSize');
check_error(@() recon.phantom.coilmaps([8 8], 1e12), 'recon:OutOfHostMemory');
check_error(@() recon.phantom.kspace(zeros(4, 2), [8 8], 'Coils', {}), 'recon:InvalidArgument');
check_error(@() recon.phantom.noise(zeros(4), 10), 'recon:InvalidArgument');
check_error(@() recon.phantom.noise(ones(4), -1), 'recon:InvalidArgument');
check_error(@() recon.phantom.noise(ones(4), 10, 'Seed', -1), 'recon:InvalidArgument');
check_error(@() recon.metrics(ones(4), ones(5)), 'recon:SizeMismatch');
check_error(@() recon.metrics(ones(4), zeros(4)), 'recon:InvalidArgument');
check_error(@() recon.metrics(ones(4), ones(4), 'Mask', ones(4)), 'recon:InvalidArgument', 'logical');
check_error(@() recon.metrics(ones(4), ones(4), 'Mask', true(3)), 'recon:SizeMismatch');
check_error(@() recon.metrics(ones(4), ones(4), 'Mask', false(4)), 'recon:InvalidSize');
check_error(@() recon.combine({}, [4 4]), 'recon:InvalidArgument');
check_error(@() recon.combine(ones(4, 4, 2, 3)), 'recon:InvalidArgument', 'recon.combine(images, dims)');
check_error(@() recon.combine(ones(4, 4, 2, 3), [4 4 3]), 'recon:SizeMismatch', 'permute(images, [1 2 4 3])');
check_error(@() recon.phantom.noise(ones(4)), 'recon:InvalidArgument', 'recon.phantom.noise(d, snr)');
check_error(@() recon.trajectory.radial(4), 'recon:InvalidArgument', 'too few');
check_error(@() recon.combine(ones(4, 4, 2), [4 4], 'Method', 'sum'), 'recon:UnknownValue');
check_error(@() recon.combine(ones(4, 4, 2), 'large'), 'recon:InvalidArgument');
check_error(@() recon.combine(NaN(4, 4, 2), [4 4]), 'recon:NotFinite');
check_error(@() recon.density(zeros(4, 2), [8 8], 'Method', 'voronoi'), 'recon:UnknownValue');
check_error(@() recon.density(recon.trajectory.cartesian([8 8]), [8 8], 'Method', 'ramp'), 'recon:InvalidArgument', ...
    'pipe-menon');
check_error(@() recon.density(zeros(4, 2), [8 8], 'Change', -1), 'recon:InvalidArgument');
check_error(@() recon.density(), 'recon:InvalidArgument');
end

function list = junk()
list = {[], 'text', '', {}, {1}, struct(), struct('a', {1, 2}), @sin, true, int8(3), uint64(7), NaN, Inf, -1, 0, ...
    1e300, 2^53 + 2, 1i, complex(NaN, 1), sparse(1), sparse([]), ones(3, 0), ones(0, 3, 2), rand(3, 2, 2, 2), ...
    single(2), ['ab'; 'cd'], ones(2, 2, 'int16'), {[]; 'x'}};
end

function anything_anywhere()
% Replaces each argument of each function by values of any kind. A call works, or its error has an identifier of recon.
k = recon.trajectory.radial(5, 12);
d = complex(ones(12, 5, 2), 1);
x = ones(8);
E = recon.Encoding(k, [8 8]);
blades = recon.trajectory.propeller(7, 8, 24);
in_blades = recon.phantom.kspace(blades, [24 24]);
calls = {@recon.fhd, {k, d, [8 8], 'Method', 'auto'}; @recon.grid, {k, d, [8 8], 'Weights', ones(12, 5)}; ...
    @recon.cg, {k, d, [8 8], 'Iterations', 1}; @recon.cg, {k, d, [8 8], 'Lambda', 0}; ...
    @recon.cg, {k, d, [8 8], 'Maps', ones(8, 8, 2)}; @recon.cg, {k, d, [8 8], 'Initial', ones(8, 8, 2)}; ...
    @recon.cg, {k, d, [8 8], 'Prior', 'identity'}; @recon.cg, {k, d, [8 8], 'Reference', x}; ...
    @recon.fbp, {k, d, [8 8], 'Filter', 'hann'}; @recon.density, {k, [8 8], 'Method', 'ramp'}; ...
    @recon.propeller, {blades, in_blades, [24 24], 'Lines', 8}; ...
    @recon.propeller, {blades, in_blades, [24 24], 'Phase', 'none'}; ...
    @recon.propeller, {blades, in_blades, [24 24], 'Rotation', false}; ...
    @recon.density, {k, [8 8], 'Iterations', 2}; @recon.coilmaps, {recon.trajectory.radial(16, 12), complex(ones(12, 16)), [8 8], 'Calibration', 8}; ...
    @recon.combine, {ones(8, 8, 2), [8 8], 'Method', 'rss'}; ...
    @recon.fieldmap, {complex(ones(8, 8, 2), 1), [8 8], [0.002 0.004], 'Smoothing', 1}; ...
    @recon.fieldmap, {complex(ones(8, 8, 2), 1), [8 8], [0.002 0.004], 'Unwrap', true}; ...
    @recon.phasedifference, {complex(ones(8, 8, 2), 1), complex(ones(8, 8, 2), 2), [8 8], 'Venc', 150}; ...
    @recon.phasedifference, {complex(x, 1), complex(x, 2), [8 8], 'Maxwell', ones(1, 4), 'Origin', [1 2 3], ...
        'Steps', eye(3)}; ...
    @recon.metrics, {x, x, 'Mask', true(8)}; @recon.metrics, {x, x, 'Part', 'complex'}; ...
    @recon.Encoding, {k, [8 8], 'FieldMap', x, 'Times', ones(12, 5) / 100}; ...
    @recon.cg, {k, d, [8 8], 'Times', ones(12, 1) / 100, 'DecayMap', x}; ...
    @recon.phantom.kspace, {k, [8 8], 'FieldMap', x, 'Times', ones(12, 5), 'Shapes', [1 0 0 0 0.5 0.5 0.5 0 0 0]}; ...
    @recon.Encoding, {k, [8 8], 'Threads', 1}; @recon.Encoding, {k, [8 8], 'Voxels', ones(3, 2)}; ...
    @recon.Encoding, {k, [8 8], 'GpuArray', false}; @recon.Encoding, {k, [8 8], 'Coils', 1}; ...
    @recon.Encoding, {k, [8 8], 'Frames', 1}; @recon.Encoding, {k, [8 8], 'MemoryLimit', 0}; ...
    @recon.trajectory.radial, {5, 12, 'Order', 'golden'}; @recon.trajectory.radial3d, {5, 12}; ...
    @recon.trajectory.stackofstars, {5, 12, 4, 'Order', 'golden'}; ...
    @recon.trajectory.spiral, {5, 12, 2, 'Density', 1}; @recon.trajectory.rosette, {5, 12, 2, 3}; ...
    @recon.trajectory.lissajous, {5, 12, 2, 3}; ...
    @recon.trajectory.propeller, {5, 3, 12}; @recon.trajectory.cartesian, {[5 4]}; ...
    @recon.phantom.image, {[8 8], 'Shapes', [1 0 0 0 0.5 0.5 1 0 0 0]}; ...
    @recon.phantom.image, {[8 8], 'Supersample', 1}; ...
    @recon.phantom.kspace, {k, [8 8], 'Coils', 2}; @recon.phantom.kspace, {k, [8 8], 'Threads', 1}; ...
    @recon.phantom.coilmaps, {[8 8], 2}; @recon.phantom.noise, {d, 10, 'Seed', 1}; ...
    @(a) E * a, {x}; @(a) E' * a, {d}; @(a) E.normal(a), {x}; @(a) E.rhs(a), {d}; @(a) E.matrix() * a, {x}};
values = junk();
count = 0;
for i = 1:size(calls, 1)
    [f, given] = calls{i, :};
    f(given{:});
    for position = 1:numel(given)
        for j = 1:numel(values)
            changed = given;
            changed{position} = values{j};
            count = count + attempt(@() f(changed{:}), sprintf('%s, argument %d, junk %d', func2str(f), position, j));
        end
    end
end
check(count > 1000, 'most of it is refused');
end

function refused = attempt(f, what)
refused = 0;
try
    f();
catch e
    refused = 1;
    if ~strncmp(e.identifier, 'recon:', 6)
        error('recontest:identifier', '%s: %s (%s)', what, e.identifier, e.message);
    end
end
end

function anything_to_the_mex_file()
commands = {'create', 'destroy', 'plans', 'info', 'set_trajectory', 'set_weights', 'set_maps', 'apply', 'cg', ...
    'density', 'coil_maps', 'q', 'save_q', 'load_q', 'combine', 'field_map', 'phase_difference', 'trajectory', 'phantom_image', ...
    'phantom_kspace', 'phantom_coil_maps', 'add_noise', 'metrics', 'devices', 'version', 'nonsense', 7};
values = junk();
P = recon.internal.Plan(struct('k', zeros(4, 2), 'dims', [8 8], 'precision', 'double'), struct());
values = [values, {P.id, 'forward', 'double', [8 8], [4 1], ones(8), struct('precision', 'double', 'dims', [8 8])}];
before = rand('state'); %#ok<RAND>
rand('state', 1); %#ok<RAND>
for i = 1:6000
    given = values(ceil(rand(1, floor(7 * rand())) * numel(values)));
    command = commands{ceil(rand() * numel(commands))};
    if strcmp(command, 'destroy') || any(cellfun(@(v) isequal(v, 1e300), given)) && strcmp(command, 'create')
        continue
    end
    attempt(@() recon_mex(command, given{:}), sprintf('%s with %d arguments', num2str(command), numel(given)));
end
rand('state', before); %#ok<RAND>
check_error(@() recon_mex(), 'recon:InvalidArgument');
check(isequal(size(recon_mex('apply', P.id, 'forward', ones(8), [4 1], '')), [4 1]), 'the plan still works');
end
