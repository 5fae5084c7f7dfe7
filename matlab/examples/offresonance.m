function quality = offresonance(folder)
%OFFRESONANCE  Spirals of 20 ms in a field that is not homogeneous: with and without the field map.
%   offresonance() simulates a slice of a brain on 8 interleaves of 20 ms, in a field that differs from the centre
%   frequency by up to 110 Hz, with noise. Off-resonance blurs images of long readouts. It reconstructs the image
%   without the field map and with it, each by conjugate gradients. It writes offresonance.png to the current folder,
%   and shows it if there is a display.
%
%   offresonance(folder) writes to that folder.
%
%   quality = offresonance(...) returns the percent errors: without, with.
%
%   See also spiral, recon.cg, recon.Encoding.
if nargin < 1
    folder = pwd;
end
n = [128, 128];
shapes = brain();
truth = recon.phantom.image(n, 'Shapes', shapes);

% In place of a scanner's data: each shot takes 20 ms, 5 microseconds a sample. The object and the field are drawn on
% four times as many voxels as the images have, so that the data are not those of the model that reconstructs them.
k = recon.trajectory.spiral(8, 4000, 8);
t = (0:3999).' * 5e-6;
fine = recon.Encoding(k / 2, 2 * n, 'FieldMap', field(2 * n), 'Times', t);
d = recon.phantom.noise(fine * complex(recon.phantom.image(2 * n, 'Shapes', shapes)) / 4, 100);

% Without the map, and with it: two options more.
f = field(n);
without = recon.cg(k, d, n, 'Iterations', 12);
with = recon.cg(k, d, n, 'Iterations', 12, 'FieldMap', f, 'Times', t);

quality = struct('without', percent(without, truth), 'with', percent(with, truth));
drawn = (f - min(f(:))) / (max(f(:)) - min(f(:))) * max(truth(:));
panels('offresonance', folder, {drawn, truth, without, with}, { ...
    sprintf('field map: %.0f to %.0f Hz', min(f(:)), max(f(:))), ...
    'truth', ...
    sprintf('without the map: %.0f %% error', quality.without), ...
    sprintf('with it: %.1f %%', quality.with)}, [0, max(truth(:))]);
if nargout < 1
    clear quality
end
end

function f = field(n)
% Off-resonance in Hz: what a shim of second order leaves, and air at the front of the head.
[x, y] = ndgrid(2 * ((0:n(1) - 1) - floor(n(1) / 2)) / n(1), 2 * ((0:n(2) - 1) - floor(n(2) / 2)) / n(2));
f = 40 * (x.^2 - y.^2) + 25 * x .* y - 20 + 150 * exp(-(x.^2 + (y - 0.7).^2) / 0.08);
end
