function [shapes, reference] = brain()
%BRAIN  Ellipses for recon.phantom that look like a slice of a brain. Densities add up where ellipses overlap.
%   [shapes, reference] = brain() also returns the same slice with a different contrast and without the lesions.
%   The order of densities is fat, bone, fluid, grey matter, white matter, nuclei, fold, lesion.
one = contrast([1.00, 0.04, 0.16, 0.55, 0.80, 0.62, 0.38, 1.00]);
other = contrast([0.80, 0.04, 1.00, 0.62, 0.42, 0.50, 0.75, 0.42]);
shapes = one;
reference = other(1:end - 3, :);
end

function shapes = contrast(density)
density = num2cell(density);
[fat, bone, fluid, grey, white, nuclei, fold, lesion] = density{:};
% Columns as in recon.phantom.image: density, centre x y z, semi-axes x y z, angles.
head = [
    fat,          0,     0,    0, 0.72,  0.92,  1, 0, 0, 0
    bone - fat,   0,     0,    0, 0.68,  0.88,  1, 0, 0, 0
    fluid - bone, 0,    -0.01, 0, 0.635, 0.835, 1, 0, 0, 0
    grey - fluid, 0,    -0.01, 0, 0.61,  0.81,  1, 0, 0, 0
    white - grey, 0,    -0.01, 0, 0.52,  0.71,  1, 0, 0, 0
    ];
count = 26;
folds = zeros(count, 10);
for i = 1:count
    % Folds reach from the surface into the white matter, to different depths.
    angle = 2 * pi * (i - 0.5) / count;
    depth = 0.90 - 0.05 * sin(5.3 * i);
    folds(i, :) = [fold - grey, 0.59 * depth * cos(angle), 0.79 * depth * sin(angle) - 0.01, 0, ...
        0.10 + 0.02 * sin(3.1 * i), 0.022, 1, atan2(0.59 * sin(angle), 0.79 * cos(angle)), 0, 0];
end
inside = [
    fluid - white,  -0.10,  0.16, 0, 0.055, 0.22,  1,  0.30, 0, 0
    fluid - white,   0.10,  0.16, 0, 0.055, 0.22,  1, -0.30, 0, 0
    fluid - white,  -0.15, -0.24, 0, 0.045, 0.15,  1, -0.45, 0, 0
    fluid - white,   0.15, -0.24, 0, 0.045, 0.15,  1,  0.45, 0, 0
    nuclei - white, -0.25,  0.02, 0, 0.075, 0.15,  1, -0.20, 0, 0
    nuclei - white,  0.25,  0.02, 0, 0.075, 0.15,  1,  0.20, 0, 0
    fluid - grey,    0,     0.71, 0, 0.013, 0.11,  1,  0,    0, 0
    fluid - grey,    0,    -0.73, 0, 0.013, 0.11,  1,  0,    0, 0
    lesion - white,  0.33,  0.34, 0, 0.035, 0.030, 1,  0,    0, 0
    lesion - white,  0.28,  0.45, 0, 0.018, 0.018, 1,  0,    0, 0
    lesion - white, -0.32, -0.40, 0, 0.022, 0.014, 1,  0.6,  0, 0
    ];
shapes = [head; folds; inside];
end
