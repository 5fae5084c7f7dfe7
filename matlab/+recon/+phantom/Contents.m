% RECON.PHANTOM  Phantoms of ellipses and ellipsoids, with analytic k-space.
%
%   image     - The image of a phantom.
%   kspace    - Its k-space data on a trajectory, with coils.
%   coilmaps  - Sensitivities of coils around the field of view.
%   noise     - Adds complex white Gaussian noise to k-space data.
