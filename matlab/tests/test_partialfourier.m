function tests = test_partialfourier()
%TEST_PARTIALFOURIER  k-space with a missing side, compared with complete k-space.
tests = {@a_missing_side_is_filled, @shapes_and_report, @values_of_a_plain_computation, @an_operator_in_place_of_k, ...
    @a_rough_phase_is_a_warning, @refuses};
end

function [k, d, x] = scan(n, first, class)
% A Cartesian scan of the phantom with a smooth phase, without the lines before the given one, and its image.
[u, v] = ndgrid(((0:n - 1) - floor(n / 2)) / n);
x = recon.phantom.image([n n]) .* exp(1i * (u + 6 * v.^2));
full = fftshift(fftn(ifftshift(x)));
k = cast(cat(3, u(:, first:end), v(:, first:end)), class);
d = cast(full(:, first:end), class);
end

function percent = error_of(image, truth)
percent = 100 * norm(abs(double(image(:))) - abs(truth(:))) / norm(truth(:));
end

function a_missing_side_is_filled()
classes = {'double', 'single'};
for i = 1:2
    [k, d, x] = scan(64, 17, classes{i});
    pocs = recon.partialfourier(k, d, [64 64]);
    homodyne = recon.partialfourier(k, d, [64 64], 'Algorithm', 'homodyne');
    zeros_only = ifftshift(x);
    zeros_only = fftshift(fftn(zeros_only));
    zeros_only(:, 1:16) = 0;
    zeros_only = fftshift(ifftn(ifftshift(zeros_only)));
    errors = [error_of(pocs, x), error_of(homodyne, x), error_of(zeros_only, x)];
    fprintf('  %s: %.2f %% with POCS, %.2f %% with homodyne detection, %.2f %% with zeros\n', classes{i}, errors);
    check(isa(pocs, classes{i}), 'the class of the data');
    check(errors(1) < 0.2 * errors(3) && errors(2) < 0.4 * errors(3), 'errors are smaller than with zeros');
end
end

function shapes_and_report()
[k, d] = scan(40, 11, 'double');
both = cat(4, cat(3, d, 2 * d), cat(3, 1i * d, d), cat(3, d, d));
[x, report] = recon.partialfourier(k, both, [40 40]);
check(isequal(size(x), [40 40 2 3]), 'an image of each coil and frame');
[one, alone] = recon.partialfourier(k, d, [40 40]);
check(isequal(x(:, :, 1, 1), one), 'images are computed one by one');
check(alone.axis == 2 && max(abs(alone.extent - [10 19])) < 1e-9, 'the side');
check(alone.iterations > 3 && alone.iterations <= 20 && alone.change < 2e-3 && alone.residual < 0.1, 'numbers');
check(report.iterations == alone.iterations, 'the largest number');
[~, other] = recon.partialfourier(k, d, [40 40], 'Iterations', 3, 'Change', 0);
check(other.iterations == 3, 'Iterations');
combined = recon.partialfourier(k, both(:, :, :, 1), [40 40], 'Maps', cat(3, ones(40), 2 * ones(40)) / sqrt(5));
check(isequal(size(combined), [40 40]), 'combined by maps');
check_close(combined, sqrt(5) * one, 1e-3, 'and consistent');
end

function values_of_a_plain_computation()
% POCS with fft, for the data of scan: the missing lines are the first ones, and the short side has 9 samples.
n = 40;
[k, d] = scan(n, 12, 'double');
to_image = @(z) fftshift(ifftn(ifftshift(z)));
to_data = @(z) fftshift(fftn(ifftshift(z)));
u = (0:n - 1) - n / 2;
filter = (1 + cos(pi * u / 10)) / 2 .* (abs(u) < 10);
full = [zeros(n, 11), d];
phase = to_image(full .* repmat(filter, n, 1));
phase = phase ./ abs(phase);
x = to_image(full);
for i = 1:6
    z = to_data(abs(x) .* phase);
    z(:, 12:end) = d;
    x = to_image(z);
end
y = recon.partialfourier(k, d, [n n], 'Iterations', 6, 'Change', 0, 'Method', 'exact');
check_close(y, x, 1e-9, 'the image');
end

function an_operator_in_place_of_k()
[k, d] = scan(40, 11, 'double');
E = recon.Encoding(k, [40 40], 'Precision', 'double');
check(isequal(recon.partialfourier(E, d), recon.partialfourier(k, d, [40 40])), 'the same image');
check_error(@() recon.partialfourier(E, cat(3, d, d)), 'recon:SizeMismatch', 'leave out Coils and Frames');
end

function a_rough_phase_is_a_warning()
n = 64;
[k, ~, x] = scan(n, 25, 'double');
[i, j] = ndgrid(1:n);
full = fftshift(fftn(ifftshift(x .* exp(2.5i * sin(1.2 * j) .* cos(0.2 * i)))));
lastwarn('');
[~, report] = recon.partialfourier(k, full(:, 25:end), [n n]);
[text, identifier] = lastwarn();
check(strcmp(identifier, 'recon:PartialFourier') && ~isempty(strfind(text, 'not smooth')), text);
check(report.residual > 0.2, 'the residual');
end

function refuses()
[k, d] = scan(40, 11, 'double');
n = [40 40];
f = @(varargin) @() recon.partialfourier(k, d, n, varargin{:});
check_error(@() recon.partialfourier(k), 'recon:InvalidArgument', 'recon.partialfourier(k, d, dims)');
check_error(f('Algorithm', 'pox'), 'recon:UnknownValue', 'homodyne');
check_error(f('Algorithm', ''), 'recon:InvalidArgument', '''homodyne'' or ''pocs''');
check_error(f('Iterations', 0), 'recon:InvalidArgument', 'iterations');
check_error(f('Iterations', 2.5), 'recon:InvalidArgument', 'Iterations is 2.5');
check_error(f('Change', 1), 'recon:InvalidArgument', 'tolerance');
check_error(f('Lines', 9), 'recon:UnknownOption', 'Algorithm');
check_error(f('Basis', 'box'), 'recon:Unsupported', 'box');
check_error(f('FieldMap', zeros(n), 'Times', zeros(40, 30)), 'recon:Unsupported');
check_error(f('GpuArray', true), 'recon:Unsupported');
[whole, all] = scan(40, 1, 'double');
check_error(@() recon.partialfourier(whole, all, n), 'recon:InvalidArgument', 'no side of k-space is missing');
check_error(@() recon.partialfourier(k(:, 1:2:end, :), d(:, 1:2:end), n), 'recon:InvalidArgument', 'parallel imaging');
d(7) = NaN;
check_error(@() recon.partialfourier(k, d, n), 'recon:NotFinite', 'count from 0');
end
