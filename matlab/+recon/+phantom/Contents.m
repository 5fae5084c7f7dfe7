% RECON.PHANTOM  Phantoms of ellipses and ellipsoids, with exact k-space data.
%
%   image     - The image of a phantom.
%   kspace    - Its k-space data on a trajectory, with coils.
%   coilmaps  - Sensitivity maps of coils around the field of view.
%   noise     - Adds complex white Gaussian noise to k-space data.
