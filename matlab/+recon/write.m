function write(file, varargin)
%WRITE  Writes images or k-space to a file.
%   recon.write(file, x) writes images, x of [nx ny nz channels images], real or complex, in single precision. The
%   ending of the name selects the format: ISMRMRD (.h5, .mrd), BART (.cfl, .hdr), NIfTI (.nii, .nii.gz), DICOM (.dcm),
%   NumPy (.npy), MATLAB (.mat) or a picture (.png). NIfTI and DICOM store magnitudes unless all numbers are real, PNG
%   always. DICOM has one file for each slice and repetition, and integers of 16 bits. x may be a cell array of images
%   of different sizes, which only ISMRMRD stores in one file. The coils of a 2D image are channels: reshape(x, nx, ny,
%   1, coils).
%
%   recon.write(file, x, info) writes the position, voxel size and numbers of info, a structure of recon.read, of images
%   or of raw data. info is one structure, or one for each image. With one structure, several images are successive
%   repetitions.
%
%   recon.write(file, x, Name, Value, ...), recon.write(file, x, info, Name, Value, ...) set options:
%
%       'FieldOfView'  field of view along x, y and z in mm
%       'VoxelSize'    voxel size along x, y and z in mm. Default: that of info; without info it is unknown
%
%   recon.write(file, k, d, info) writes raw data as an ISMRMRD file. k, d and info are those of recon.read, which reads
%   the same numbers back, or your own:
%
%       k       [samples 2] or [readout shots 2], with 3 for 3D, or complex, in cycles per voxel of info.matrix
%       d       the samples of the trajectory, then coils
%       info    a structure with matrix, and fov in mm, [x y z]. All other fields of recon.read are optional: help
%               recon.read. Without info.header a header is made of matrix, reconMatrix, fov and reconFov
%
%   Whitened data are written without info.noise, since a reader would whiten them again. Calibration data are not
%   written if the header says that they are part of the image, with a warning. Times must begin at 0 in each shot and
%   ascend evenly.
%
%   The file appears as a whole, or not at all.
%
%   Example
%       k = recon.trajectory.radial(100, 128);
%       x = recon.combine(recon.grid(k, recon.phantom.kspace(k, [64 64], 'Coils', 4), [64 64]), [64 64]);
%       file = [tempname() '.nii'];
%       recon.write(file, x, 'VoxelSize', [2 2 5]);
%       [y, info] = recon.read(file);
%       delete(file);
%
%   See also recon.read.
recon.internal.need_arguments(nargin, 2, 'recon.write(file, x) or recon.write(file, k, d, info)');
path = recon.internal.utf8(file, 'recon.write: the file''s name');
is_numbers = @(a) isnumeric(a) || iscell(a);
if nargin > 2 && is_numbers(varargin{2})
    if nargin ~= 4 || ~isstruct(varargin{3})
        error('recon:InvalidArgument', ['recon.write: raw data are written by recon.write(file, k, d, info) with a ' ...
            'structure info, images by recon.write(file, x, info)']);
    end
    write_raw(path, varargin{1}, varargin{2}, varargin{3});
    return
end
list = varargin(2:end);
info = struct();
has_info = ~isempty(list) && isstruct(list{1});
if has_info
    info = list{1};
    list = list(2:end);
end
own = recon.internal.options('recon.write', list, {'FieldOfView', 'VoxelSize'}, {});
if isfield(own, 'FieldOfView') && isfield(own, 'VoxelSize')
    error('recon:InvalidArgument', 'recon.write: give ''FieldOfView'' or ''VoxelSize'', not both');
end
write_images(path, varargin{1}, info, has_info, own);
end

function write_images(path, x, info, has_info, own)
if iscell(x)
    images = x(:);
else
    recon.internal.need_numbers(x, 'recon.write: the images');
    sizes = image_sizes(x);
    images = squeeze(num2cell(reshape(x, [sizes, numel(x) / prod(sizes)]), 1:4));
end
if ~any(numel(info) == [1, numel(images)])
    error('recon:SizeMismatch', ...
        'recon.write: there are %d images, and %d structures of info: give one, or one each', ...
        numel(images), numel(info));
end
made = cell(size(images));
for i = 1:numel(images)
    recon.internal.need_numbers(images{i}, 'recon.write: an image');
    own_info = info(min(i, numel(info)));
    one = common_fields(own_info);
    if numel(info) == 1 && numel(images) > 1
        one.repetition = one.repetition + i - 1;
    end
    one.data = images{i};
    one.sizes = image_sizes(images{i});
    if numel(images{i}) ~= prod(one.sizes)
        error('recon:SizeMismatch', 'recon.write: image %d is %s: [nx ny nz channels] is required', i, ...
            recon.internal.size_text(size(images{i})));
    end
    one.fov = field_of_view(own_info, has_info, one.sizes(1:3), own);
    one.repetitionTime = NaN;
    if isfield(own_info, 'repetitionTime')
        one.repetitionTime = own_info.repetitionTime;
    end
    made{i} = one;
end
recon.internal.warn(recon_mex('write_images', path, vertcat(made{:})));
end

function sizes = image_sizes(x)
sizes = [size(x), 1, 1];
sizes = sizes(1:4);
end

function fov = field_of_view(info, has_info, dims, own)
% The voxel size of info decides, that of the encoded matrix if it is of raw data.
if isfield(own, 'FieldOfView')
    fov = three(own.FieldOfView, 'FieldOfView');
elseif isfield(own, 'VoxelSize')
    fov = three(own.VoxelSize, 'VoxelSize') .* dims;
elseif isfield(info, 'voxelSize')
    fov = three(info.voxelSize, 'info.voxelSize') .* dims;
elseif isfield(info, 'matrix') && isfield(info, 'fov')
    matrix = full_matrix(info.matrix);
    if isfield(info, 'reconMatrix') && isfield(info, 'reconFov') && ~isequal(dims, matrix) && ...
            isequal(dims, full_matrix(info.reconMatrix))
        fov = three(info.reconFov, 'info.reconFov');
    else
        fov = three(info.fov, 'info.fov') ./ matrix .* dims;
    end
elseif isfield(info, 'fov')
    fov = three(info.fov, 'info.fov');
else
    fov = [0 0 0];
    if has_info
        error('recon:InvalidArgument', ['recon.write: info has neither voxelSize nor fov: set one of the two, or ' ...
            'give ''VoxelSize''']);
    end
end
end

function row = three(numbers, what)
if ~isnumeric(numbers) || ~isreal(numbers) || numel(numbers) ~= 3 || ~all(isfinite(numbers)) || any(numbers < 0)
    error('recon:InvalidArgument', 'recon.write: %s is %s: give three numbers in mm, [x y z]', what, ...
        describe(numbers));
end
row = double(numbers(:).');
end

function text = describe(numbers)
if isnumeric(numbers) && numel(numbers) <= 6
    text = mat2str(numbers);
else
    text = sprintf('a %s %s', recon.internal.size_text(size(numbers)), class(numbers));
end
end

function matrix = full_matrix(matrix)
if ~isnumeric(matrix) || ~any(numel(matrix) == [2 3])
    error('recon:InvalidArgument', 'recon.write: info.matrix is %s: give [nx ny] or [nx ny nz]', describe(matrix));
end
matrix = [double(matrix(:).'), 1];
matrix = matrix(1:3);
end

function one = common_fields(info)
% The numbers, position and directions of info. Unknown ones are 0.
known = {'matrix', 'reconMatrix', 'weights', 'times', 'shots', 'skipped', 'dwell', 'trajectory', 'whitened', ...
    'calibration', 'fov', 'reconFov', 'noiseLevel', 'noise', 'noiseBandwidth', 'echoTimes', 'repetitionTimes', ...
    'fieldStrength', 'frequency', 'vendor', 'model', 'patientPosition', 'header', 'voxelSize', 'repetitionTime', ...
    'k', 'd'};
zero = [0 0 0];
one = struct('position', zero, 'readDir', zero, 'phaseDir', zero, 'sliceDir', zero, 'tablePosition', zero, ...
    'encoding', 0, 'slice', 0, 'repetition', 0, 'contrast', 0, 'phase', 0, 'set', 0, 'average', 0, ...
    'measurement', 0, 'timeStamp', 0, 'physiologyTimeStamp', zero);
given = fieldnames(info);
for i = 1:numel(given)
    if isfield(one, given{i})
        one.(given{i}) = info.(given{i});
    elseif ~any(strcmp(given{i}, known))
        error('recon:InvalidArgument', 'recon.write: info has an unknown field ''%s''. Fields are: %s', given{i}, ...
            strjoin([fieldnames(one).', known], ', '));
    end
end
end

function write_raw(path, k, d, info)
if ~iscell(k)
    k = {k};
end
if ~iscell(d)
    d = {d};
end
if numel(k) ~= numel(d) || numel(k) ~= numel(info)
    error('recon:SizeMismatch', ...
        'recon.write: there are %d trajectories, %d data and %d structures of info: give one each', ...
        numel(k), numel(d), numel(info));
end
for i = 1:numel(k)
    scans(i, 1) = scan_of(k{i}, d{i}, info(i)); %#ok<AGROW>
end
header = [];
if isfield(info, 'header') && ~isempty(info(1).header)
    header = recon.internal.utf8(info(1).header, 'info.header');
end
noise = [];
is_whitened = isfield(info, 'whitened') && any([info.whitened]);
if isfield(info, 'noise') && ~is_whitened
    noise = info(1).noise;
end
recon.internal.warn(recon_mex('write_raw', path, header, scans, noise));
end

function scan = scan_of(k, d, info)
[samples, ndim] = recon.internal.trajectory(k);
recon.internal.need_numbers(d, 'recon.write: the k-space data');
rest = recon.internal.check_data_size(d, samples, [], 'recon.write: the k-space data', 'd');
if numel(rest) > 1
    error('recon:SizeMismatch', ['recon.write: the k-space data are %s: frames are separate images: give cell ' ...
        'arrays k and d, and a structure array info'], recon.internal.size_text(size(d)));
end
scan = common_fields(info);
count = prod(samples);
if isreal(k)
    scan.k = reshape(k, count, ndim);
else
    scan.k = [real(k(:)), imag(k(:))];
end
scan.d = reshape(d, count, []);
for needed = {'matrix', 'fov'}
    if ~isfield(info, needed{1})
        error('recon:InvalidArgument', 'recon.write: info.%s is missing: %s', needed{1}, ...
            'a raw file needs the matrix that k is for, and its field of view in mm');
    end
end
scan.matrix = full_matrix(info.matrix);
scan.fov = three(info.fov, 'info.fov');
scan.reconMatrix = scan.matrix;
if isfield(info, 'reconMatrix')
    scan.reconMatrix = full_matrix(info.reconMatrix);
end
scan.reconFov = scan.fov .* scan.reconMatrix ./ scan.matrix;
if isfield(info, 'reconFov')
    scan.reconFov = three(info.reconFov, 'info.reconFov');
end
scan.shots = repmat(samples(1), prod(samples(2:end)), 1);
if isfield(info, 'shots') && ~isempty(info.shots)
    scan.shots = info.shots;
end
scan.skipped = zeros(numel(scan.shots), 1);
if isfield(info, 'skipped') && ~isempty(info.skipped)
    scan.skipped = info.skipped;
end
scan.weights = [];
if isfield(info, 'weights')
    scan.weights = info.weights;
end
scan.times = [];
if isfield(info, 'times')
    scan.times = info.times;
end
scan.calibration = [];
if isfield(info, 'calibration') && ~isempty(info.calibration)
    c = info.calibration;
    scan.calibration = scan_of(c.k, c.d, rmfield(c, {'k', 'd'}));
end
end
