function panels(name, folder, images, titles, range, extra)
%PANELS  Shows images side by side, all with the same range of magnitudes, and writes them to folder/name.png.
%   extra is an optional function. It gets axes to the right of the last image, and draws into them.
%   This works in MATLAB and in Octave, with or without a display.
columns = numel(images) + (nargin > 5);
side = 250;
figure_size = [columns * side, side + 36];
% Octave warns that figures by gnuplot are less interactive.
quiet = warning('off', 'Octave:gnuplot-graphics');
restore = onCleanup(@() warning(quiet));
if exist('OCTAVE_VERSION', 'builtin')
    display = have_window_system();
    if ~display && any(strcmp(available_graphics_toolkits(), 'gnuplot'))
        % Octave's other toolkits need a display.
        graphics_toolkit('gnuplot');
    end
else
    display = feature('ShowFigureWindows');
end
switches = {'off', 'on'};
window = figure('Visible', switches{1 + display}, 'Name', name, 'NumberTitle', 'off', 'Color', 'white', ...
    'Position', [50, 50, figure_size], 'PaperUnits', 'inches', 'PaperPosition', [0, 0, figure_size / 100], ...
    'PaperSize', figure_size / 100);
for i = 1:columns
    spot = [(i - 1 + 0.02) / columns, 0.01, 0.96 / columns, side / figure_size(2) - 0.01];
    if i > numel(images)
        spot = [(i - 1 + 0.24) / columns, 0.16, 0.71 / columns, side / figure_size(2) - 0.16];
        extra(axes('Parent', window, 'Position', spot));
        continue
    end
    spot = axes('Parent', window, 'Position', spot);
    recon.show(images{i}, 'Axes', spot, 'Range', range);
    title(spot, titles{i}, 'FontSize', 12, 'FontWeight', 'normal', 'Interpreter', 'none');
end
print(window, fullfile(folder, [name, '.png']), '-dpng', '-r150');
if ~display
    close(window);
end
end
