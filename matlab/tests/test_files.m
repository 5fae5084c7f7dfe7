function tests = test_files()
%TEST_FILES  recon.read and recon.write: values by readers of this file, and by the round trip of all fields.
tests = {@raw_data_return, @several_images_are_selected, @noise_whitens, @calibration_returns, @own_data_need_little, ...
    @image_files_return, @image_geometry, @cfl_has_barts_layout, @nifti_has_its_layout, @mat_files_load, ...
    @dicom_has_integers, @bart_kspace, ...
    @images_of_several_sizes, @names_in_unicode, @the_contents_decide, @images_are_resized, ...
    @missing_and_damaged_files, @wrong_options, @wrong_arguments, @nothing_is_left_of_a_failure, @the_library_without_readers};
end

function [folder, clean] = new_folder()
folder = tempname();
mkdir(folder);
clean = onCleanup(@() remove(folder));
end

function remove(folder)
names = dir(folder);
for i = 1:numel(names)
    if ~names(i).isdir
        delete(fullfile(folder, names(i).name));
    end
end
rmdir(folder);
end

function z = random(varargin)
z = complex(randn(varargin{:}, 'single'), randn(varargin{:}, 'single'));
end

function info = raw_info()
info = struct('matrix', [16 12], 'fov', [220 200 5]);
end

function raw_data_return()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'scan.h5');
for ndim = 2:3
    k = rand([7 5 ndim], 'single') - 0.5;
    d = random(7, 5, 4);
    matrix = [16 12 8];
    info = struct('matrix', matrix(1:ndim), 'fov', [220 200 5], 'reconMatrix', [8 6 1], 'position', [1 2 3], ...
        'readDir', [0 1 0], 'phaseDir', [1 0 0], 'sliceDir', [0 0 -1], 'tablePosition', [4 5 6], 'slice', 2, ...
        'repetition', 3, 'contrast', 1, 'phase', 4, 'set', 5, 'average', 6, 'measurement', 7, 'timeStamp', 8, ...
        'physiologyTimeStamp', [9 10 11], 'weights', rand(35, 1, 'single'), 'times', repmat((0:6).' * 1e-5, 5, 1));
    recon.write(file, k, d, info);
    [k2, d2, info2] = recon.read(file);
    check(isequal(k2, reshape(k, 35, ndim)) && isa(k2, 'single'), 'the trajectory');
    check(isequal(d2, reshape(d, 35, 4)) && isa(d2, 'single'), 'the data');
    check(isequal(info2.matrix, info.matrix) && isequal(info2.reconMatrix, [8 6]), 'the matrix');
    check(isequal(info2.weights, info.weights) && isequal(info2.shots, 7 * ones(5, 1)), 'weights and shots');
    check_close(info2.times, single(info.times), 1e-6, 'times');
    check(abs(info2.dwell - 1e-5) < 1e-10, 'dwell');
    check_close(info2.reconFov, [110 100 5 / matrix(3)^(ndim == 3)], 1e-6, 'the field of view');
    for name = {'position', 'readDir', 'phaseDir', 'sliceDir', 'tablePosition', 'slice', 'repetition', 'contrast', ...
            'phase', 'set', 'average', 'measurement', 'timeStamp', 'physiologyTimeStamp', 'fov'}
        check(isequal(info2.(name{1}), info.(name{1})), name{1});
    end
    check(~info2.whitened && isempty(info2.noiseLevel) && isempty(info2.noise) && isempty(info2.calibration), 'noise');
    % Writing and reading the results again changes nothing.
    recon.write(file, k2, d2, info2);
    [k3, d3, info3] = recon.read(file);
    check(isequal(k3, k2) && isequal(d3, d2), 'a second time');
    check(isequaln(info3, info2), 'all fields a second time');
end
end

function several_images_are_selected()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'scan.h5');
k = {};
d = {};
for slice = 0:2
    for repetition = 0:1
        k{end + 1} = rand(10 + slice, 2, 'single') - 0.5; %#ok<AGROW>
        d{end + 1} = random(10 + slice, 2); %#ok<AGROW>
        info(numel(k)) = setfield(setfield(raw_info(), 'slice', slice), 'repetition', repetition); %#ok<SFLD,AGROW>
    end
end
recon.write(file, k, d, info);
[k2, d2, info2] = recon.read(file);
check(isequal(k2(:), k(:)) && isequal(d2(:), d(:)), 'all images, in the order of their numbers');
check(isequal([info2.slice], [0 0 1 1 2 2]) && isequal([info2.repetition], [0 1 0 1 0 1]), 'their numbers');
[k2, d2, info2] = recon.read(file, 'Slice', 1, 'Repetition', 1);
check(isequal(k2, k{4}) && isequal(d2, d{4}) && info2.slice == 1, 'one image is an array');
[k2, ~, info2] = recon.read(file, 'slice', 2);
check(isequal(k2(:), reshape(k(5:6), [], 1)) && numel(info2) == 2, 'one slice');
check_error(@() read3(file, 'Slice', 3), 'recon:InvalidArgument', 'slices 0, 1, 2; repetitions 0, 1');
end

function noise_whitens()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'scan.h5');
k = rand(50, 2, 'single') - 0.5;
d = random(50, 3);
mix = random(3, 3);
noise = struct('d', random(2000, 3) * mix, 'dwell', 1e-5);
times = (0:49).' * 1e-5;
recon.write(file, k, d, setfield(setfield(raw_info(), 'noise', noise), 'times', times)); %#ok<SFLD>
[~, d2, info2] = recon.read(file, 'Whiten', false);
check(isequal(d2, d) && ~info2.whitened, 'unchanged data');
check(isequal(info2.noise.d, noise.d) && abs(info2.noise.dwell - 1e-5) < 1e-10, 'the noise as it was measured');
old = warning('off', 'recon:Noise');
restore = onCleanup(@() warning(old));
[k3, d3, info3] = recon.read(file);
check(info3.whitened && info3.noiseLevel == 1, 'whitened');
check_close(d3, recon.whiten(d, noise.d), 1e-4, 'the data are those of recon.whiten');
% Whitened data are written without noise.
recon.write(file, k3, d3, info3);
[~, d4, info4] = recon.read(file);
check(isequal(d4, d3) && isempty(info4.noise), 'whitened data return unchanged');
end

function calibration_returns()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'scan.h5');
info = raw_info();
info.calibration = struct('k', rand(6, 2, 'single') - 0.5, 'd', random(6, 2), 'matrix', [16 12], 'fov', [220 200 5]);
k = rand(10, 2, 'single') - 0.5;
d = random(10, 2);
recon.write(file, k, d, info);
[k2, d2, info2] = recon.read(file);
check(isequal(k2, k) && isequal(d2, d), 'the data');
check_close(info2.calibration.k, info.calibration.k, 1e-6, 'the trajectory of the calibration');
check(isequal(info2.calibration.d, info.calibration.d), 'the data of the calibration');
end

function own_data_need_little()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'scan.mrd');
k = recon.trajectory.radial(12, 32);
d = recon.phantom.kspace(k, [16 16], 'Coils', 2);
recon.write(file, complex(k(:, :, 1), k(:, :, 2)), d, struct('matrix', [16 16], 'fov', [200 200 5]));
[k2, d2, info] = recon.read(file);
check_close(k2, single(reshape(k, [], 2)), 1e-6, 'a complex trajectory');
x = recon.cg(k2, d2, info.matrix, 'Maps', 'data', 'Device', 'cpu');
y = recon.cg(single(k), single(d), [16 16], 'Maps', 'data', 'Device', 'cpu');
check_close(x, y, 1e-4, 'the image');
check(~isempty(strfind(info.header, '<ismrmrdHeader')), 'a header is made'); %#ok<STREMP>
end

function image_files_return()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = random(5, 4, 3, 2, 2);
for ending = {'.h5', '.mrd'}
    file = fullfile(folder, ['image' ending{1}]);
    recon.write(file, x, 'VoxelSize', [1 2 3]);
    [y, info] = recon.read(file);
    check(isequal(y, x) && isa(y, 'single'), ending{1});
    check(numel(info) == 2 && isequal(info(1).voxelSize, [1 2 3]), 'the voxel size');
    check(isequal([info.repetition], [0 1]), 'images are repetitions');
end
file = fullfile(folder, 'image.cfl');
recon.write(file, x(:, :, :, :, 1));
check(isequal(recon.read(file), x(:, :, :, :, 1)), 'cfl');
recon.write(file, double(x(:, :, 1, 1, 1)));
check(isequal(recon.read(file), x(:, :, 1, 1, 1)), 'one slice of class double');
real_image = rand(5, 4, 3, 'single') - 0.5;
for ending = {'.nii', '.nii.gz'}
    file = fullfile(folder, ['image' ending{1}]);
    recon.write(file, real_image, 'FieldOfView', [50 80 90]);
    [y, info] = recon.read(file);
    check(isequal(real(y), real_image) && ~any(imag(y(:))), ending{1});
    check_close(info.voxelSize, [10 20 30], 1e-6, 'the voxel size of NIfTI');
end
recon.write(fullfile(folder, 'one.h5'), 3 + 4i);
check(recon.read(fullfile(folder, 'one.h5')) == 3 + 4i, 'one voxel');
file = fullfile(folder, 'picture.png');
recon.write(file, real_image(:, :, 1));
check_error(@() recon.read(file), 'recon:InvalidArgument', '.png');
id = fopen(file);
bytes = fread(id, 4).';
fclose(id);
check(isequal(bytes, [137 double('PNG')]), 'a picture');
end

function image_geometry()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'image.h5');
info = struct('matrix', [8 6], 'reconMatrix', [4 6], 'fov', [80 120 5], 'reconFov', [60 120 5], 'position', [1 2 3], ...
    'readDir', [0 1 0], 'phaseDir', [1 0 0], 'sliceDir', [0 0 -1], 'slice', 4, 'repetition', 2);
sizes = {[8 6], [80 120 5]; [4 6], [60 120 5]; [2 3], [20 60 5]};
for i = 1:size(sizes, 1)
    recon.write(file, ones(sizes{i, 1}), info);
    [~, read] = recon.read(file);
    check(isequal(read.fov, sizes{i, 2}), 'the voxel size of the raw data''s matrix');
    check(isequal(read.position, [1 2 3]) && isequal(read.sliceDir, [0 0 -1]), 'placement');
    check(isequal([read.slice, read.repetition], [4 2]), 'numbers');
end
% Writing and reading the results again changes nothing.
[x, read] = recon.read(file);
recon.write(file, x, read);
[y, again] = recon.read(file);
check(isequal(x, y) && isequaln(read, again), 'all fields return');
end

function cfl_has_barts_layout()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = random(3, 2, 1, 4);
recon.write(fullfile(folder, 'x.cfl'), x);
header = strsplit(fileread(fullfile(folder, 'x.hdr')), sprintf('\n'));
check(isequal(sscanf(header{2}, '%d').', [3 2 1 4 ones(1, 12)]), 'the header');
id = fopen(fullfile(folder, 'x.cfl'), 'r', 'l');
numbers = fread(id, Inf, 'single=>single');
fclose(id);
check(isequal(complex(numbers(1:2:end), numbers(2:2:end)), x(:)), 'the numbers');
end

function nifti_has_its_layout()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = rand(3, 2, 4, 'single');
recon.write(fullfile(folder, 'x.nii'), x, 'VoxelSize', [1 2 3]);
id = fopen(fullfile(folder, 'x.nii'), 'r', 'l');
fseek(id, 40, 'bof');
dims = fread(id, 8, 'int16').';
fseek(id, 80, 'bof');
voxel = fread(id, 3, 'single').';
fseek(id, 108, 'bof');
start = fread(id, 1, 'single');
fseek(id, start, 'bof');
numbers = fread(id, Inf, 'single=>single');
fclose(id);
check(isequal(dims(2:4), [3 2 4]) && isequal(voxel, [1 2 3]), 'sizes');
check(isequal(sort(numbers), sort(x(:))), 'the numbers');
end

function mat_files_load()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = random(5, 4, 3);
file = fullfile(folder, 'x.mat');
recon.write(file, x, 'VoxelSize', [1 2 3]);
s = load(file);
check(isequal(s.image, x) && isequal(s.voxel_size, [1; 2; 3]), 'what load finds');
check(isequal(recon.read(file), x), 'what recon.read finds');
% A file of save, with one array.
y = real(x);
save('-v6', file, 'y');
check(isequal(single(real(recon.read(file))), y), 'a file of save');
end

function dicom_has_integers()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = random(5, 4);
file = fullfile(folder, 'x.dcm');
info = struct('position', [1 2 3], 'readDir', [1 0 0], 'phaseDir', [0 1 0], 'sliceDir', [0 0 1]);
recon.write(file, x, info, 'VoxelSize', [1 2 3]);
[y, found] = recon.read(file);
check(max(abs(y(:) - abs(x(:)))) <= max(abs(x(:))) / 32767, 'magnitudes, rounded to integers of 16 bits');
check_close(found.position(:), [1; 2; 3], 1e-4, 'the position');
check_close(found.voxelSize(:), [1; 2; 3], 1e-4, 'the voxel size');
check_error(@() recon.write(fullfile(folder, 'coils.dcm'), random(5, 4, 1, 2)), 'recon:Unsupported', 'channels');
end

function bart_kspace()
[folder, clean] = new_folder(); %#ok<ASGLU>
k = rand(7, 5, 2) - 0.5;
d = random(7, 5, 3);
points = zeros(3, 7, 5);
points(1, :, :) = 16 * k(:, :, 1);
points(2, :, :) = 12 * k(:, :, 2);
names = {fullfile(folder, 'ksp.cfl'), fullfile(folder, 'traj.cfl')};
recon.write(names{1}, reshape(d, [1 7 5 3]));
recon.write(names{2}, points);
[k2, d2, info] = recon.read(names{1}, 'Trajectory', names{2}, 'Matrix', [16 12]);
check_close(k2, single(reshape(k, 35, 2)), 1e-6, 'the trajectory in cycles per voxel');
check(isequal(d2, reshape(d, 35, 3)) && isequal(info.matrix, [16 12]), 'the data');
check(isequal(info.shots, 7 * ones(5, 1)), 'shots');
check_error(@() read3(names{1}, 'Trajectory', names{2}), 'recon:InvalidArgument', '''Matrix''');
check_error(@() read3(names{1}), 'recon:InvalidArgument', '''Trajectory''');
check_error(@() read3(names{1}, 'Trajectory', names{2}, 'Matrix', [16 12], 'Slice', 0), 'recon:InvalidArgument', 'Slice');
check_error(@() read3(names{1}, 'Trajectory', names{2}, 'Matrix', [4 4]), 'recon:CoordinateOutOfRange', 'matrix');
check_error(@() read3(names{1}, 'Trajectory', names{1}, 'Matrix', [16 12]), 'recon:InvalidSize', '[3, samples, shots]');
% Cartesian k-space, with a line that was not measured.
c = random(6, 5, 3);
c(:, 2, :) = 0;
name = fullfile(folder, 'cartesian.cfl');
recon.write(name, reshape(c, [6 5 1 3]));
[k3, d3, info] = recon.read(name);
check(isequal(info.matrix, [6 5]) && isequal(size(d3), [24 3]) && strcmp(info.trajectory, 'cartesian'), 'Cartesian');
measured = reshape(c(:, [1 3 4 5], :), 24, 3);
check(isequal(d3, single(measured)), 'measured points');
[x, y] = ndgrid(-3:2, [-2 0 1 2]);
check_close(k3, single([x(:) / 6, y(:) / 5]), 1e-6, 'coordinates of the grid');
check_error(@() read3(name, 'Slice', 3), 'recon:InvalidArgument', 'slices 0');
check_error(@() read3(name, 'Conjugate', true), 'recon:InvalidArgument', 'conj(d)');
end

function images_of_several_sizes()
[folder, clean] = new_folder(); %#ok<ASGLU>
x = {random(4, 3); random(2, 5, 2)};
recon.write(fullfile(folder, 'x.h5'), x);
lastwarn('');
evalc('y = recon.read(fullfile(folder, ''x.h5''));');
check(isequal(y, x), 'a cell array');
[~, identifier] = lastwarn();
check(strcmp(identifier, 'recon:File'), 'a warning of the file says in which order images were read');
check_error(@() recon.write(fullfile(folder, 'x.cfl'), x), 'recon:SizeMismatch', '.h5');
end

function names_in_unicode()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, ['b' native2unicode(uint8([195 188]), 'UTF-8') 'ro 1.h5']);
recon.write(file, ones(2));
check(exist(file, 'file') == 2, 'the file has this name');
check(isequal(recon.read(file), ones(2)), 'it is read');
end

function the_contents_decide()
[folder, clean] = new_folder(); %#ok<ASGLU>
raw = fullfile(folder, 'raw.h5');
images = fullfile(folder, 'images.h5');
recon.write(raw, rand(5, 2) - 0.5, random(5, 1), raw_info());
recon.write(images, ones(4));
check_error(@() recon.read(raw), 'recon:InvalidArgument', '[k, d, info] = recon.read(file)');
check_error(@() read3(images), 'recon:InvalidArgument', '[x, info] = recon.read(file)');
check_error(@() recon.read(images, 'Slice', 0), 'recon:InvalidArgument', 'raw data');
check_error(@() read4(images), 'recon:InvalidArgument', '3 outputs');
end

function images_are_resized()
info = struct('matrix', [8 6], 'reconMatrix', [4 9], 'fov', [80 60 5], 'reconFov', [40 90 5]);
x = random(8, 6, 3);
expected = zeros(4, 9, 3, 'single');
% Voxel floor(n/2), counted from 0, remains: 4 and 3 become 2 and 4.
expected(:, 2:7, :) = x(3:6, :, :);
check(isequal(recon.resizeimage(x, info), expected), 'the middle, with zeros around it');
info.reconFov = [80 60 5];
y = recon.resizeimage(exp(2i * pi * ((0:7).' - 4) / 8) * ones(1, 6), info);
check_close(y, exp(2i * pi * ((0:3).' - 2) / 4) * ones(1, 9), 1e-12, 'a wave in larger and smaller voxels');
check(isreal(recon.resizeimage(rand(8, 6), info)), 'real images remain real');
check_error(@() recon.resizeimage(x, struct('matrix', [8 6])), 'recon:InvalidArgument', 'reconMatrix');
check_error(@() recon.resizeimage(x, setfield(info, 'reconMatrix', [4 9 2])), 'recon:SizeMismatch', '[4 9 2]'); %#ok<SFLD>
check_error(@() recon.resizeimage(x, setfield(info, 'reconFov', -1)), 'recon:InvalidArgument', 'reconFov'); %#ok<SFLD>
check_error(@() recon.resizeimage(x, setfield(info, 'reconMatrix', [0 9])), 'recon:InvalidSize'); %#ok<SFLD>
end

function missing_and_damaged_files()
[folder, clean] = new_folder(); %#ok<ASGLU>
for ending = {'.h5', '.cfl', '.nii', '.npy'}
    check_error(@() recon.read(fullfile(folder, ['missing' ending{1}])), 'recon:IO', 'missing');
end
check_error(@() read3(fullfile(folder, 'missing.h5')), 'recon:IO', 'missing');
check_error(@() recon.read('x.dat'), 'recon:InvalidArgument', '.h5');
file = fullfile(folder, 'text.h5');
id = fopen(file, 'w');
fprintf(id, 'no HDF5 at all');
fclose(id);
check_error(@() recon.read(file), 'recon:BadFile', 'text.h5');
check_error(@() read3(file), 'recon:BadFile', 'text.h5');
check_error(@() read3(folder), 'recon:IO', folder);
check_error(@() recon.write(fullfile(folder, 'nowhere', 'x.h5'), ones(2)), 'recon:IO', 'nowhere');
check_error(@() recon.write(fullfile(folder, 'x.dat'), ones(2)), 'recon:InvalidArgument', '.h5');
check_error(@() recon.write(fullfile(folder, 'x.npz'), ones(2)), 'recon:InvalidArgument', '.h5');
raw = fullfile(folder, 'raw.h5');
recon.write(raw, rand(5, 2) - 0.5, random(5, 1), raw_info());
check_error(@() read3(raw, 'Group', 'other'), 'recon:BadFile', 'other');
end

function wrong_options()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'raw.h5');
recon.write(file, rand(5, 2) - 0.5, random(5, 1), raw_info());
check_error(@() read3(file, 'Slices', 0), 'recon:UnknownOption', 'Slice');
check_error(@() read3(file, 'Slice', -1), 'recon:InvalidArgument', 'Slice');
check_error(@() read3(file, 'Slice', 0.5), 'recon:InvalidArgument', '0.5');
check_error(@() read3(file, 'HeaderTrajectory', 'spirale'), 'recon:UnknownValue', 'spiral');
check_error(@() read3(file, 'Convention', 'x'), 'recon:UnknownValue', 'gadgetron');
check_error(@() read3(file, 'GoldenAngle', 0), 'recon:InvalidArgument', 'GoldenAngle');
check_error(@() read3(file, 'SpokeCount', 0), 'recon:InvalidArgument', 'SpokeCount');
check_error(@() read3(file, 'CenterSample', NaN), 'recon:InvalidArgument', 'CenterSample');
check_error(@() read3(file, 'Conjugate', 2), 'recon:InvalidArgument', 'Conjugate');
check_error(@() read3(file, 'Group', 3), 'recon:InvalidArgument', 'Group');
[~, d] = read3(file);
[~, c] = read3(file, 'Conjugate', true);
check(isequal(c, conj(d)), 'Conjugate');
end

function wrong_arguments()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'x.h5');
k = rand(5, 2) - 0.5;
d = random(5, 1);
info = raw_info();
check_error(@() recon.read(3), 'recon:InvalidArgument', 'name');
check_error(@() recon.write(file), 'recon:InvalidArgument', 'recon.write(file, x)');
check_error(@() recon.write(file, 'x'), 'recon:InvalidArgument', 'single or double');
check_error(@() recon.write(file, ones(2), 'VoxelSize', [1 2]), 'recon:InvalidArgument', 'VoxelSize');
check_error(@() recon.write(file, ones(2), 'VoxelSize', [1 2 3], 'FieldOfView', [1 2 3]), 'recon:InvalidArgument', 'both');
check_error(@() recon.write(file, ones(2), struct()), 'recon:InvalidArgument', 'voxelSize');
check_error(@() recon.write(file, ones(2), struct('voxelsize', [1 1 1])), 'recon:InvalidArgument', 'voxelsize');
check_error(@() recon.write(file, [1 NaN]), 'recon:NotFinite');
check_error(@() recon.write(file, k, d), 'recon:InvalidArgument', 'info');
check_error(@() recon.write(file, k, d, rmfield(info, 'fov')), 'recon:InvalidArgument', 'fov');
check_error(@() recon.write(file, k, d(1:4), info), 'recon:SizeMismatch');
check_error(@() recon.write(file, k, d.', info), 'recon:SizeMismatch', 'permute');
check_error(@() recon.write(file, k.', d, info), 'recon:SizeMismatch', 'permute');
check_error(@() read3(file, 'SpiralExtent', ''), 'recon:InvalidArgument', 'leave the option out');
check_error(@() read3(file, 'HeaderTrajectory', []), 'recon:InvalidArgument', '''spiral''');
check_error(@() read3(file, 'Matrix', []), 'recon:InvalidArgument', '[nx ny]');
check_error(@() recon.write(file, 2 * k, d, setfield(info, 'weights', 1:3)), 'recon:SizeMismatch', 'weights'); %#ok<SFLD>
check_error(@() recon.write(file, k + 3, d, info), 'recon:CoordinateOutOfRange');
check_error(@() recon.write(file, k, NaN * d, info), 'recon:NotFinite');
check_error(@() recon.write(file, k, d, setfield(info, 'slice', 70000)), 'recon:InvalidArgument', '70000'); %#ok<SFLD>
check_error(@() recon.write(file, k, d, setfield(info, 'times', [0 1 2 3 5])), 'recon:Unsupported', 'equal steps'); %#ok<SFLD>
check_error(@() recon.write(file, k, d, setfield(info, 'times', 1:5)), 'recon:Unsupported', 'begin at 1'); %#ok<SFLD>
check_error(@() recon.write(file, k, d, setfield(info, 'shots', [2 2])), 'recon:SizeMismatch'); %#ok<SFLD>
check_error(@() recon.write(fullfile(folder, 'x.cfl'), k, d, info), 'recon:InvalidArgument', '.h5');
check(isempty(dir(fullfile(folder, 'x*'))), 'no part of a file is left');
end

function nothing_is_left_of_a_failure()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'x.h5');
recon.write(file, ones(2));
id = fopen(file);
before = fread(id);
fclose(id);
check_error(@() recon.write(file, [1 Inf]), 'recon:NotFinite');
id = fopen(file);
check(isequal(fread(id), before), 'the old file is unchanged');
fclose(id);
end

function the_library_without_readers()
[folder, clean] = new_folder(); %#ok<ASGLU>
file = fullfile(folder, 'librecon.a');
fclose(fopen(file, 'w'));
check_error(@() recon.build('Library', file), 'recon:InvalidArgument', 'librecon_files.a');
end

function [k, d, info] = read3(varargin)
[k, d, info] = recon.read(varargin{:});
end

function read4(varargin)
[~, ~, ~, ~] = recon.read(varargin{:});
end
