function quality = spiral(folder)
%SPIRAL  Spirals: methods of density compensation, and least squares without it.
%   spiral() simulates a slice of a brain on 16 interleaves of a variable-density spiral, with noise. The interleaves
%   leave gaps at high frequencies. It grids the data without density weights, with those of Jackson, and with those of
%   Pipe and Menon. It solves the least squares problem by pcg with E.normal, without weights and with weights.
%   It writes spiral.png to the current folder, and shows it if there is a display.
%
%   spiral(folder) writes to that folder.
%
%   quality = spiral(...) returns the percent errors: none, jackson, pipe_menon, solved.
%
%   See also radial_coils, propeller, recon.density, recon.Encoding.
if nargin < 1
    folder = pwd;
end
n = [192, 192];
shapes = brain();
truth = recon.phantom.image(n, 'Shapes', shapes);
k = recon.trajectory.spiral(16, 2400, 6, 'Density', 1.5);
d = recon.phantom.noise(recon.phantom.kspace(k, n, 'Shapes', shapes), 100);

% Gridding: the sum over samples, each weighted by the volume of k-space that it represents.
none = recon.grid(k, d, n, 'Weights', ones(size(d)));
jackson = recon.grid(k, d, n, 'Weights', 'jackson');
pipe_menon = recon.grid(k, d, n, 'Weights', 'pipe-menon');

% Least squares need no density weights. With weights, pcg converges in fewer iterations, but to an image with more
% noise: samples count more where they are sparse, although all have the same noise.
plain = recon.Encoding(k, n);
weighted = recon.Encoding(k, n, 'Weights', 'pipe-menon');
iterations = 15;
[solved, errors] = solve(plain, d, truth, iterations);
[~, errors_weighted] = solve(weighted, d, truth, iterations);

quality = struct('none', percent(none, truth), 'jackson', percent(jackson, truth), ...
    'pipe_menon', percent(pipe_menon, truth), 'solved', percent(solved, truth));
scaled = {none, jackson, pipe_menon, solved};
for i = 1:numel(scaled)
    q = recon.metrics(abs(scaled{i}), truth, 'Scale', 'best');
    scaled{i} = q.scale * scaled{i};
end
panels('spiral', folder, scaled, { ...
    sprintf('no weights: %.0f %% error', quality.none), ...
    sprintf('Jackson: %.0f %%', quality.jackson), ...
    sprintf('Pipe-Menon: %.0f %%', quality.pipe_menon), ...
    sprintf('pcg, %d iterations: %.0f %%', iterations, quality.solved)}, [0, max(truth(:))], ...
    @(spot) convergence(spot, errors, errors_weighted));
if nargout < 1
    clear quality
end
end

function [image, errors] = solve(E, d, truth, iterations)
% Runs pcg with 1, 2, ... iterations, for the error after each iteration.
normal = @(x) E.normal(x);
b = reshape(E.rhs(d), [], 1);
errors = zeros(1, iterations);
for i = 1:iterations
    [x, ~] = pcg(normal, b, 1e-12, i);
    errors(i) = percent(reshape(x, size(truth)), truth);
end
image = reshape(x, size(truth));
end

function convergence(spot, plain, weighted)
plot(spot, 1:numel(plain), plain, 'k-', 1:numel(weighted), weighted, 'r-', 'LineWidth', 2);
set(spot, 'FontSize', 10, 'XLim', [1, numel(plain)], 'YLim', [0, 65]);
xlabel(spot, 'iterations of pcg');
ylabel(spot, 'error, %');
legend(spot, {'W = 1', 'Pipe-Menon'}, 'Location', 'northeast');
legend(spot, 'boxoff');
end
