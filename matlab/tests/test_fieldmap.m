function tests = test_fieldmap()
%TEST_FIELDMAP  Field maps of images whose off-resonance is known, wraps, and what is refused.
tests = {@maps_are_near_the_truth, @sizes_and_classes, @wraps_are_told, @decay_is_found, @fieldmap_refuses};
end

function [images, f, inside] = object(reach, times, coils, level)
% Images of a disk with a smooth field of about +-reach Hz, and noise of this level.
n = [64 60];
[x, y] = ndgrid(((0:n(1) - 1) - 32) / 64, ((0:n(2) - 1) - 30) / 60);
f = reach * sin(2 * pi * (x * (1 + rand()) + y * rand()) + 6 * rand());
inside = x.^2 + y.^2 < 0.4^2;
images = zeros([n coils numel(times)]);
for c = 1:coils
    s = exp(-2 * ((x - 0.3 * cos(c)).^2 + (y - 0.3 * sin(c)).^2) + 2i * pi * (c * x + rand()));
    for k = 1:numel(times)
        noise = level * (randn(n) + 1i * randn(n));
        images(:, :, c, k) = inside .* s .* exp(-(20 + 2i * pi * f) * times(k)) + noise;
    end
end
if coils == 1
    images = reshape(images, [n numel(times)]);
end
end

function maps_are_near_the_truth()
times = [0.004 0.0063];
for coils = [1 4]
    [images, f, inside] = object(60, times, coils, 0.02);
    map = recon.fieldmap(images, [64 60], times);
    e = map(inside) - f(inside);
    check(isreal(map) && norm(e) / sqrt(numel(e)) < 3, sprintf('%g Hz with %d coils', norm(e) / sqrt(numel(e)), coils));
    check(all(isfinite(map(:))), 'the map is filled');
end
end

function sizes_and_classes()
times = [0.004 0.0063];
[images, ~, inside] = object(60, times, 1, 0);
map = recon.fieldmap(images, [64 60], times, 'Smoothing', 0);
check(isa(map, 'double') && isequal(size(map), [64 60]), 'double');
check(isa(recon.fieldmap(single(images), [64 60], times), 'single'), 'single');
same = recon.fieldmap(reshape(images, [64 60 1 2]), [64 60], single(times), 'Smoothing', 0);
check_close(same(inside), map(inside), 1e-5, 'one coil may have its dimension');
volume = repmat(reshape(images, [64 60 1 2]), [1 1 3 1]);
in3d = recon.fieldmap(volume, [64 60 3], times, 'Smoothing', 0);
check(isequal(size(in3d), [64 60 3]), '3D');
slice = in3d(:, :, 2);
check_close(slice(inside), map(inside), 1e-10, 'slices alike');
check(isequal(recon.fieldmap(images, [64 60], times, 'Threads', 1), recon.fieldmap(images, [64 60], times, ...
    'Threads', 3)), 'the same bits for any number of threads');
end

function wraps_are_told()
times = [0.004 0.0063];
[images, f, inside] = object(0, times, 2, 0.01);
f = f + repmat(((0:63).' - 32) * 10, 1, 60);
images = images .* exp(-2i * pi * f .* reshape(times, [1 1 1 2]));
lastwarn('', '');
[text, found] = evalc_of(images, times, true);
[message, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Wraps') && ~isempty(strfind(message, '217.4 Hz')), [text message]); %#ok<STREMP>
map = found{1};
report = found{3};
check(report.unwrapped > 100 && report.unresolved == 0 && abs(report.limit - 217.39) < 0.01, 'the report tells it');
e = map(inside) - f(inside);
check(norm(e) / sqrt(numel(e)) < 6, sprintf('unwrapped: %g Hz', norm(e) / sqrt(numel(e))));
lastwarn('', '');
[~, found] = evalc_of(images, times, false);
[message, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Wraps') && ~isempty(strfind(message, 'not unwrapped')), message); %#ok<STREMP>
check(found{3}.unwrapped == 0 && found{3}.unresolved == found{3}.jumps, 'nothing was unwrapped');
end

function [text, found] = evalc_of(images, times, unwrap)
found = cell(1, 3);
text = evalc('[found{:}] = recon.fieldmap(images, [64 60], times, ''Unwrap'', unwrap);');
end

function decay_is_found()
times = [0.004 0.012 0.02];
[images, ~, inside] = object(20, times, 3, 0.005);
[~, decay, report] = recon.fieldmap(images, [64 60], times);
check(all(decay(:) >= 0) && abs(mean(decay(inside)) - 20) < 0.5, sprintf('%g 1/s', mean(decay(inside))));
check(abs(report.signal - mean(inside(:))) < 0.1 && report.change > 0, 'the report has signal and change');
end

function fieldmap_refuses()
times = [0.004 0.006];
images = complex(ones(8, 6, 2), 1);
check_error(@() recon.fieldmap(images, [8 6]), 'recon:InvalidArgument', 'recon.fieldmap');
check_error(@() recon.fieldmap(images, [8 6], 1000 * times), 'recon:InvalidArgument', 'milliseconds');
check_error(@() recon.fieldmap(images, [8 6], fliplr(times)), 'recon:InvalidArgument', 'increasing');
check_error(@() recon.fieldmap(images(:, :, 1), [8 6], 0.004), 'recon:InvalidSize', 'two echoes');
check_error(@() recon.fieldmap(abs(images), [8 6], times), 'recon:InvalidArgument', 'magnitudes');
check_error(@() recon.fieldmap(0 * images, [8 6], times), 'recon:InvalidArgument', '0 everywhere');
check_error(@() recon.fieldmap(NaN * images, [8 6], times), 'recon:NotFinite', 'echo 0');
check_error(@() recon.fieldmap(images, [6 8], times), 'recon:SizeMismatch', 'permute(images');
check_error(@() recon.fieldmap(images, [8 6], [times 0.01]), 'recon:SizeMismatch', 'echo times');
check_error(@() recon.fieldmap(images, [8 6], times.'*1i), 'recon:InvalidArgument', 'echo times');
check_error(@() recon.fieldmap(images, [8 6], times, 'Smoothing', -1), 'recon:InvalidArgument', 'smoothing');
check_error(@() recon.fieldmap(images, [8 6], times, 'Threshold', 1), 'recon:InvalidArgument', 'threshold');
check_error(@() recon.fieldmap(images, [8 6], times, 'Unwrap', 2), 'recon:InvalidArgument', 'Unwrap');
check_error(@() recon.fieldmap(images, [8 6], times, 'Smooth', 1), 'recon:UnknownOption', 'Smoothing');
check_error(@() recon.fieldmap(int16(real(images)), [8 6], times), 'recon:InvalidArgument', 'int16');
end
