function quality = realtime(folder)
%REALTIME  A moving object on golden-angle spokes of eight coils: sliding windows by gridding and by warm CG-SENSE.
%   realtime() simulates a beating heart on 194 golden-angle spokes, with noise. Each spoke sees the object of its time.
%   An image is made of each window of 34 spokes, and the next window begins 5 spokes later. One operator is given the
%   trajectory of each window in turn. Each solution of CG-SENSE starts from the previous one, and is compared with a
%   solution from zeros that ends at the same residual. It writes realtime.png to the current folder, and shows it if
%   there is a display.
%
%   realtime(folder) writes to that folder.
%
%   quality = realtime(...) returns means over all frames but the first: percent errors gridding, cold, warm; numbers of
%   iterations cold_iterations, warm_iterations. And median seconds of a frame: gridding_seconds, warm_seconds.
%
%   See also radial_coils, recon.Encoding, recon.cg.
if nargin < 1
    folder = pwd;
end
n = [192, 192];
coils = 8;
window = 34;
step = 5;
frames = 33;
spokes = window + (frames - 1) * step;

% In place of a scanner's data: a trajectory in cycles per voxel, [readout spokes 2], and data, [readout spokes coils].
% A beat takes 160 spokes.
k = recon.trajectory.radial(spokes, 2 * n(1), 'Order', 'golden');
d = zeros(2 * n(1), spokes, coils);
for s = 1:spokes
    d(:, s, :) = recon.phantom.kspace(k(:, s, :), n, 'Shapes', heart(s / 160), 'Coils', coils);
end
d = single(recon.phantom.noise(d, 40));

% Coil maps of all spokes. The operators are made once, for the first window. Windows of a golden-angle series are
% turned copies of one another, so that they all have the same weights.
maps = recon.coilmaps(k, d, n);
first = k(:, 1:window, :);
w = recon.density(first, n, 'Method', 'ramp');
G = recon.Encoding(first, n, 'Maps', maps, 'Weights', w, 'Precision', 'single');
E = recon.Encoding(first, n, 'Maps', maps, 'Precision', 'single');
stop = {'Iterations', 50, 'Residual', 0.002};
warm = [];
seconds = zeros(frames, 2);
errors = zeros(frames, 3);
iterations = zeros(frames, 2);
for i = 1:frames
    own = (i - 1) * step + (1:window);
    ki = k(:, own, :);
    di = d(:, own, :);

    % 1. Gridding of all coils, combined by the maps.
    started = tic();
    G.settrajectory(ki, 'Weights', w);
    gridding = recon.grid(G, di);
    seconds(i, 1) = toc(started);

    % 2. CG-SENSE from the previous image.
    started = tic();
    E.settrajectory(ki);
    from = {};
    if ~isempty(warm)
        from = {'Initial', warm};
    end
    [warm, report] = recon.cg(E, di, stop{:}, from{:});
    seconds(i, 2) = toc(started);

    % 3. The same from zeros.
    [cold, cold_report] = recon.cg(E, di, stop{:});
    iterations(i, :) = [cold_report.iterations, report.iterations];

    % The truth is the object in the middle of the window, times the root sum of squares of the sensitivities.
    truth = recon.phantom.image(n, 'Shapes', heart(mean(own) / 160)) .* ...
        sqrt(sum(abs(recon.phantom.coilmaps(n, coils)).^2, 3));
    errors(i, :) = [percent(gridding, truth), percent(cold, truth), percent(warm, truth)];
end

% The first frame starts from zeros in any case.
errors = mean(errors(2:end, :));
iterations = mean(iterations(2:end, :));
seconds = median(seconds(2:end, :));
quality = struct('gridding', errors(1), 'cold', errors(2), 'warm', errors(3), 'cold_iterations', iterations(1), ...
    'warm_iterations', iterations(2), 'gridding_seconds', seconds(1), 'warm_seconds', seconds(2));
panels('realtime', folder, {truth, gridding, cold, warm}, {'truth, last frame', ...
    sprintf('gridding: %.1f %% error', quality.gridding), ...
    sprintf('CG from zeros: %.1f %%, %.1f it.', quality.cold, quality.cold_iterations), ...
    sprintf('warm: %.1f %%, %.1f it.', quality.warm, quality.warm_iterations)}, [0, max(truth(:))]);
if nargout < 1
    clear quality
end
end

function shapes = heart(beats)
% Columns as in recon.phantom.image: density, centre x y z, semi-axes x y z, angles. Densities add up.
squeeze = 0.5 - 0.5 * cos(2 * pi * beats);
wall = 0.26 - 0.03 * squeeze;
inside = 0.19 - 0.08 * squeeze;
x = 0.05 - 0.03 * squeeze;
shapes = [
     0.8,  0,     0,    0, 0.90,   0.68,          1, 0,    0, 0
    -0.6, -0.50,  0.05, 0, 0.28,   0.46,          1, 0.1,  0, 0
    -0.5,  0.56,  0.05, 0, 0.22,   0.42,          1, -0.1, 0, 0
    -0.2,  x,     0.02, 0, wall,   wall * 0.95,   1, 0.5,  0, 0
     0.4,  x,     0.02, 0, inside, inside * 0.9,  1, 0.5,  0, 0
     0.2,  0.00, -0.50, 0, 0.11,   0.09,          1, 0,    0, 0
    ];
end
