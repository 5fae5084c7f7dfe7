% RECON.TRAJECTORY  Trajectories through k-space, in cycles per voxel.
%
%   cartesian  - A fully sampled Cartesian grid.
%   radial     - 2D spokes through the centre, in linear or golden-angle order.
%   radial3d   - 3D spokes at even distances over the sphere.
%   stackofstars - 2D spokes in planes that are stacked along kz.
%   spiral     - 2D spirals from the centre outwards.
%   rosette    - 2D rosettes.
%   lissajous  - A closed 2D Lissajous curve.
%   propeller  - Blades: strips of parallel lines, rotated about the centre.
