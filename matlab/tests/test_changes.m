function tests = test_changes()
%TEST_CHANGES  Another trajectory, other weights and other maps for an operator: it is then as a new one.
tests = {@as_a_new_operator, @copies_follow, @other_shapes, @maps_and_weights, @errors_change_nothing, ...
    @from_a_progress_function, @warnings_are_given, @nothing_grows};
end

function same(E, F, what)
% Both operators give the same bits, and describe themselves alike.
d = complex(rand([E.sampleSize, E.coils, 1]), rand([E.sampleSize, E.coils, 1]));
check(isequal(E.sampleSize, F.sampleSize) && isequal(size(E), size(F)), [what ': sizes']);
x = E' * d;
check(isequal(x, F' * d), [what ': the adjoint']);
check(isequal(E * x, F * x), [what ': the product']);
check(isequal(E.rhs(d), F.rhs(d)), [what ': the right-hand side']);
check(isequal(E.normal(x), F.normal(x)), [what ': normal']);
check(isequal(recon.cg(E, d, 'Iterations', 3), recon.cg(F, d, 'Iterations', 3)), [what ': cg']);
check(isequal(recon.grid(E, d), recon.grid(F, d)), [what ': grid']);
check(isequal(recon.density(E, 'Method', 'jackson'), recon.density(F, 'Method', 'jackson')), [what ': density']);
end

function as_a_new_operator()
for precision = {'single', 'double'}
    E = recon.Encoding(recon.trajectory.radial(30, 40), [24 22], 'Precision', precision{1});
    E * ones(24, 22);
    k = rand(40, 30, 2) - 0.5;
    E.settrajectory(k);
    same(E, recon.Encoding(k, [24 22], 'Precision', precision{1}), precision{1});
    % A trajectory of the other class is converted.
    E.settrajectory(single(k));
    same(E, recon.Encoding(single(k), [24 22], 'Precision', precision{1}), ['single k, ' precision{1}]);
end
k = rand(300, 3) - 0.5;
E = recon.Encoding(rand(200, 3) - 0.5, [8 9 10], 'Method', 'exact', 'Basis', 'box');
E.settrajectory(k, 'Weights', 'jackson');
same(E, recon.Encoding(k, [8 9 10], 'Method', 'exact', 'Basis', 'box', 'Weights', 'jackson'), 'exact');
voxels = 10 * rand(17, 2);
k = rand(60, 2) - 0.5;
E = recon.Encoding(rand(50, 2) - 0.5, [10 10], 'Voxels', voxels);
E.settrajectory(k);
y = rand(60, 1);
F = recon.Encoding(k, [10 10], 'Voxels', voxels);
check(isequal(E' * y, F' * y), 'a list of voxels');
end

function copies_follow()
E = recon.Encoding(rand(50, 2) - 0.5, [8 8]);
F = E;
A = E';
M = E.matrix();
k = rand(70, 2) - 0.5;
E.settrajectory(k);
new = recon.Encoding(k, [8 8]);
y = rand(70, 1);
check(isequal(A * y, new' * y) && isequal(F' * y, new' * y), 'copies');
check(isequal(size(M), [70 64]) && isequal(size(A), [64 70]), 'their sizes');
check(isequal(M * ones(64, 1), reshape(new * ones(8), [], 1)), 'the matrix');
end

function other_shapes()
E = recon.Encoding(rand(50, 2) - 0.5, [8 8], 'Coils', 2);
k = recon.trajectory.radial(6, 16);
E.settrajectory(k);
y = E * ones(8, 8, 2);
check(isequal(size(y), [16 6 2]), 'readout, spokes, coils');
E.settrajectory(complex(k(:, :, 1), k(:, :, 2)));
check(isequal(E * ones(8, 8, 2), y), 'kx + 1i*ky');
E.settrajectory(reshape(k, [], 2));
check(isequal(size(E * ones(8, 8, 2)), [96 2]), 'samples, coils');
end

function maps_and_weights()
k = recon.trajectory.radial(20, 32);
maps = recon.phantom.coilmaps([16 16], 3);
other = maps(:, :, [2 3 1]);
E = recon.Encoding(k, [], 'Maps', maps, 'Weights', 'ramp');
E.setmaps(other);
same(E, recon.Encoding(k, [], 'Maps', other, 'Weights', 'ramp'), 'maps');
w = rand(32, 20) + 0.5;
E.setweights(w);
same(E, recon.Encoding(k, [], 'Maps', other, 'Weights', w), 'weights');
E.setweights('jackson');
same(E, recon.Encoding(k, [], 'Maps', other, 'Weights', 'jackson'), 'weights by their name');
E.setweights([]);
same(E, recon.Encoding(k, [], 'Maps', other), 'no weights');
k2 = recon.trajectory.radial(24, 32, 'Order', 'golden');
E.settrajectory(k2, 'Weights', 'ramp');
same(E, recon.Encoding(k2, [], 'Maps', other, 'Weights', 'ramp'), 'maps stay');
check_error(@() E.settrajectory(k, 'Maps', maps), 'recon:InvalidArgument', 'density weights');
E.setweights([]);
E.settrajectory(k, 'Maps', maps);
same(E, recon.Encoding(k, [], 'Maps', maps), 'maps are given, weights are not');
end

function errors_change_nothing()
k = recon.trajectory.radial(10, 16);
maps = recon.phantom.coilmaps([12 12], 2);
E = recon.Encoding(k, [12 12], 'Weights', 'ramp');
C = recon.Encoding(k, [], 'Maps', maps);
bad = k;
bad(3) = 7;
check_error(@() E.settrajectory(bad), 'recon:CoordinateOutOfRange', 'sample 2');
bad(3) = NaN;
check_error(@() E.settrajectory(bad), 'recon:NotFinite');
check_error(@() E.settrajectory(rand(5, 3) - 0.5), 'recon:SizeMismatch', '3 dimensions');
check_error(@() E.settrajectory(), 'recon:InvalidArgument', 'E.settrajectory(k)');
check_error(@() E.settrajectory(k, 'Coils', 2), 'recon:UnknownOption', 'Weights, Maps, Times, FieldMap');
check_error(@() E.settrajectory(k, 'Weights', ones(3, 1)), 'recon:SizeMismatch', 'Weights');
check_error(@() E.settrajectory(k, 'Weights', -ones(16, 10)), 'recon:InvalidArgument', 'negative');
check_error(@() E.settrajectory(rand(40, 2) - 0.5, 'Weights', 'ramp'), 'recon:InvalidArgument');
check_error(@() E.settrajectory(k, 'Maps', maps), 'recon:InvalidArgument', 'made without coil maps');
check_error(@() E.setweights(ones(3, 1)), 'recon:SizeMismatch', 'Weights');
check_error(@() E.setweights('smooth'), 'recon:UnknownValue', 'smooth');
check_error(@() E.setmaps(maps), 'recon:InvalidArgument', 'made without coil maps');
check_error(@() C.setmaps(maps(:, :, 1)), 'recon:SizeMismatch', 'Maps');
check_error(@() C.setmaps(NaN(12, 12, 2)), 'recon:NotFinite');
check_error(@() recon_mex('set_weights', E.plan.id, ones(3, 1)), 'recon:SizeMismatch');
check_error(@() recon_mex('set_maps', C.plan.id, ones(3, 1)), 'recon:SizeMismatch');
check_error(@() recon_mex('set_trajectory', E.plan.id, struct()), 'recon:InvalidArgument');
same(E, recon.Encoding(k, [12 12], 'Weights', 'ramp'), 'after errors');
same(C, recon.Encoding(k, [], 'Maps', maps), 'after errors, with maps');
delete(E);
check_error(@() E.settrajectory(k), 'recon:Deleted');
end

function from_a_progress_function()
k = recon.trajectory.radial(20, 24);
other = rand(30, 2) - 0.5;
d = complex(rand(24, 20), rand(24, 20));
E = recon.Encoding(k, [16 16]);
wanted = recon.cg(E, d, 'Iterations', 4);
x = recon.cg(E, d, 'Iterations', 4, 'Progress', @(p) E.settrajectory(other));
check(isequal(x, wanted), 'a solution keeps the trajectory that it began with');
same(E, recon.Encoding(other, [16 16]), 'after the solution');
end

function warnings_are_given()
before = warning('on', 'recon:Extent');
restore = onCleanup(@() warning(before)); %#ok<NASGU>
E = recon.Encoding(recon.trajectory.radial(20, 64), [32 32]);
lastwarn('', '');
text = evalc('E.settrajectory(recon.trajectory.radial(20, 64) / 32);');
[~, last] = lastwarn();
check(strcmp(last, 'recon:Extent') && ~isempty(strfind(text, 'size twice')), 'the extent'); %#ok<STREMP>
lastwarn('', '');
E.settrajectory(recon.trajectory.radial(20, 64));
[~, last] = lastwarn();
check(isempty(last), 'and none for a good one');
end

function nothing_grows()
k = {recon.trajectory.radial(20, 32), rand(500, 2) - 0.5};
maps = recon.phantom.coilmaps([16 16], 2);
E = recon.Encoding(k{1}, [], 'Maps', maps);
before = recon_mex('plans');
for i = 1:200
    E.settrajectory(k{1 + mod(i, 2)}, 'Weights', 'jackson');
    E.setmaps(maps);
    E.setweights([]);
end
check(recon_mex('plans') == before, 'there is one plan');
E.settrajectory(k{1});
F = recon.Encoding(k{1}, [], 'Maps', maps);
found = E.info();
wanted = F.info();
check(found.host_bytes == wanted.host_bytes && found.host_bytes > 0, 'its bytes are those of a new one');
end
