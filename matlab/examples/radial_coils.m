function quality = radial_coils(folder)
%RADIAL_COILS  Undersampled radial data of eight coils: gridding, CG-SENSE, CG-SENSE with a prior.
%   radial_coils() simulates a slice of a brain on 36 golden-angle spokes, with noise. Full sampling of its 192 x 192
%   voxels needs eight times this number of spokes. It reconstructs the image in three ways, with coil sensitivity maps
%   estimated from the data. It writes radial_coils.png to the current folder, and shows it if there is a display.
%
%   radial_coils(folder) writes to that folder.
%
%   quality = radial_coils(...) returns the percent errors: gridding, sense, prior.
%
%   See also spiral, propeller, recon.cg, recon.coilmaps.
if nargin < 1
    folder = pwd;
end
n = [192, 192];
coils = 8;
spokes = 36;

% In place of a scanner's data: a trajectory in cycles per voxel, [readout spokes 2], and data, [readout spokes coils].
[shapes, other_contrast] = brain();
k = recon.trajectory.radial(spokes, 2 * n(1), 'Order', 'golden');
d = recon.phantom.kspace(k, n, 'Shapes', shapes, 'Coils', coils);
d = recon.phantom.noise(d, 40);

% 1. Gridding of each coil, then the root sum of squares.
gridding = recon.combine(recon.grid(k, d, n), n);

% 2. CG-SENSE. The operator is created once and used for both solutions.
E = recon.Encoding(k, n, 'Maps', recon.coilmaps(k, d, n));
sense = recon.cg(E, d, 'Iterations', 16);

% 3. With a prior: neighbours have similar values, except where a reference image has a border. The reference has a
% different contrast and no lesions. Its other borders are exactly those of the truth, unlike those of a measured
% reference. Lambda is relative to the mean diagonal of E^H W E.
reference = recon.phantom.image(n, 'Shapes', other_contrast);
prior = recon.cg(E, d, 'Iterations', 40, 'Prior', 'anatomical', 'Reference', reference, 'Edge', 0.05, ...
    'Lambda', 1);

% All three images are the object times the root sum of squares of the sensitivities.
truth = recon.phantom.image(n, 'Shapes', shapes) .* sqrt(sum(abs(recon.phantom.coilmaps(n, coils)).^2, 3));
quality = struct('gridding', percent(gridding, truth), 'sense', percent(sense, truth), 'prior', percent(prior, truth));
panels('radial_coils', folder, {truth, gridding, sense, prior}, {'truth', ...
    sprintf('gridding: %.1f %% error', quality.gridding), ...
    sprintf('CG-SENSE: %.1f %%', quality.sense), ...
    sprintf('CG-SENSE, prior: %.1f %%', quality.prior)}, [0, max(truth(:))]);
if nargout < 1
    clear quality
end
end
