function tests = test_offresonance()
%TEST_OFFRESONANCE  Off-resonance and decay: the operator against plain sums of the model, and what is refused.
tests = {@products_are_the_sums_of_the_model, @adjoint_of_the_product, @every_function_takes_a_map, ...
    @with_the_map_is_better, @another_trajectory, @times_of_one_readout, @lists_of_voxels, @q_is_that_of_its_map, ...
    @what_is_told, @warnings_of_times, @phantoms_of_maps, @wrong_maps, @wrong_times, @what_takes_no_map};
end

function [k, t, f, R, n] = scan(n)
% Spirals of 20 ms, and smooth maps of random shape.
if nargin < 1
    n = [22 19];
end
k = recon.trajectory.spiral(5, 300, n(1) / 10);
t = repmat(0.003 + linspace(0, 0.02, 300).', 1, 5);
[x, y] = ndgrid(linspace(-1, 1, n(1)), linspace(-1, 1, n(2)));
p = randn(1, 4);
f = 60 * (sin(2 * x + p(1)) .* cos(2 * y + p(2)) + 0.5 * x .* y) + 20 * p(3);
R = 15 * (1 + sin(3 * x + p(4)) .* cos(y));
end

function A = model(k, t, f, R, n)
% The matrix of the model for one coil, in double precision.
axes = arrayfun(@(m) (0:m - 1) - floor(m / 2), n, 'UniformOutput', false);
[x, y] = ndgrid(axes{:});
r = [x(:), y(:)];
A = exp(-2i * pi * (reshape(double(k), [], 2) * r.' + double(t(:)) * f(:).') - double(t(:)) * R(:).');
end

function products_are_the_sums_of_the_model()
for precision = {'double', 'single'}
    for method = {'exact', 'nufft'}
        [k, t, f, R, n] = scan();
        bound = 1e-12;
        if strcmp(method{1}, 'nufft')
            bound = 1e-5;
        end
        if strcmp(precision{1}, 'single')
            bound = max(bound, 2e-5);
        end
        o = {'Method', method{1}, 'Precision', precision{1}};
        A = model(k, t, f, R, n);
        S = complex(randn([n 3]), randn([n 3]));
        x = complex(randn(n), randn(n));
        y = complex(randn(300, 5, 3), randn(300, 5, 3));
        what = [precision{1} ', ' method{1}];
        E = recon.Encoding(k, n, 'FieldMap', f, 'DecayMap', R, 'Times', t, o{:});
        check_close(E * x, reshape(A * x(:), 300, 5), bound, [what ': E * x']);
        check_close(E' * y(:, :, 1), reshape(A' * reshape(y(:, :, 1), [], 1), n), bound, [what ': E'' * y']);
        M = recon.Encoding(k, [], 'Maps', S, 'FieldMap', f, 'DecayMap', R, 'Times', t, o{:});
        of_coils = reshape(A * (reshape(S, [], 3) .* x(:)), 300, 5, 3);
        check_close(M * x, of_coils, bound, [what ': coils']);
        check_close(M' * y, reshape(sum(conj(reshape(S, [], 3)) .* (A' * reshape(y, [], 3)), 2), n), bound, ...
            [what ': the adjoint of coils']);
        w = rand(300, 5) + 0.1;
        M.setweights(w);
        wanted = reshape(sum(conj(reshape(S, [], 3)) .* (A' * (w(:) .* reshape(of_coils, [], 3))), 2), n);
        check_close(M.normal(x), wanted, 3 * max(bound, 1e-5), [what ': normal']);
        check_close(M.rhs(of_coils), wanted, bound, [what ': rhs']);
        F = recon.Encoding(k, n, 'FieldMap', f, 'Times', t, o{:});
        check_close(F * x, reshape(model(k, t, f, 0 * f, n) * x(:), 300, 5), bound, [what ': no decay']);
        D = recon.Encoding(k, n, 'DecayMap', R, 'Times', t, o{:});
        check_close(D * x, reshape(model(k, t, 0 * f, R, n) * x(:), 300, 5), bound, [what ': decay alone']);
        % Maps and times of the other class are converted.
        G = recon.Encoding(k, n, 'FieldMap', single(f), 'Times', single(t), o{:});
        check(strcmp(G.precision, precision{1}), 'the class of a map does not set the precision');
        check_close(G * x, F * x, 1e-4, [what ': single maps']);
    end
end
end

function adjoint_of_the_product()
[k, t, f, R, n] = scan([24 20]);
S = complex(randn([n 2]), randn([n 2]));
E = recon.Encoding(k, [], 'Maps', S, 'FieldMap', f, 'DecayMap', R, 'Times', t, 'Tolerance', 1e-9);
x = complex(randn(n), randn(n));
y = complex(randn(300, 5, 2), randn(300, 5, 2));
Ex = E * x;
Ey = E' * y;
check(abs(y(:)' * Ex(:) - Ey(:)' * x(:)) < 1e-8 * norm(y(:)) * norm(Ex(:)), 'the two products agree');
Q = E.normal(x);
check(abs(imag(x(:)' * Q(:))) < 1e-8 * real(x(:)' * Q(:)), 'E^H E is Hermitian');
end

function every_function_takes_a_map()
[k, t, f, R, n] = scan();
o = {'FieldMap', f, 'DecayMap', R, 'Times', t, 'Method', 'exact'};
A = model(k, t, f, R, n);
y = complex(randn(300, 5, 2), randn(300, 5, 2));
wanted = reshape(A' * reshape(y, [], 2), [n 2]);
check_close(recon.fhd(k, y, n, o{:}), wanted, 1e-12, 'recon.fhd');
w = recon.density(k, n, 'Method', 'jackson');
with = recon.grid(k, y, n, 'Weights', w, o{:});
weighted = reshape(A' * (w(:) .* reshape(y, [], 2)), [n 2]);
check_close(with / norm(with(:)), weighted / norm(weighted(:)), 1e-10, 'recon.grid');
check_close(recon.grid(k, y, n, 'Weights', 'jackson', o{:}), with, 1e-10, 'weights by their name');
x = recon.cg(k, y, n, 'Iterations', 3, o{:});
E = recon.Encoding(k, n, o{:}, 'Coils', 2);
check_close(recon.cg(E, y, 'Iterations', 3), x, 1e-9, 'recon.cg');
check(isequal(size(recon.coilmaps(k, y, n, 'Calibration', 8, o{:})), [n 2]), 'recon.coilmaps');
check(isequal(size(recon.cg(k, y, n, 'Maps', 'data', 'Iterations', 1, o{:})), n), 'maps from the data');
check(isequal(recon.density(E, 'Method', 'jackson'), w), 'density weights do not depend on the maps');
given = struct('FieldMap', f, 'DecayMap', R, 'Times', t, 'Method', 'exact');
check(isequal(recon.fhd(k, y, n, given), recon.fhd(k, y, n, o{:})), 'a structure of options');
end

function with_the_map_is_better()
n = [48 48];
k = recon.trajectory.spiral(8, 800, 3);
t = 0.02 * (0:799).' / 799;
[x, y] = ndgrid(linspace(-1, 1, 48));
f = 100 * (x.^2 - y.^2 + 0.5 * sin(2 * x + randn())) + 5 * randn();
truth = recon.phantom.image(n);
d = recon.phantom.noise(recon.Encoding(k, n, 'FieldMap', f, 'Times', t, 'Method', 'exact') * complex(truth), 100);
without = recon.metrics(abs(recon.cg(k, d, n)), truth);
with = recon.metrics(abs(recon.cg(k, d, n, 'FieldMap', f, 'Times', t)), truth);
gain = 20 * log10(without.percent_error / with.percent_error);
fprintf('  error without the map %.1f %%, with it %.1f %%\n', without.percent_error, with.percent_error);
check(gain > 10, sprintf('%.1f dB better', gain));
end

function another_trajectory()
[k, t, f, R, n] = scan();
E = recon.Encoding(k, n, 'FieldMap', f, 'DecayMap', R, 'Times', t);
F = E';
other = rand(70, 2) - 0.5;
s = 0.03 * rand(70, 1);
E.settrajectory(other, 'Times', s);
new = recon.Encoding(other, n, 'FieldMap', f, 'DecayMap', R, 'Times', s);
y = complex(randn(70, 1), randn(70, 1));
check(isequal(F * y, new' * y), 'the maps stay');
check_close(E' * y, reshape(model(other, s, f, R, n)' * y, n), 1e-5, 'the model');
E.settrajectory(k, 'Times', t(:, 1), 'FieldMap', -f);
x = complex(randn(n), randn(n));
check_close(E * x, reshape(model(k, t, -f, R, n) * x(:), 300, 5), 1e-5, 'another map');
before = E * x;
check_error(@() E.settrajectory(k), 'recon:InvalidArgument', '''Times''');
check_error(@() E.settrajectory(other, 'Times', t), 'recon:SizeMismatch', 'Times');
check_error(@() E.settrajectory(k, 'Times', t, 'FieldMap', f.'), 'recon:SizeMismatch', 'FieldMap');
check_error(@() E.settrajectory(k, 'Times', t, 'DecayMap', -R - 1), 'recon:InvalidArgument', 'DecayMap');
check(isequal(E * x, before), 'errors change nothing');
P = recon.Encoding(k, n);
check_error(@() P.settrajectory(k, 'Times', t), 'recon:InvalidArgument', 'Times');
check_error(@() P.settrajectory(k, 'Times', t, 'FieldMap', f), 'recon:InvalidArgument', 'FieldMap');
end

function times_of_one_readout()
[k, t, f, ~, n] = scan();
d = complex(randn(300, 5), randn(300, 5));
g = @(t) recon.fhd(k, d, n, 'FieldMap', f, 'Times', t);
check(isequal(g(t(:, 1)), g(t)) && isequal(g(t(:)), g(t)), 'one readout, and a column of all');
check_error(@() g(t(:, 1).'), 'recon:SizeMismatch', 'permute(Times, [2 1])');
check_error(@() g(t(1:5, 1)), 'recon:SizeMismatch', '300 x 1 where all readouts');
check_error(@() g(0.01), 'recon:SizeMismatch', '1 x 1');
% Where another dimension is as long, the readout dimension is ambiguous.
square = rand(20, 20, 2) - 0.5;
y = complex(randn(20), randn(20));
s = (1:20).' / 1000;
check_error(@() recon.fhd(square, y, n, 'FieldMap', f, 'Times', s), 'recon:SizeMismatch', 'repmat(Times, [1 20])');
check_close(recon.fhd(square, y, n, 'FieldMap', f, 'Times', repmat(s, [1 20])), ...
    reshape(model(square, repmat(s, [1 20]), f, 0 * f, n)' * y(:), n), 1e-5, 'its remedy');
end

function lists_of_voxels()
[k, t] = scan();
r = 8 * rand(17, 2) - 4;
f = 100 * randn(17, 1);
x = complex(randn(17, 1), randn(17, 1));
E = recon.Encoding(k, [22 19], 'Voxels', r, 'FieldMap', f, 'Times', t);
A = exp(-2i * pi * (reshape(k, [], 2) * r.' + t(:) * f.'));
check_close(E * x, reshape(A * x, 300, 5), 1e-12, 'a list of voxels');
check_error(@() recon.Encoding(k, [22 19], 'Voxels', r, 'FieldMap', zeros(22, 19), 'Times', t), ...
    'recon:SizeMismatch', 'FieldMap');
end

function q_is_that_of_its_map()
[k, t, f, ~, n] = scan();
E = recon.Encoding(k, n, 'FieldMap', f, 'Times', t, 'Normal', 'toeplitz');
check_error(@() E.q(), 'recon:Unsupported', 'field map');
file = [tempname() '.q'];
cleanup = onCleanup(@() delete(file));
x = complex(randn(n), randn(n));
wanted = E.normal(x);
E.saveq(file);
F = recon.Encoding(k, n, 'FieldMap', f, 'Times', t, 'Normal', 'toeplitz');
F.loadq(file);
check(isequal(F.normal(x), wanted), 'Q of the same map');
G = recon.Encoding(k, n, 'FieldMap', f + 1, 'Times', t, 'Normal', 'toeplitz');
check_error(@() G.loadq(file), 'recon:BadFile', 'field map');
H = recon.Encoding(k, n, 'Normal', 'toeplitz');
check_error(@() H.loadq(file), 'recon:BadFile', 'field map');
end

function what_is_told()
[k, t, f, R, n] = scan();
E = recon.Encoding(k, n, 'FieldMap', f, 'DecayMap', R, 'Times', t, 'Normal', 'toeplitz');
E.normal(ones(n));
s = E.info();
check(s.segments > 1 && s.nodes > 1 && s.error > 0 && s.error <= 1.05e-5, 'segments, nodes and the error');
text = evalc('disp(E)');
check(~isempty(strfind(text, sprintf('%d segments', s.segments))), text); %#ok<STREMP>
check(~isempty(strfind(text, sprintf('E.normal by %d convolutions', s.nodes))), text); %#ok<STREMP>
check(~isempty(strfind(text, 'field map, decay map')), text); %#ok<STREMP>
exact = recon.Encoding(k, n, 'FieldMap', f, 'Times', t, 'Method', 'exact').info();
check(exact.segments == 0, 'exact sums have no segments');
plain = recon.Encoding(k, n);
s = plain.info();
check(s.segments == 0 && s.nodes == 0, 'no map');
check(isempty(strfind(evalc('disp(plain)'), 'map')), 'no map in the text'); %#ok<STREMP>
% The saved arguments are enough to create the operator again.
F = recon.Encoding.loadobj(E.saveobj());
x = complex(randn(n), randn(n));
check(isequal(F * x, E * x), 'made again');
end

function warnings_of_times()
[k, t, f, ~, n] = scan();
d = complex(randn(300, 5, 2), randn(300, 5, 2));
calls = {@(t) recon.Encoding(k, n, 'FieldMap', f / 1000, 'Times', t)
    @(t) recon.cg(k, d, n, 'FieldMap', f / 1000, 'Times', t, 'Maps', 'data', 'Iterations', 1)};
for i = 1:numel(calls)
    call = calls{i};
    lastwarn('', '');
    printed = evalc('call(1000 * t);');
    [text, last] = lastwarn();
    check(strcmp(last, 'recon:Times') && ~isempty(strfind(text, 'ms')), 'milliseconds are warned of'); %#ok<STREMP>
    check(numel(regexp(printed, '[Ww]arning: (?!called from)')) == 1, 'once');
    lastwarn('', '');
    call(t);
    check(isempty(lastwarn()), 'and seconds are not');
end
end

function phantoms_of_maps()
[k, t, f, R, n] = scan([32 32]);
plain = recon.phantom.kspace(k, n, 'Coils', 2);
% Of one frequency and one rate, the model is a factor of each sample.
d = recon.phantom.kspace(k, n, 'Coils', 2, 'FieldMap', 70 * ones(n), 'DecayMap', 30 * ones(n), 'Times', t(:, 1));
check_close(d, plain .* exp(-(2i * pi * 70 + 30) * t), 0.01, 'constant maps');
% Smooth maps against exact sums over a finely drawn image, with the maps between voxels.
fine = 4 * n;
at = @(n) ((0:n - 1) - floor(n / 2)) / n;
[X, Y] = ndgrid(at(fine(1)), at(fine(2)));
draw = @(map) interp2(at(n(2)), at(n(1)).', map, min(Y, max(at(n(2)))), min(X, max(at(n(1)))), 'linear');
E = recon.Encoding(k / 4, fine, 'FieldMap', draw(f), 'DecayMap', draw(R), 'Times', t, 'Method', 'exact');
wanted = E * complex(recon.phantom.image(fine)) / 16;
check_close(recon.phantom.kspace(k, n, 'FieldMap', f, 'DecayMap', R, 'Times', t), wanted, 0.05, 'smooth maps');
check_error(@() recon.phantom.kspace(k, n, 'FieldMap', f(1:31, :), 'Times', t), 'recon:SizeMismatch', 'FieldMap');
check_error(@() recon.phantom.kspace(k, n, 'FieldMap', f), 'recon:InvalidArgument', 'Times');
check_error(@() recon.phantom.kspace(k, n, 'Times', t), 'recon:InvalidArgument', 'FieldMap');
end

function wrong_maps()
[k, t, f, R, n] = scan();
calls = {@(varargin) recon.Encoding(k, n, 'Times', t, varargin{:})
    @(varargin) recon.fhd(k, t, n, 'Times', t, varargin{:})
    @(varargin) recon.grid(k, t, n, 'Times', t, varargin{:})
    @(varargin) recon.cg(k, t, n, 'Times', t, varargin{:})
    @(varargin) recon.phantom.kspace(k, n, 'Times', t, varargin{:})};
bad = f;
bad(7) = NaN;
for i = 1:numel(calls)
    g = calls{i};
    for name = {'FieldMap', 'DecayMap'}
        name = name{1}; %#ok<FXSET>
        check_error(@() g(name, 1i * f), 'recon:InvalidArgument', [name ' is a complex 22 x 19 array']);
        check_error(@() g(name, f(:, 1:18)), 'recon:SizeMismatch', [name ': the size is 22 x 18']);
        check_error(@() g(name, f.'), 'recon:SizeMismatch', ['permute(' name ', [2 1])']);
        check_error(@() g(name, bad), 'recon:NotFinite', [name ': element 7 is NaN']);
        check_error(@() g(name, int16(f)), 'recon:InvalidArgument', name);
        check_error(@() g(name, 'map'), 'recon:InvalidArgument', name);
        check_error(@() g(name, []), 'recon:InvalidArgument', name);
    end
    check_error(@() g('DecayMap', -R - 40), 'recon:InvalidArgument', 'DecayMap: element 1');
    check_error(@() g(), 'recon:InvalidArgument', 'Times was given without a map');
end
check_error(@() recon.Encoding(k, n, 'FieldMap', 1e7 * f, 'Times', t, 'Method', 'nufft'), 'recon:InvalidArgument');
end

function wrong_times()
[k, t, f, ~, n] = scan();
g = @(t) recon.Encoding(k, n, 'FieldMap', f, 'Times', t);
bad = t;
bad(3) = Inf;
check_error(@() g(bad), 'recon:NotFinite', 'Times: element 3 is Inf');
check_error(@() g(complex(t)), 'recon:InvalidArgument', 'Times is a complex');
check_error(@() g(t.'), 'recon:SizeMismatch', 'permute(Times, [2 1])');
check_error(@() g(t(1:10, :)), 'recon:SizeMismatch', 'Times: the size is 10 x 5');
check_error(@() g('late'), 'recon:InvalidArgument', 'Times');
check_error(@() g([]), 'recon:InvalidArgument', 'seconds');
check_error(@() recon.Encoding(k, n, 'FieldMap', f), 'recon:InvalidArgument', 'FieldMap was given without Times');
check_error(@() recon.cg(k, t, n, 'DecayMap', abs(f)), 'recon:InvalidArgument', 'DecayMap was given without Times');
% The MEX file checks again.
plan = struct('k', reshape(k, [], 2), 'dims', n, 'precision', 'double', 'field_map', f, 'times', t);
for name = {'field_map', 'times'}
    changed = plan;
    changed.(name{1}) = 1i * plan.(name{1});
    check_error(@() mex_create(changed), 'recon:InvalidArgument', 'real');
    changed.(name{1}) = plan.(name{1})(1:end - 1);
    check_error(@() mex_create(changed), 'recon:SizeMismatch');
    changed.(name{1}) = [];
    check_error(@() mex_create(changed), 'recon:InvalidArgument');
end
end

function mex_create(geometry)
[~, ~] = recon_mex('create', geometry, struct());
end

function what_takes_no_map()
k = recon.trajectory.radial(20, 32);
n = [16 16];
o = {'FieldMap', ones(n), 'Times', (1:32).' / 1e4};
check_error(@() recon.fbp(k, ones(32, 20), n, o{:}), 'recon:Unsupported', 'leave out FieldMap');
E = recon.Encoding(k, n, o{:});
check_error(@() recon.fbp(E, ones(32, 20)), 'recon:Unsupported', 'leave out FieldMap');
blades = recon.trajectory.propeller(7, 8, 24);
d = recon.phantom.kspace(blades, [24 24]);
check_error(@() recon.propeller(blades, d, [24 24], 'DecayMap', ones(24), 'Times', zeros(24, 8, 7)), ...
    'recon:Unsupported', 'leave out FieldMap');
check_error(@() recon.density(k, n, o{:}), 'recon:UnknownOption', 'FieldMap');
end
