function quality = propeller(folder)
%PROPELLER  Blades: gridding, conjugate gradients, and a total variation solver around the operator.
%   propeller() simulates a slice of a brain on 8 blades of 18 lines, with noise. The blades leave gaps between them. It
%   reconstructs the image by gridding, by recon.cg, and with a penalty that recon does not have, total variation: a
%   primal-dual iteration of a few lines around the operator E. It writes propeller.png to the current folder, and shows
%   it if there is a display.
%
%   propeller(folder) writes to that folder.
%
%   quality = propeller(...) returns the percent errors: gridding, cg, tv.
%
%   See also radial_coils, spiral, recon.Encoding, recon.cg.
if nargin < 1
    folder = pwd;
end
n = [192, 192];
shapes = brain();
truth = recon.phantom.image(n, 'Shapes', shapes);
k = recon.trajectory.propeller(8, 18, 192);
d = recon.phantom.noise(recon.phantom.kspace(k, n, 'Shapes', shapes), 60);

gridding = recon.grid(k, d, n);
E = recon.Encoding(k, n);
cg = recon.cg(E, d, 'Iterations', 12);
tv = total_variation(E, d, 0.004, 150);

quality = struct('gridding', percent(gridding, truth), 'cg', percent(cg, truth), 'tv', percent(tv, truth));
panels('propeller', folder, {truth, gridding, cg, tv}, {'truth', ...
    sprintf('gridding: %.1f %% error', quality.gridding), ...
    sprintf('conjugate gradients: %.1f %%', quality.cg), ...
    sprintf('total variation: %.1f %%', quality.tv)}, [0, max(truth(:))], @(spot) draw(spot, k));
if nargout < 1
    clear quality
end
end

function x = total_variation(E, d, lambda, iterations)
%TOTAL_VARIATION  Minimises 1/2 |E x - d|^2 / L + lambda TV(x) over x by the iteration of Condat 2013 and Vu 2013.
%   L is the largest eigenvalue of E^H E. E.normal(x) is E' * (E * x), but faster.
b = E' * d;
L = largest_eigenvalue(E, size(b));
b = b / L;
x = b;
dual = zeros([size(x), 2]);
step = 0.9;                          % convergence needs 1 / step - 8 sigma >= 1/2, half the norm of E^H E / L
sigma = (1 / step - 0.5) / 8;
for i = 1:iterations
    gradient = E.normal(x) / L - b;
    next = x - step * (gradient + adjoint_differences(dual));
    dual = dual + sigma * differences(2 * next - x);
    dual = dual ./ max(1, sqrt(sum(abs(dual).^2, 3)) / lambda);
    x = next;
end
end

function L = largest_eigenvalue(E, dims)
x = complex(ones(dims));
for i = 1:15
    x = x / norm(x(:));
    x = E.normal(x);
end
L = 1.02 * norm(x(:));
end

function g = differences(x)
g = cat(3, x([2:end, end], :) - x, x(:, [2:end, end]) - x);
end

function x = adjoint_differences(g)
a = g(:, :, 1);
a(end, :) = 0;
b = g(:, :, 2);
b(:, end) = 0;
x = a([1, 1:end - 1], :) - a + b(:, [1, 1:end - 1]) - b;
x(1, :) = x(1, :) - a(1, :);
x(:, 1) = x(:, 1) - b(:, 1);
end

function draw(spot, k)
x = k(:, :, :, 1);
y = k(:, :, :, 2);
plot(spot, x(:, :), y(:, :), 'k-', 'LineWidth', 0.5);
axis(spot, 'equal');
set(spot, 'XLim', [-0.5, 0.5], 'YLim', [-0.5, 0.5], 'FontSize', 10);
xlabel(spot, 'k_x, cycles per voxel');
end
