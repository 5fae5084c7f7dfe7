function show(images, varargin)
%SHOW  Shows the magnitude of images upright, as radiologists expect them.
%   recon.show(x) draws |x| in grey in the current axes. The first dimension of x, [nx ny], runs to the right, the
%   second upwards. (MATLAB's imagesc uses the first dimension as rows, so a head lies on its side.) Slices,
%   coils or frames in further dimensions are drawn side by side, from the left and from the top.
%
%   recon.show(x, Name, Value, ...) sets options:
%
%       'Y'      'up' (default): the second dimension runs upwards, as in the figures of Shepp and Logan's phantom
%                'down': the second dimension runs downwards. Use it where y runs from front to back, as in the patient
%                coordinates of DICOM and ISMRMRD. If x runs to the patient's left, the left is then on the right of the
%                picture, which is the radiological convention
%       'Range'  [black white], the magnitudes that are drawn black and white; default [0 max|x|]
%       'Axes'   axes to draw into; default gca
%
%   Example
%       recon.show(recon.phantom.image([128 128]))
%
%   See also recon.grid, recon.cg, recon.combine.
recon.internal.need_arguments(nargin, 1, 'recon.show(x)');
recon.internal.need_numbers(images, 'recon.show: the image');
own = recon.internal.options('recon.show', varargin, {'Y', 'Range', 'Axes'}, {});
images = abs(images);
values = recon.internal.defaults(struct('Y', 'up', 'Range', [0, max(images(:))]), own);
directions = {'up', 'normal'; 'down', 'reverse'};
direction = directions(strcmp(values.Y, directions(:, 1)), 2);
if ~ischar(values.Y) || isempty(direction)
    error('recon:UnknownValue', 'recon.show: give Y as ''up'' or ''down''');
end
range = values.Range;
if isfield(own, 'Range') && (~isfloat(range) || ~isreal(range) || numel(range) ~= 2 || ~(range(1) < range(2)))
    error('recon:InvalidArgument', 'recon.show: give Range as [black white], two rising numbers');
end
if ~(range(1) < range(2))
    % All values are zero or NaN.
    range = [0, 1];
end
if isfield(own, 'Axes')
    spot = own.Axes;
    if ~isscalar(spot) || ~ishghandle(spot) || ~strcmp(get(spot, 'Type'), 'axes')
        error('recon:InvalidArgument', 'recon.show: Axes must be one handle of axes');
    end
else
    spot = gca();
end
[nx, ny, count] = size(images);
columns = ceil(sqrt(count));
rows = ceil(count / columns);
picture = zeros(nx * columns, ny * rows, 'like', images);
for i = 1:count
    column = mod(i - 1, columns);
    row = floor((i - 1) / columns);
    if strcmp(values.Y, 'up')
        row = rows - 1 - row;
    end
    picture(column * nx + (1:nx), row * ny + (1:ny)) = images(:, :, i);
end
imagesc(spot, picture.', double(range));
set(spot, 'YDir', direction{1});
axis(spot, 'image', 'off');
colormap(spot, gray(256));
end
