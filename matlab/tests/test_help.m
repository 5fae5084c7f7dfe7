function tests = test_help()
%TEST_HELP  Every function has help in the form of MATLAB's help, and every example in it runs.
tests = {@every_function_has_help, @contents_lists_them, @examples_run, @images_are_shown_upright};
end

function list = functions()
package = fullfile(fileparts(fileparts(mfilename('fullpath'))), '+recon');
folders = {'', 'recon.'; '+trajectory', 'recon.trajectory.'; '+phantom', 'recon.phantom.'};
list = {};
for i = 1:size(folders, 1)
    files = dir(fullfile(package, folders{i, 1}, '*.m'));
    for j = 1:numel(files)
        name = files(j).name(1:end - 2);
        if ~strcmp(name, 'Contents')
            file = fullfile(package, folders{i, 1}, files(j).name);
            list(end + 1, :) = {[folders{i, 2} name], name, file}; %#ok<AGROW>
        end
    end
end
end

function lines = comment_of(file)
lines = strsplit(fileread(file), sprintf('\n'));
lines = lines(2:end);
stop = find(~strncmp(lines, '%', 1), 1);
lines = lines(1:stop - 1);
end

function every_function_has_help()
list = functions();
check(size(list, 1) > 20, 'functions are found');
for i = 1:size(list, 1)
    lines = comment_of(list{i, 3});
    check(~isempty(lines), [list{i, 1} ' has help']);
    check(strncmp(lines{1}, ['%' upper(list{i, 2}) '  '], numel(list{i, 2}) + 3), [list{i, 1} ': its first line']);
    check(~isempty(strfind(strjoin(lines, ' '), list{i, 1})) || ~isempty(strfind(lines{1}, '.')), ... %#ok<STREMP>
        [list{i, 1} ' says how it is called']);
end
check(~isempty(strfind(evalc('help recon.cg'), 'Regularised least squares')), 'help recon.cg'); %#ok<STREMP>
end

function contents_lists_them()
list = functions();
package = fileparts(list{1, 3});
text = fileread(fullfile(package, 'Contents.m'));
for i = 1:size(list, 1)
    check(~isempty(strfind(text, list{i, 2})), [list{i, 1} ' is in Contents']); %#ok<STREMP>
end
end

function examples_run()
list = functions();
count = 0;
for i = 1:size(list, 1)
    lines = comment_of(list{i, 3});
    start = find(~cellfun(@isempty, regexp(lines, '^%   Example', 'once')), 1);
    if isempty(start)
        continue
    end
    code = lines(start + 1:end);
    code = code(1:find(cellfun(@isempty, regexp([code, {'%'}], '^%       ', 'once')), 1) - 1);
    code = regexprep(code, '^%', '');
    % Without the lines that draw.
    code = code(cellfun(@isempty, regexp(code, '^ *(recon\.show|plot)\(', 'once')));
    run_example(strjoin(code, sprintf('\n')));
    count = count + 1;
end
check(count >= 12, 'examples are found');
end

function run_example(code)
evalc(code);
end

function images_are_shown_upright()
% Only recon.show may draw images: imagesc(abs(x)) lays the head on its side.
list = functions();
folder = fileparts(fileparts(list{1, 3}));
examples = dir(fullfile(folder, 'examples', '*.m'));
panels = fullfile(folder, 'examples', 'private', 'panels.m');
page = fullfile(fileparts(folder), 'docs', 'matlab.md');
examples = arrayfun(@(f) fullfile(folder, 'examples', f.name), examples, 'UniformOutput', false);
files = [list(:, 3); {panels; page}; examples];
count = 0;
for i = 1:numel(files)
    lines = strsplit(fileread(files{i}), sprintf('\n'));
    if strcmp(files{i}(end - 2:end), '.md')
        lines = lines(strncmp(lines, '    ', 4));
    end
    text = strjoin(lines, ' ');
    count = count + ~isempty(strfind(text, 'recon.show(')); %#ok<STREMP>
    check(~isempty(strfind(files{i}, 'show.m')) || isempty(strfind(text, 'imagesc(')), ... %#ok<STREMP>
        [files{i} ' shows images by recon.show']);
end
check(count >= 6, 'images are shown');
end
