function tests = test_coil_matrices()
%TEST_COIL_MATRICES  Whitening and compression: against the definitions, and what they refuse.
tests = {@noise_is_white, @covariances_and_matrices, @fewer_coils, @dimensions_are_never_guessed, @whiten_refuses, ...
    @compress_refuses, @few_coils_are_warned_of, ...
    @lambda_from_the_noise};
end

function noise_is_white()
A = randn(6) + 1i * randn(6) + 3 * eye(6);
noise = coloured(A, 20000);
classes = {'double', 'single'};
for i = 1:2
    [d, M] = recon.whiten(cast(noise, classes{i}), cast(noise, classes{i}));
    check(isa(d, classes{i}), 'the class is that of the data');
    check_close(d.' * conj(d) / 20000, eye(6), 1e-4, 'the noise itself is white');
    check_close(d.', M * noise.', 1e-5, 'the matrix is what was applied');
end
fresh = recon.whiten(coloured(A, 20000), noise);
check_close(fresh.' * conj(fresh) / 20000, eye(6), 0.1, 'other noise is white');
% Twice the bandwidth, over 0.8.
slow = recon.whiten(noise, noise, 'NoiseDwell', 10, 'Dwell', 5, 'NoiseBandwidth', 0.8);
check_close(slow * sqrt(2.5), recon.whiten(noise, noise), 1e-12, 'variances are those of the data''s bandwidth');
end

function covariances_and_matrices()
A = randn(3) + 1i * randn(3) + 2 * eye(3);
noise = coloured(A, 3000);
C = noise.' * conj(noise) / 3000;
d = randn(5, 4, 3, 2) + 1i * randn(5, 4, 3, 2);
[by_noise, M] = recon.whiten(d, noise);
check_close(recon.whiten(d, [], 'Covariance', C), by_noise, 1e-12, 'a covariance does the same');
check_close(recon.whiten(d, [], 'Matrix', M), by_noise, 1e-12, 'and the matrix');
check_close(M * C * M', eye(3), 1e-10, 'the matrix whitens the covariance');
check_close(reshape(by_noise(2, 3, :, 2), 3, 1), M * reshape(d(2, 3, :, 2), 3, 1), 1e-12, 'each sample of a frame');
% One coil is scaled.
check_close(recon.whiten(d, [], 'Covariance', 4), d / 2, 1e-12, 'one coil');
end

function fewer_coils()
S = randn(500, 3) + 1i * randn(500, 3);
A = randn(3, 8) + 1i * randn(3, 8);
d = S * A;
[c, M, energies] = recon.compress(d, 3);
check(isequal(size(c), [500 3]) && isequal(size(M), [3 8]) && numel(energies) == 8, 'sizes');
check_close(M * M', eye(3), 1e-12, 'orthonormal rows');
check_close(sum(abs(c(:)).^2), sum(abs(d(:)).^2), 1e-12, 'three coils have all energy');
[~, sigma, ~] = svd(d, 'econ');
check_close(energies(1:3).', diag(sigma(1:3, 1:3)).^2 / sum(abs(d(:)).^2), 1e-10, 'energies are singular values');
check_close(c.', M * d.', 1e-12, 'the matrix is what was applied');
check(isequal(size(recon.compress(d, [], 'Energy', 1 - 1e-9)), [500 3]), 'as many as hold the energy');
frames = reshape(d, [25 20 8]);
c3 = recon.compress(cat(4, frames, frames), 2, 'Dim', 3);
check(isequal(size(c3), [25 20 2 2]), 'frames have the same virtual coils');
check_close(reshape(c3(:, :, :, 2), [500 2]), c(:, 1:2), 1e-10, 'and the same numbers');
check(isa(recon.compress(single(d), 2), 'single'), 'single stays single');
maps = randn(8, 9, 8);
check(isequal(size(recon.compress(maps, [], 'Matrix', M, 'Dim', 3)), [8 9 3]), 'maps by the matrix');
end

function dimensions_are_never_guessed()
d = randn(8, 5, 8);
noise = randn(4000, 8);
check_error(@() recon.whiten(d, noise), 'recon:InvalidArgument', 'Dim');
check(isequal(size(recon.whiten(d, noise, 'Dim', 3)), [8 5 8]), 'Dim decides');
check_error(@() recon.whiten(d, noise, 'Dim', 2), 'recon:SizeMismatch', 'dimension 2');
check_error(@() recon.whiten(d, noise, 'Dim', 0), 'recon:InvalidArgument', 'Dim is 0');
check_error(@() recon.compress(d, 2), 'recon:InvalidArgument', '''Dim'', 3');
check_error(@() recon.compress(randn(3, 50), 2), 'recon:InvalidArgument', 'permute(d, [2 1])');
check_error(@() recon.compress(d, 2, 'Dim', 1.5), 'recon:InvalidArgument', 'Dim is 1.5');
check_error(@() recon.compress(randn(8, 5), [], 'Matrix', randn(2, 4)), 'recon:SizeMismatch', '4 coils');
end

function whiten_refuses()
d = randn(50, 3) + 1i * randn(50, 3);
noise = randn(2000, 3);
check_error(@() recon.whiten(d), 'recon:InvalidArgument', 'recon.whiten');
check_error(@() recon.whiten(d, []), 'recon:InvalidArgument', 'either');
check_error(@() recon.whiten(d, noise, 'Covariance', eye(3)), 'recon:InvalidArgument', 'either');
check_error(@() recon.whiten(d, noise(:, 1:2)), 'recon:SizeMismatch', '2 coils');
check_error(@() recon.whiten(d, eye(3)), 'recon:InvalidArgument', 'Covariance');
check_error(@() recon.whiten(d, [], 'Covariance', ones(3)), 'recon:InvalidArgument', 'singular');
check_error(@() recon.whiten(d, [], 'Covariance', eye(3, 2)), 'recon:SizeMismatch', '[coils coils]');
check_error(@() recon.whiten(d, [], 'Covariance', [1 1i; 1i 1]), 'recon:InvalidArgument', 'Hermitian');
check_error(@() recon.whiten(d, [], 'Covariance', eye(3), 'Dwell', 2), 'recon:InvalidArgument', 'goes with noise');
check_error(@() recon.whiten(d, noise, 'Dwell', 2), 'recon:InvalidArgument', 'go together');
check_error(@() recon.whiten(d, noise, 'NoiseBandwidth', 2), 'recon:InvalidArgument', 'bandwidth');
check_error(@() recon.whiten(d, noise, 'NoiseBandwidth', 0), 'recon:InvalidArgument', 'above 0');
check_error(@() recon.whiten(d, noise(1:2, :)), 'recon:InvalidSize', '2 samples');
check_error(@() recon.whiten(int16(real(d)), noise), 'recon:InvalidArgument', 'int16');
check_error(@() recon.whiten(d, noise * NaN), 'recon:NotFinite', 'noise');
check_error(@() recon.whiten(d, noise, 'Dims', 2), 'recon:UnknownOption', 'Dims');
lastwarn('', '');
evalc('recon.whiten(d, noise(1:300, :));');
[~, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Noise'), 'a short noise scan is warned of');
end

function compress_refuses()
d = randn(50, 3);
check_error(@() recon.compress(d), 'recon:InvalidArgument', 'recon.compress');
check_error(@() recon.compress(d, []), 'recon:InvalidArgument', 'either');
check_error(@() recon.compress(d, 2, 'Energy', 0.9), 'recon:InvalidArgument', 'either');
check_error(@() recon.compress(d, 0.9), 'recon:InvalidArgument', '''Energy'', 0.9');
check_error(@() recon.compress(d, 0), 'recon:InvalidSize', 'at least one');
check_error(@() recon.compress(d, 4), 'recon:InvalidSize', '4 virtual coils of 3');
check_error(@() recon.compress(d, 2.5), 'recon:InvalidArgument', 'virtual coils');
check_error(@() recon.compress(d, [], 'Energy', 1.5), 'recon:InvalidArgument', '1.5');
check_error(@() recon.compress(d, [], 'Energy', 0), 'recon:InvalidArgument', 'Energy is 0');
check_error(@() recon.compress(0 * d, 2), 'recon:InvalidArgument', 'all data are 0');
check_error(@() recon.compress(d * Inf, 2), 'recon:NotFinite', 'number');
end

function lambda_from_the_noise()
n = [48 48];
S = recon.phantom.coilmaps(n, 4);
k = recon.trajectory.radial(20, 96, 'Order', 'golden');
clean = recon.phantom.kspace(k, n, 'Coils', 4);
[d, level] = recon.phantom.noise(clean, 4);
[x, report] = recon.cg(k, d, n, 'Maps', S, 'NoiseLevel', level, 'Iterations', 20);
E = recon.Encoding(k, n, 'Maps', S);
r = E * x - d;
check(abs(norm(r(:))^2 / numel(r) / level^2 - 1) < 0.1, 'the image is as far from the data as the noise');
same = recon.cg(k, d, n, 'Maps', S, 'Lambda', report.lambda, 'LambdaUnit', 'absolute', 'Iterations', 20);
check(isequal(same, x), 'the report has lambda');
bad = @(varargin) recon.cg(k, d, n, 'Maps', S, varargin{:});
lastwarn('', '');
evalc('bad(''NoiseLevel'', 2 * level, ''Iterations'', 20);');
[~, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Noise'), 'a level that does not fit the data is warned of');
check_error(@() bad('NoiseLevel', level, 'Lambda', 1), 'recon:InvalidArgument', 'give only one');
check_error(@() bad('NoiseLevel', level / 100), 'recon:InvalidArgument', 'too low');
check_error(@() bad('NoiseLevel', [1 2]), 'recon:InvalidArgument', 'NoiseLevel');
check_error(@() bad('NoiseLevel', level, 'Weights', 'ramp'), 'recon:Unsupported', 'without density weights');
end

function few_coils_are_warned_of()
lastwarn('', '');
evalc('recon.compress(randn(50, 6), 2);');
[~, identifier] = lastwarn();
check(strcmp(identifier, 'recon:Compression'), 'energy that is lost is warned of');
end

function noise = coloured(A, samples)
n = size(A, 1);
noise = (randn(samples, n) + 1i * randn(samples, n)) / sqrt(2) * A.';
end
