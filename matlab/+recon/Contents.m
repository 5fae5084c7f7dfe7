% RECON  Magnetic resonance images from k-space data on any trajectory.
%
% Reconstruction
%   recon.cg        - Regularised least squares by conjugate gradients (CG-SENSE).
%   recon.grid      - Gridding reconstruction: the density-compensated adjoint.
%   recon.fhd       - The adjoint of the encoding operator: F^H d.
%   recon.fbp       - Filtered backprojection of 2D radial data.
%   recon.propeller - Gridding of PROPELLER blades, with motion correction.
%   recon.partialfourier - Gridding of k-space with a missing side, by POCS or homodyne detection.
%   recon.Encoding  - The encoding operator: E*x, E'*y, E.normal(x), for pcg, lsqr and your code.
%
% Before and after a reconstruction
%   recon.whiten    - Makes the noise of all coils independent with variance 1.
%   recon.compress  - Computes fewer virtual coils that contain most of the signal.
%   recon.density   - Density compensation weights: Pipe-Menon, ramp, Jackson.
%   recon.coilmaps  - Coil sensitivity maps from the data.
%   recon.combine   - Combines the images of the coils into one image.
%   recon.resizeimage - Converts images to the reconstructed matrix of a scan.
%   recon.fieldmap  - A field map, in Hz, from images of two or more echoes.
%   recon.phasedifference - The phase of images minus that of reference images, or the velocity that it encodes.
%   recon.show      - Shows images upright.
%   recon.metrics   - Errors of an image against the truth.
%   recon.devices   - The NVIDIA GPUs that recon can see.
%   recon.version   - The version of the library.
%   recon.build     - Builds the MEX file.
%
% Files
%   recon.read      - Reads k-space or images: ISMRMRD, BART, NIfTI, DICOM, NumPy, MATLAB.
%   recon.write     - Writes images or k-space.
%
% Trajectories (recon.trajectory)
%   cartesian, radial, radial3d, stackofstars, spiral, rosette, lissajous, propeller
%
% Phantoms (recon.phantom)
%   image, kspace, coilmaps, noise
%
% k-space coordinates are in cycles per voxel, from -0.5 to 0.5. k(..., 1) runs along the first dimension of an image.
% Every error has an identifier, for example recon:InvalidArgument. Indices in the library's messages count from 0.
%
% docs/matlab.md has examples, and translations of BART, gpuNUFFT, MIRT and FINUFFT calls into recon calls.
