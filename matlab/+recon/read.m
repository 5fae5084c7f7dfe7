function varargout = read(file, varargin)
%READ  Reads k-space or images from a file.
%   [k, d, info] = recon.read(file) reads the raw data of an ISMRMRD file (.h5, .mrd). Then
%
%       x = recon.cg(k, d, info.matrix, 'Maps', 'data')
%
%   is the image. k is the trajectory in cycles per voxel of info.matrix, [samples 2] or [samples 3], d the data,
%   [samples coils], both single. Noise in the file whitens the coils, reversed readouts are reversed, discarded samples
%   are left out. Samples without a trajectory get the one that the header describes.
%
%   If the file has several images (slices, repetitions, ...), k and d are cell arrays, and info is a structure array.
%
%   [k, d, info] = recon.read(file, Name, Value, ...) sets options:
%
%       'Slice', 'Repetition', 'Contrast', 'Phase', 'Set', 'Encoding'
%                             number of the images to read, counted from 0, as in the file; default: all
%       'Group'               group of the file with the raw data; default 'dataset'
%       'Conjugate'           true if k-space has the other sign than the model, exp(+i 2 pi k.r), as some converters
%                             write it; default false
%       'Whiten'              whether noise of the file whitens the coils; default true
%       'HeaderTrajectory'    trajectory of acquisitions that have none: 'auto' (default: from the header),
%                             'cartesian', 'radial', ... ; a wrong word shows all
%       'Convention'          'gadgetron': conventions for everything that neither the header nor an option says
%       'AngleRangeDegrees'   range of the angles of spokes or interleaves, positive from x towards y
%       'FirstAngleDegrees'   angle of the first spoke or interleaf
%       'GoldenAngle'         number of the tiny golden angle, 1 for 111.246 degrees; negative: from y towards x
%       'SpokeCount'          number of spokes in the range of angles
%       'SpokeNumber'         number from which the direction of a spoke follows; a wrong word shows all
%       'FramesPerRotation'   number of successive frames whose spokes interleave
%       'ReadoutSamples'      number of samples along a spoke from one edge of k-space to the other
%       'CenterSample'        sample at the centre of k-space
%       'GradientDelayUs'     delay of the gradients in microseconds
%       'SampleTimeUs'        time between samples in microseconds
%       'SpiralExtent'        scale of a spiral; a wrong word shows all
%       'AcquisitionDelayUs'  time from the beginning of an echo-planar gradient to its first sample, in microseconds
%
%   info has these fields. Fields that the file does not have are empty, NaN or 0.
%
%       matrix, reconMatrix   voxels of the encoded matrix, which fits k, and of the reconstructed one
%       fov, reconFov         their fields of view along x, y and z in mm
%       weights               density weights, [samples 1]
%       times                 time of each sample in seconds since the first sample of its acquisition, [samples 1]
%       dwell                 time between samples in seconds
%       shots, skipped        number of samples, and of discarded samples before them, of each acquisition
%       trajectory            'cartesian', 'epi', 'radial', 'goldenangle', 'spiral' or 'other', from the header
%       whitened, noiseLevel  whether noise whitened d, and then 1, for 'NoiseLevel' of recon.cg
%       noise                 noise as it was measured, structures with d, [samples coils], and dwell in seconds
%       noiseBandwidth        ratio of the receiver's noise bandwidth to its sampling bandwidth
%       calibration           calibration data of the image for recon.coilmaps: a structure with k, d and these fields
%       encoding, slice, repetition, contrast, phase, set, average
%                             numbers of the image, counted from 0
%       position, readDir, phaseDir, sliceDir, tablePosition
%                             centre in mm, and directions of x, y and z, in the patient: to the left, to the back and
%                             to the head
%       measurement, timeStamp, physiologyTimeStamp
%                             number of the measurement, and times in the scanner's units
%       echoTimes, repetitionTimes
%                             in ms
%       fieldStrength, frequency
%                             in tesla, and of hydrogen in Hz
%       vendor, model, patientPosition, header
%                             texts; header is the XML header
%
%   [k, d, info] = recon.read(kspace, 'Trajectory', trajectory, 'Matrix', dims) reads k-space of BART (.cfl, .hdr),
%   [1 samples shots coils], with its trajectory in a second file, [3 samples shots] in units of 1/FOV. dims is the
%   image size that the trajectory was made for. Cartesian k-space, [nx ny nz coils], needs neither: points that are 0
%   in all coils were not measured.
%
%   x = recon.read(file) reads images: of ISMRMRD, BART (.cfl), NIfTI (.nii, .nii.gz), DICOM (.dcm), NumPy (.npy) or
%   MATLAB (.mat). x is [nx ny nz channels images], complex single. It is a cell array if images of a file have
%   different sizes.
%
%   [x, info] = recon.read(file) also returns a structure for each image. It has the numbers, position and directions as
%   above, repetitionTime in ms, and voxelSize and fov along x, y and z in mm, 0 if the file does not have them.
%
%   So the number of outputs selects raw data or images. It is an error if the file does not contain them.
%
%   Example
%       k = recon.trajectory.radial(48, 128);
%       d = recon.phantom.kspace(k, [64 64], 'Coils', 4);
%       file = [tempname() '.h5'];
%       recon.write(file, k, d, struct('matrix', [64 64], 'fov', [220 220 5]));
%       [k, d, info] = recon.read(file);
%       x = recon.cg(k, d, info.matrix, 'Maps', 'data');
%       delete(file);
%
%   See also recon.write, recon.cg, recon.coilmaps.
recon.internal.need_arguments(nargin, 1, '[k, d, info] = recon.read(file)');
path = recon.internal.utf8(file, 'recon.read: the file''s name');
file = char(file);
if nargout > 3
    error('recon:InvalidArgument', ['recon.read returns at most 3 outputs: [k, d, info] for raw data, [x, info] ' ...
        'for images']);
end
if nargout == 3
    [varargout{1:3}] = read_raw(file, path, varargin);
    return
end
if ~isempty(varargin)
    error('recon:InvalidArgument', ['recon.read: options are for raw data, which are read by [k, d, info] = ' ...
        'recon.read(file, ...): images have no options']);
end
[varargout{1:max(nargout, 1)}] = read_images(file, path);
end

function [k, d, info] = read_raw(file, path, list)
counters = {'Encoding', 'Slice', 'Repetition', 'Contrast', 'Phase', 'Set'};
acquisitions = {'Conjugate', 'Whiten', 'HeaderTrajectory', 'Convention', 'AngleRangeDegrees', 'FirstAngleDegrees', ...
    'GoldenAngle', 'SpokeCount', 'SpokeNumber', 'FramesPerRotation', 'ReadoutSamples', 'CenterSample', ...
    'GradientDelayUs', 'SampleTimeUs', 'SpiralExtent', 'AcquisitionDelayUs'};
bart = {'Trajectory', 'Matrix'};
own = recon.internal.options('recon.read', list, [counters, {'Group'}, bart, acquisitions], {});
if any(isfield(own, bart))
    [scans, header, noise, warnings] = read_bart(path, own, bart);
else
    values = recon.internal.defaults(struct('Group', 'dataset'), own);
    group = recon.internal.utf8(values.Group, 'Group');
    numbers = -ones(1, numel(counters));
    for i = 1:numel(counters)
        if isfield(own, counters{i})
            numbers(i) = recon.internal.one_number(own.(counters{i}), counters{i});
            if numbers(i) < 0
                error('recon:InvalidArgument', 'recon.read: %s is %g: images are counted from 0', counters{i}, ...
                    numbers(i));
            end
        end
    end
    try
        [scans, header, noise, warnings] = recon_mex('read_raw', path, group, own, numbers);
    catch e
        if strcmp(e.identifier, 'recon:BadFile') && ...
                strcmp(recon_mex('file_contents', path, group), 'images')
            error('recon:InvalidArgument', ...
                '%s contains images and no raw data: read it by [x, info] = recon.read(file)', file);
        end
        rethrow(e);
    end
end
recon.internal.warn(warnings);
header.xml = native2unicode(header.xml, 'UTF-8');
if isempty(scans)
    % Only noise.
    scans = empty_scan(noise);
end
k = cell(numel(scans), 1);
d = k;
for i = 1:numel(scans)
    [one, k{i}, d{i}] = raw_info(scans(i), header, noise);
    info(i, 1) = one; %#ok<AGROW>
end
if numel(k) == 1
    k = k{1};
    d = d{1};
end
end

function [scans, header, noise, warnings] = read_bart(path, own, bart)
given = fieldnames(own);
other = given(~ismember(given, bart));
if ~isempty(other)
    error('recon:InvalidArgument', ...
        'recon.read: the option ''%s'' is for ISMRMRD files, ''Trajectory'' and ''Matrix'' are for BART''s', ...
        other{1});
end
if ~all(isfield(own, bart))
    error('recon:InvalidArgument', ['recon.read: k-space of BART needs ''Trajectory'' and ''Matrix'', the size ' ...
        'that the trajectory was made for: it is in units of 1/FOV']);
end
dims = own.Matrix;
if ~isnumeric(dims) || ~any(numel(dims) == [2 3])
    error('recon:InvalidArgument', 'recon.read: Matrix is %s: give [nx ny] or [nx ny nz]', ...
        recon.internal.size_text(size(dims)));
end
dims = [double(dims(:).'), 1];
[scans, header, noise, warnings] = recon_mex('read_bart', path, ...
    recon.internal.utf8(own.Trajectory, 'Trajectory'), dims(1:3));
end

function scan = empty_scan(noise)
if isempty(noise)
    error('recon:BadFile', 'recon.read: the file has neither image data nor noise');
end
warning('recon:File', 'recon.read: the file has no image data, only noise, in info.noise: k and d are empty');
zero = [0 0 0];
scan = struct('k', zeros(0, 2, 'single'), 'd', complex(zeros(0, size(noise(1).d, 2), 'single')), 'matrix', zero, ...
    'reconMatrix', zero, 'weights', [], 'times', [], 'shots', [], 'skipped', [], 'dwell', 0, 'trajectory', 'other', ...
    'whitened', false, 'calibration', [], 'fov', zero, 'reconFov', zero, 'position', zero, 'readDir', zero, ...
    'phaseDir', zero, 'sliceDir', zero, 'tablePosition', zero, 'encoding', 0, 'slice', 0, 'repetition', 0, ...
    'contrast', 0, 'phase', 0, 'set', 0, 'average', 0, 'measurement', 0, 'timeStamp', 0, 'physiologyTimeStamp', zero);
end

function [info, k, d] = raw_info(scan, header, noise)
k = scan.k;
d = scan.d;
info = rmfield(scan, {'k', 'd'});
info.matrix = trimmed(info.matrix);
info.reconMatrix = trimmed(info.reconMatrix);
info.noiseLevel = [];
if info.whitened
    info.noiseLevel = 1;
end
if ~isempty(info.calibration)
    info.calibration.matrix = trimmed(info.calibration.matrix);
    info.calibration.reconMatrix = trimmed(info.calibration.reconMatrix);
end
info.noise = noise;
info.noiseBandwidth = header.noiseBandwidth;
info.echoTimes = header.echoTimes;
info.repetitionTimes = header.repetitionTimes;
info.fieldStrength = header.fieldStrength;
info.frequency = header.frequency;
info.vendor = header.vendor;
info.model = header.model;
info.patientPosition = header.patientPosition;
info.header = header.xml;
end

function matrix = trimmed(matrix)
% [nx ny] for a slice.
if matrix(3) == 1
    matrix = matrix(1:2);
end
end

function [x, info] = read_images(file, path)
try
    [images, warnings] = recon_mex('read_images', path);
catch e
    if strcmp(e.identifier, 'recon:BadFile') && ...
            strcmp(recon_mex('file_contents', path, recon.internal.utf8('dataset', 'Group')), 'raw')
        error('recon:InvalidArgument', ...
            '%s contains raw data and no images: read it by [k, d, info] = recon.read(file)', file);
    end
    rethrow(e);
end
recon.internal.warn(warnings);
x = {images.data}.';
info = rmfield(images, 'data');
for i = 1:numel(images)
    sizes = full_sizes(x{i});
    info(i).voxelSize = info(i).fov ./ sizes(1:3);
end
sizes = cellfun(@full_sizes, x, 'UniformOutput', false);
if all(cellfun(@(s) isequal(s, sizes{1}), sizes))
    x = reshape(cat(5, x{:}), [sizes{1}, numel(x)]);
end
end

function sizes = full_sizes(image)
% The sizes along x, y, z and channels.
sizes = [size(image), 1, 1];
sizes = sizes(1:4);
end
