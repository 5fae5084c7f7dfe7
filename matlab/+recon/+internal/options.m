function [own, others] = options(name, list, own_names, other_names)
%OPTIONS  Sorts name-value arguments. For internal use.
%   Options in own_names go into the structure own, options in other_names into the list others. The case of names does
%   not matter. The list may also be one structure of options. No value may be empty, and no option may be given twice.
if numel(list) == 1 && isstruct(list{1}) && numel(list{1}) == 1
    list = reshape([fieldnames(list{1}), struct2cell(list{1})].', 1, []);
end
own = struct();
others = {};
known = [own_names, other_names];
seen = false(size(known));
for i = 1:2:numel(list)
    given = list{i};
    if isstring(given) && isscalar(given)
        given = char(given);
    end
    if ~ischar(given) || size(given, 1) ~= 1
        error('recon:InvalidArgument', ...
            '%s: argument %d of the options is a %s: options are pairs of a name and a value', name, i, class(given));
    end
    match = find(strcmpi(given, known), 1);
    if isempty(match)
        error('recon:UnknownOption', '%s: there is no option ''%s''. Options are: %s', name, given, ...
            strjoin(known, ', '));
    end
    if seen(match)
        error('recon:InvalidArgument', '%s: the option ''%s'' is given twice: leave one of the two out', name, ...
            known{match});
    end
    seen(match) = true;
    if i == numel(list)
        error('recon:InvalidArgument', '%s: the option ''%s'' has no value', name, given);
    end
    value = list{i + 1};
    if isstring(value) && isscalar(value)
        value = char(value);
    end
    if isempty(value)
        error('recon:InvalidArgument', '%s: the option ''%s'' is empty (a %s %s): give %s, or leave the option out', ...
            name, known{match}, recon.internal.size_text(size(value)), class(value), valid_values(name, known{match}));
    end
    if match <= numel(own_names)
        own.(known{match}) = value;
    else
        others(end + 1:end + 2) = {known{match}, value};
    end
end
end

function text = valid_values(name, option)
% Returns the valid values of an option, for messages.
switch option
    case 'Maps'
        text = 'coil sensitivities, [nx ny coils] or [nx ny nz coils]';
    case 'Covariance'
        text = 'a matrix, [coils coils]';
    case 'Matrix'
        text = 'a matrix, [virtual coils, coils]';
        if strcmp(name, 'recon.trajectory.propeller')
            text = 'the scan matrix, one number';
        elseif strcmp(name, 'recon.read')
            text = 'the image size, [nx ny] or [nx ny nz]';
        end
    case 'Weights'
        text = ['weights in the shape of the trajectory''s samples, or ' words('density')];
    case 'FieldMap'
        text = 'off-resonance in Hz, [nx ny] or [nx ny nz]';
    case 'DecayMap'
        text = 'decay rates in 1/s, [nx ny] or [nx ny nz]';
    case 'Times'
        text = 'seconds, in the shape of the trajectory''s samples';
    case 'Voxels'
        text = 'positions, [voxels 2] or [voxels 3]';
    case {'Initial', 'Reference'}
        text = 'an image of the result''s size';
    case 'Mask'
        text = 'a logical array of the images'' size';
    case 'Shapes'
        text = 'a row of ten numbers for each shape, [shapes 10]';
    case 'Gpus'
        text = 'numbers from 1, as recon.devices lists the GPUs';
    case 'Progress'
        text = 'true, or a function of one structure';
    case 'Prior'
        text = [words('prior', 'matrix') ', or a sparse matrix'];
    case {'GpuArray', 'Rotation', 'Translation', 'Weighting', 'Unwrap', 'Conjugate', 'Whiten'}
        text = 'true or false';
    case {'Method', 'Phase', 'Precision', 'Normal', 'Window', 'Basis', 'Device', 'Simd', 'Order', 'Part', 'Scale', ...
            'LambdaUnit', 'Filter', 'Algorithm', 'HeaderTrajectory', 'Convention', 'SpokeNumber', 'SpiralExtent'}
        text = words(library_option(name, option));
    case {'Y', 'Library', 'Output', 'Group', 'Trajectory'}
        text = ['a name, as help ' name ' says'];
    case 'Maxwell'
        text = 'four coefficients, in cycles per square metre';
    case {'Origin', 'FieldOfView', 'VoxelSize'}
        text = '[x y z] in mm';
    case 'Steps'
        text = 'a matrix in mm, [3 3]';
    case 'Range'
        text = '[black white]';
    otherwise
        text = 'one number';
end
end

function option = library_option(name, option)
% Returns the library's name of an option with words.
switch [name ' ' option]
    case 'recon.density Method'
        option = 'density';
    case 'recon.combine Method'
        option = 'combine';
    case 'recon.partialfourier Algorithm'
        option = 'partial_fourier';
    case 'recon.cg LambdaUnit'
        option = 'lambda_unit';
    case 'recon.read HeaderTrajectory'
        option = 'header_trajectory';
    case 'recon.read SpokeNumber'
        option = 'spoke_number';
    case 'recon.read SpiralExtent'
        option = 'spiral_extent';
    otherwise
        option = lower(option);
end
end

function text = words(option, omitted)
% Returns the words of an option of the library, as 'a', 'b' or 'c', without an omitted one.
list = recon_mex('words', option);
if nargin > 1
    list = list(~strcmp(list, omitted));
end
list = strcat('''', list, '''');
text = [strjoin(list(1:end - 1), ', ') ' or ' list{end}];
end
