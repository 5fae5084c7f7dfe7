function tests = test_show()
%TEST_SHOW  Images are drawn upright.
tests = {@the_head_stands_upright, @pages_stand_side_by_side, @wrong_arguments};
end

function picture = drawn(varargin)
% The picture as it is seen, from its top row; and the range of grey.
quiet = [warning('off', 'Octave:gnuplot-graphics'), warning('off', 'Octave:some-toolkit')];
restore = onCleanup(@() warning(quiet));
window = figure('Visible', 'off');
closing = onCleanup(@() close(window));
spot = axes('Parent', window);
recon.show(varargin{:}, 'Axes', spot);
picture.rows = get(findobj(spot, 'Type', 'image'), 'CData');
if strcmp(get(spot, 'YDir'), 'normal')
    picture.rows = flipud(picture.rows);
end
picture.range = get(spot, 'CLim');
picture.grey = isequal(get(spot, 'Colormap'), gray(256));
end

function the_head_stands_upright()
% Shepp and Logan's head is longer than wide. The round grey ellipse of density 0.3 is above the middle, and the three
% small lesions are below it. The larger dark ellipse is on the left.
x = recon.phantom.image([101 121]);
picture = drawn(x .* exp(1i));
rows = picture.rows;
check(isequal(size(rows), [121 101]), 'the first dimension runs to the right');
at = @(x, y) rows(round(61 - y * 60.5), round(51 + x * 50.5));
check(abs(at(0, 0.4) - 0.3) < 1e-6 && abs(at(0, -0.4) - 0.2) < 1e-6, 'the grey is above');
check(abs(at(0.06, -0.605) - 0.3) < 1e-6 && abs(at(0.06, 0.76) - 0.2) < 1e-6, 'the lesions are below');
check(abs(at(-0.36, 0)) < 1e-6 && abs(at(0.36, 0) - 0.2) < 1e-6, 'the larger ellipse is on the left');
check(max(abs(picture.range - [0, max(x(:))])) < 1e-12 && picture.grey, 'from black to white');
down = drawn(x, 'Y', 'down', 'Range', [0.1, 0.5]);
check(max(max(abs(down.rows - flipud(rows)))) < 1e-12 && isequal(down.range, [0.1, 0.5]), 'y downwards');
end

function pages_stand_side_by_side()
x = rand(4, 3, 5);
rows = [x(:, :, 1).', x(:, :, 2).', x(:, :, 3).'; x(:, :, 4).', x(:, :, 5).', zeros(3, 4)];
down = drawn(x, 'Y', 'down');
check(isequal(down.rows, rows), 'from the left, and from the top');
up = drawn(x);
check(isequal(up.rows(1:3, 5:8), flipud(x(:, :, 2).')) && isequal(up.rows(4:6, 1:4), flipud(x(:, :, 4).')), ...
    'in the same order where y runs upwards');
check(isequal(drawn(zeros(4)).range, [0 1]), 'nothing at all');
end

function wrong_arguments()
check_error(@() recon.show(), 'recon:InvalidArgument', 'recon.show(x)');
check_error(@() recon.show('x'), 'recon:InvalidArgument', 'char');
check_error(@() recon.show(ones(4), 'Y', 'left'), 'recon:UnknownValue', '''down''');
check_error(@() recon.show(ones(4), 'Y', 3), 'recon:UnknownValue', '''down''');
check_error(@() recon.show(ones(4), 'Range', [1 0]), 'recon:InvalidArgument', 'Range');
check_error(@() recon.show(ones(4), 'Range', 3), 'recon:InvalidArgument', 'Range');
check_error(@() recon.show(ones(4), 'Axes', 'here'), 'recon:InvalidArgument', 'Axes');
check_error(@() recon.show(ones(4), 'Axes', -17), 'recon:InvalidArgument', 'Axes');
end
