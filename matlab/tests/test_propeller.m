function tests = test_propeller()
%TEST_PROPELLER  Motion of blades, simulated by shapes that are turned and moved, is found and corrected.
tests = {@motion_is_found_and_corrected, @shapes_of_what_is_returned, @options_do_what_they_say, ...
    @least_squares_of_what_is_corrected, @an_operator_in_place_of_k, @blades_that_do_not_agree_are_warned_of, ...
    @refuses};
end

function shapes = head()
% The phantom of Shepp and Logan, and a shape that makes it unlike its mirror images.
shapes = [1 0 0 0 0.69 0.92 1 0 0 0; -0.8 0 -0.0184 0 0.6624 0.874 1 0 0 0
    -0.2 0.22 0 0 0.11 0.31 1 -0.314 0 0; -0.2 -0.22 0 0 0.16 0.41 1 0.314 0 0
    0.1 0 0.35 0 0.21 0.25 1 0 0 0; 0.3 0.3 -0.25 0 0.2 0.08 1 0.6 0 0];
end

function shapes = moved(shapes, n, degrees, voxels)
% Shapes that are turned about the voxel floor(n/2) + 1, and then moved.
x = shapes(:, 2);
y = shapes(:, 3);
shapes(:, 2) = cosd(degrees) * x - sind(degrees) * y + 2 / n * voxels(1);
shapes(:, 3) = sind(degrees) * x + cosd(degrees) * y + 2 / n * voxels(2);
shapes(:, 8) = shapes(:, 8) + pi / 180 * degrees;
end

function s = scan(n, readout, lines, blades, class, degrees, voxels)
% A scan of an object that moves between blades by up to the given degrees and voxels.
s.n = n;
s.k = recon.trajectory.propeller(blades, lines, readout, 'Precision', class);
s.rotation = 2 * degrees * (rand(blades, 1) - 0.5);
s.translation = 2 * voxels * (rand(2, blades) - 0.5);
s.d = complex(zeros(readout, lines, blades, class));
for b = 1:blades
    s.d(:, :, b) = recon.phantom.kspace(reshape(s.k(:, :, b, :), [readout lines 2]), [n n], ...
        'Shapes', moved(head(), n, s.rotation(b), s.translation(:, b)));
end
end

function [turns, moves, turn, move] = errors(s, motion)
% The largest errors in degrees and voxels, except for a motion that all blades share, which is returned.
rest = s.rotation - motion.rotation;
turn = mean(rest);
turns = max(abs(rest - turn));
off = s.translation - motion.translation;
c = cosd(motion.rotation.');
t = sind(motion.rotation.');
seen = [c .* off(1, :) + t .* off(2, :); c .* off(2, :) - t .* off(1, :)];
move = mean(seen, 2);
moves = max(sqrt(sum((seen - repmat(move, 1, size(seen, 2))).^2)));
end

function percent = error_of(image, truth)
scale = truth(:)' * double(image(:)) / norm(double(image(:)))^2;
percent = 100 * norm(scale * double(image(:)) - truth(:)) / norm(truth(:));
end

function motion_is_found_and_corrected()
classes = {'double', 'single'};
for i = 1:2
    n = 128;
    s = scan(n, 160, 24, 16, classes{i}, 10, 5);
    [x, motion] = recon.propeller(s.k, s.d, [n n]);
    [turns, moves, turn, move] = errors(s, motion);
    check(turns < 0.3, sprintf('rotations within 0.3 degrees (%g)', turns));
    check(moves < 0.2, sprintf('translations within 0.2 voxels (%g)', moves));
    check(isa(x, classes{i}) && isa(motion.d, classes{i}) && isa(motion.k, classes{i}) && ...
        isa(motion.w, classes{i}), 'classes are those of the data');
    check(motion.lines == 24 && all(motion.correlation > 0.95) && all(motion.correlation <= 1), 'blades agree');
    % The image is that of the object in its mean position.
    truth = recon.phantom.image([n n], 'Shapes', moved(head(), n, turn, move));
    corrected = error_of(abs(x), truth);
    uncorrected = error_of(abs(recon.grid(s.k, s.d, [n n])), truth);
    fprintf('  %s: %.4f degrees, %.4f voxels, %.1f %% corrected, %.1f %% uncorrected\n', classes{i}, turns, moves, ...
        corrected, uncorrected);
    check(corrected < 0.4 * uncorrected, sprintf('the image errs by %g %%, and by %g %% uncorrected', corrected, ...
        uncorrected));
end
end

function shapes_of_what_is_returned()
n = [48 44];
size_of = [64 14 9];
s = scan(48, 64, 14, 9, 'double', 6, 2);
coils = repmat(s.d, [1 1 1 3]);
frames = cat(5, coils, conj(coils), coils);
[x, motion] = recon.propeller(s.k, frames, n);
check(isequal(size(x), [n 3 3]), 'an image of each coil and frame');
check(isequal(size(motion.rotation), [9 3]) && isequal(size(motion.phase), [9 3]) && ...
    isequal(size(motion.correlation), [9 3]) && isequal(size(motion.weight), [9 3]), 'numbers of blades and frames');
check(isequal(size(motion.translation), [2 9 3]), 'two for translations');
check(isequal(size(motion.k), [size_of 3 2]) && isequal(size(motion.w), [size_of 3]), 'k and w');
check(isequal(size(motion.d), size(frames)), 'data');
[one, alone] = recon.propeller(s.k, coils, n);
check(isequal(x(:, :, :, 1), one) && isequal(x(:, :, :, 3), one), 'frames are apart');
check(isequal(motion.rotation(:, 3), alone.rotation) && isequal(motion.translation(:, :, 1), alone.translation), ...
    'and their motion');
check(isequal(size(alone.k), [size_of 2]) && isequal(size(alone.w), size_of), 'of one frame');
check(isequal(squeeze(motion.k(:, :, :, 1, :)), alone.k) && isequal(motion.d(:, :, :, :, 1), alone.d), 'the same scan');
% The same in other shapes.
c = complex(s.k(:, :, :, 1), s.k(:, :, :, 2));
[y, other] = recon.propeller(c, coils, n);
check(isequal(y, one) && isequal(other.k, complex(alone.k(:, :, :, 1), alone.k(:, :, :, 2))), 'a complex k');
[y, other] = recon.propeller(reshape(s.k, 64, 14 * 9, 2), reshape(coils, 64, 14 * 9, 3), n);
check(isequal(y, one) && isequal(other.k, reshape(alone.k, 64, 14 * 9, 2)), 'lines of all blades');
[y, other] = recon.propeller(reshape(s.k, [], 2), reshape(coils, [], 3), n);
check(isequal(y, one) && isequal(size(other.k), [64 * 14 * 9, 2]) && isequal(size(other.w), [64 * 14 * 9, 1]), ...
    'samples');
check(isequal(recon.propeller(s.k, reshape(coils, [], 3), n), one), 'data in columns');
[y, other] = recon.propeller(permute(s.k, [2 1 3 4]), permute(coils, [2 1 3 4]), n);
check_close(y, one, 0.02, 'blades of short lines');
check(other.lines == 64 && max(abs(other.rotation - alone.rotation)) < 0.1, 'and their motion');
% Blades in another order are those of another scan.
order = randperm(9);
[~, other] = recon.propeller(s.k(:, :, order, :), s.d(:, :, order), n);
[~, first] = recon.propeller(s.k, s.d, n);
check(max(abs(other.rotation - first.rotation(order))) < 0.2, 'blades in any order');
% Precision is one thing, the class of the data another.
[y, other] = recon.propeller(s.k, single(coils), n, 'Precision', 'double');
check(isa(y, 'single') && isa(other.d, 'single') && isa(other.k, 'double'), 'single data in double precision');
check_close(y, single(one), 1e-3, 'nearly the same image');
end

function options_do_what_they_say()
% Blades that are left as they are do not agree.
quiet = warning('off', 'recon:Blades');
restore = onCleanup(@() warning(quiet));
n = 64;
s = scan(n, 80, 14, 12, 'double', 8, 3);
% Phases of a radian at most: over the whole circle the search for motion and phase may end elsewhere.
phases = 2 * rand(12, 1) - 1;
d = s.d .* repmat(reshape(exp(1i * phases), 1, 1, []), [80 14 1]);
off = {'Rotation', false, 'Translation', false, 'Phase', 'none', 'Weighting', false};
[x, motion] = recon.propeller(s.k, d, [n n], off{:});
check(all(motion.rotation == 0) && all(motion.translation(:) == 0) && all(motion.phase == 0) && ...
    all(motion.weight == 1), 'nothing is corrected');
check(isequal(motion.k, s.k) && isequal(motion.d, d), 'the scan is as it was');
check_close(x, recon.grid(s.k, d, [n n], 'Weights', motion.w), 1e-4, 'plain gridding with the same weights');
check_close(x, recon.grid(s.k, d, [n n]), 0.1, 'plain gridding, whose weights have fewer iterations');
[~, motion] = recon.propeller(s.k, d, [n n], 'Rotation', 0, 'Phase', 'constant');
check(all(motion.rotation == 0) && any(motion.translation(:)), 'translations alone');
[~, motion] = recon.propeller(s.k, d, [n n], 'phase', 'constant', 'Lines', 14);
[turns, moves] = errors(s, motion);
check(turns < 0.5 && moves < 0.3, sprintf('constant phases and motion (%g degrees, %g voxels)', turns, moves));
rest = exp(1i * (motion.phase - phases));
check(max(abs(angle(rest * conj(mean(rest))))) < 0.2, 'and the phases, but for one of all');
% A blade that saw something else counts less.
d(:, :, 5) = recon.phantom.kspace(reshape(s.k(:, :, 5, :), [80 14 2]), [n n], ...
    'Shapes', [1 0.1 0.2 0 0.4 0.5 1 0.3 0 0]);
[~, motion] = recon.propeller(s.k, d, [n n]);
[~, least] = min(motion.weight);
check(least == 5 && motion.weight(5) < 0.5, 'the blade that disagrees');
% Maps combine the coils of a constant phase.
S = recon.phantom.coilmaps([n n], 4);
k = recon.trajectory.propeller(12, 14, 80);
coils = recon.phantom.kspace(k, [n n], 'Coils', 4);
x = recon.propeller(k, coils, [n n], 'Maps', S, 'Phase', 'constant', 'Threads', 1, 'Tolerance', 1e-4);
check(isequal(size(x), [n n]), 'one image');
check(isequal(size(recon.propeller(k, cat(5, coils, coils), [], 'Maps', S, 'Phase', 'none')), [n n 2]), 'frames');
end

function least_squares_of_what_is_corrected()
n = 96;
s = scan(n, 128, 18, 18, 'single', 8, 4);
[~, motion] = recon.propeller(s.k, s.d, [n n]);
x = recon.cg(motion.k, motion.d, [n n], 'Weights', motion.w, 'Iterations', 8);
[~, ~, turn, move] = errors(s, motion);
truth = recon.phantom.image([n n], 'Shapes', moved(head(), n, turn, move));
corrected = error_of(abs(x), truth);
uncorrected = error_of(abs(recon.cg(s.k, s.d, [n n], 'Iterations', 8)), truth);
check(corrected < 0.5 * uncorrected, sprintf('%g %%, uncorrected %g %%', corrected, uncorrected));
end

function an_operator_in_place_of_k()
n = [48 44];
s = scan(48, 64, 14, 9, 'double', 6, 2);
before = recon_mex('plans');
x = recon.propeller(s.k, s.d, n);
check(recon_mex('plans') == before, 'no plan is left');
E = recon.Encoding(s.k, n, 'Weights', 'jackson');
check(isequal(recon.propeller(E, s.d), x), 'its weights are not used');
check_error(@() recon.propeller(E', s.d), 'recon:InvalidArgument', 'adjoint');
two = cat(4, s.d, s.d);
check_error(@() recon.propeller(E, two), 'recon:SizeMismatch', '2 coils and 1 frames, the operator 1 and 1');
E = recon.Encoding(s.k, n, 'Coils', 2);
check(isequal(recon.propeller(E, two), recon.propeller(s.k, two, n)), 'of as many coils');
check(isequal(size(E * ones([n 2])), [64 14 9 2]), 'the operator is still there');
check_error(@() recon.propeller(E, cat(5, two, two)), 'recon:SizeMismatch', '2 frames');
end

function [count, last] = warnings_of(f)
lastwarn('', '');
printed = evalc('f();');
[~, last] = lastwarn();
count = numel(regexp(printed, '[Ww]arning: (?!called from)'));
end

function blades_that_do_not_agree_are_warned_of()
k = recon.trajectory.propeller(9, 14, 64);
noise = complex(randn(64, 14, 9), randn(64, 14, 9));
[count, last] = warnings_of(@() recon.propeller(k, noise, [48 48], 'Phase', 'none'));
check(count >= 1 && strcmp(last, 'recon:Blades'), 'noise has no motion');
d = recon.phantom.kspace(k, [48 48], 'Shapes', head());
check(warnings_of(@() recon.propeller(k, d, [48 48])) == 0, 'an object at rest is nothing to warn of');
state = warning('error', 'recon:Blades'); %#ok<CTPCT>
restore = onCleanup(@() warning(state));
before = recon_mex('plans');
check_error(@() recon.propeller(k, noise, [48 48], 'Phase', 'none'), 'recon:Blades', 'disagree');
check(recon_mex('plans') == before, 'where the warning is an error, no plan is left');
end

function refuses()
n = [32 32];
k = recon.trajectory.propeller(9, 10, 40);
d = complex(randn(40, 10, 9), randn(40, 10, 9));
f = @(varargin) @() recon.propeller(k, d, n, varargin{:});
check_error(@() recon.propeller(k), 'recon:InvalidArgument', 'recon.propeller(k, d, dims)');
check_error(@() recon.propeller(k, d), 'recon:InvalidArgument', 'image size');
check_error(f('Weights', 'ramp'), 'recon:InvalidArgument', 'leave out Weights');
check_error(f('Weights', ones(40, 10, 9)), 'recon:InvalidArgument', 'leave out Weights');
check_error(f('Lines', 7), 'recon:InvalidArgument', 'blades of 7 lines');
check_error(f('Lines', 2.5), 'recon:InvalidArgument', 'Lines is 2.5');
check_error(f('Lines', []), 'recon:InvalidArgument', 'one number');
check_error(f('Phase', 'smoth'), 'recon:UnknownValue', 'constant');
check_error(f('Phase', 1), 'recon:InvalidArgument', 'Phase');
check_error(f('Phase', ''), 'recon:InvalidArgument', '''smooth'', ''constant''');
check_error(f('Rotation', 2), 'recon:InvalidArgument', 'true or false');
check_error(f('Translation', 'no'), 'recon:InvalidArgument', 'Translation');
check_error(f('Weighting', []), 'recon:InvalidArgument', 'true or false');
check_error(f('Blades', 9), 'recon:UnknownOption', 'Lines');
check_error(f('Maps', ones([n 1])), 'recon:Unsupported', 'coil maps');
check_error(f('Maps', ones([n 2]), 'Phase', 'none'), 'recon:SizeMismatch', '2');
check_error(f('Frames', 2), 'recon:SizeMismatch', 'leave out Coils and Frames');
check_error(f('Voxels', rand(4, 2)), 'recon:Unsupported', 'list');
check_error(f('GpuArray', true), 'recon:Unsupported');
bad = d;
bad(7) = NaN;
check_error(@() recon.propeller(k, bad, n), 'recon:NotFinite', 'count from 0');
check_error(@() recon.propeller(recon.trajectory.radial(9, 40), d(:, 1, :), n), 'recon:SizeMismatch');
check_error(@() recon.propeller(recon.trajectory.radial(9, 40), squeeze(d(:, 1, :)), n), 'recon:InvalidArgument', ...
    'PROPELLER');
check_error(@() recon.propeller(recon.trajectory.radial3d(9, 40), squeeze(d(:, 1, :)), [8 8 8]), ...
    'recon:Unsupported', 'slices');
end
