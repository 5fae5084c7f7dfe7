function tests = test_phasedifference()
%TEST_PHASEDIFFERENCE  Differences of phases and velocities, compared with MATLAB's own arithmetic.
tests = {@phases_are_those_of_the_sum, @velocities_and_wraps, @concomitant_fields, @phasedifference_refuses};
end

function array = random(sizes)
array = complex(randn(sizes), randn(sizes));
end

function phases_are_those_of_the_sum()
n = [7 5];
for class_name = {'double', 'single'}
    a = cast(random([n 3 2]), class_name{1});
    b = cast(random([n 3 2]), class_name{1});
    warning('off', 'recon:Wraps');
    restore = onCleanup(@() warning('on', 'recon:Wraps'));
    p = recon.phasedifference(a, b, n);
    products = double(a) .* conj(double(b));
    expected = reshape(angle(sum(products, 3)), [n 2]);
    check(isa(p, class_name{1}) && isreal(p) && isequal(size(p), [n 2]), 'class and size');
    % The phase of a sum that is small by chance has a larger error.
    deviation = abs(exp(1i * double(p)) - exp(1i * expected)) .* reshape(abs(sum(products, 3)), [n 2]);
    check(all(deviation(:) < 5 * eps(class_name{1}) * reshape(sum(abs(products), 3), [], 1)), 'phases');
    check(isequal(recon.phasedifference(reshape(a, [35 3 2]), b, n), p), 'voxels in a column');
    % A single coil without a dimension, in 3D.
    c = cast(random([4 3 5]), class_name{1});
    d = cast(random([4 3 5]), class_name{1});
    q = recon.phasedifference(c, d, [4 3 5]);
    check(isequal(size(q), [4 3 5]), '3D');
    check(max(abs(exp(1i * double(q(:))) - exp(1i * angle(double(c(:)) .* conj(double(d(:))))))) < ...
        10 * eps(class_name{1}), 'one coil');
    clear restore
end
check(isequal(recon.phasedifference(zeros(2), ones(2), [2 2]), zeros(2)), 'no signal');
end

function velocities_and_wraps()
v = repmat(linspace(-140, 140, 32).', 1, 24);
maps = random([32 24 4]);
reference = maps;
images = maps .* repmat(exp(1i * pi * v / 150), [1 1 4]);
lastwarn('', '');
check_close(recon.phasedifference(images, reference, [32 24], 'Venc', 150), v, 1e-12, 'velocities');
[~, identifier] = lastwarn();
check(isempty(identifier), 'no warning within the range');
images = maps .* repmat(exp(1i * pi * v / 75), [1 1 4]);
evalc('wrapped = recon.phasedifference(images, reference, [32 24], ''Venc'', 75);');
[message, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Wraps') && ~isempty(strfind(message, 'venc, 75')), message); %#ok<STREMP>
check_close(wrapped, v - 150 * round(v / 150), 1e-9, 'wrapped velocities');
end

function concomitant_fields()
n = [9 8 3];
c = [3 -2 5 1.5];
origin = [-100 -80 30];
steps = [20 2 0; -3 18 4; 1 0 25];
[i, j, k] = ndgrid(0:n(1) - 1, 0:n(2) - 1, 0:n(3) - 1);
r = 1e-3 * (repmat(origin, numel(i), 1) + [i(:), j(:), k(:)] * steps.');
x = r(:, 1);
y = r(:, 2);
z = r(:, 3);
phi = 2 * pi * reshape(c(1) * z.^2 + c(2) * (x.^2 + y.^2) + c(3) * x .* z + c(4) * y .* z, n);
v = 100 * rand(n);
reference = random(n);
images = reference .* exp(1i * (pi * v / 150 - phi));
o = {'Venc', 150, 'Maxwell', c, 'Origin', origin, 'Steps', steps};
check_close(recon.phasedifference(images, reference, n, o{:}), v, 1e-12, 'corrected velocities');
check(max(abs(phi(:))) > 0.3, 'fields that matter');
end

function phasedifference_refuses()
n = [8 6];
a = random([n 2]);
f = @(varargin) @() recon.phasedifference(a, a, n, varargin{:});
check_error(@() recon.phasedifference(a, a), 'recon:InvalidArgument', 'recon.phasedifference(images, reference, dims)');
check_error(@() recon.phasedifference(a, a(:, :, 1), n), 'recon:SizeMismatch', 'same size');
check_error(@() recon.phasedifference(a, single(a), n), 'recon:InvalidArgument', 'single');
check_error(@() recon.phasedifference(abs(a), abs(a), n), 'recon:InvalidArgument', 'no phase');
check_error(@() recon.phasedifference(a, NaN * a, n), 'recon:NotFinite', 'reference');
check_error(f('Venc', 0), 'recon:InvalidArgument', 'Venc is 0');
check_error(f('Venc', -1), 'recon:InvalidArgument', 'Venc is -1');
check_error(f('Venc', [1 2]), 'recon:InvalidArgument', 'Venc');
check_error(f('Maxwell', ones(1, 4)), 'recon:InvalidArgument', 'belong together');
check_error(f('Origin', [0 0 0]), 'recon:InvalidArgument', 'belong together');
all = @(c, o, s) f('Maxwell', c, 'Origin', o, 'Steps', s);
check_error(all(ones(1, 3), [0 0 0], eye(3)), 'recon:SizeMismatch', 'four coefficients');
check_error(all(ones(1, 4), [0 0], eye(3)), 'recon:SizeMismatch', 'Origin');
check_error(all(ones(1, 4), [0 0 0], eye(2)), 'recon:SizeMismatch', 'Steps');
check_error(all(ones(1, 4), [0 0 3000], eye(3)), 'recon:InvalidArgument', 'mm from the isocentre');
check_error(all([1 Inf 1 1], [0 0 0], eye(3)), 'recon:NotFinite', 'coefficient 1');
end
