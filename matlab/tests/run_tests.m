function run_tests(varargin)
%RUN_TESTS  Runs the tests of +recon: all test_*.m beside this file, or the files named as arguments.
%   A test file returns its tests, functions without arguments. run_tests ends with an error if a test failed.
%
%   Environment variables:
%
%       RECON_TEST_MEX        the folder of recon_mex; default: the folder above
%       RECON_TEST_REFERENCE  the folder with the files of the program reference; without it test_c_values is skipped
%       RECON_TEST_SEED       the seed of random input; default: the time. It is printed
here = fileparts(mfilename('fullpath'));
addpath(fileparts(here));
addpath(here);
if ~isempty(getenv('RECON_TEST_MEX'))
    addpath(getenv('RECON_TEST_MEX'));
end
if nargin == 0
    files = dir(fullfile(here, 'test_*.m'));
    varargin = arrayfun(@(f) f.name(1:end - 2), files, 'UniformOutput', false);
    last = strcmp(varargin, 'test_clearing');
    varargin = [varargin(~last); varargin(last)];
end
seed = str2double(getenv('RECON_TEST_SEED'));
if isnan(seed)
    seed = floor(1e6 * now());
end
% Octave and MATLAB set the seed in different ways.
seed = mod(seed, 2^31);
if exist('OCTAVE_VERSION', 'builtin')
    rand('state', seed); %#ok<RAND>
    randn('state', seed); %#ok<RAND>
else
    rng(seed);
end
fprintf('%s, RECON_TEST_SEED=%d\n', which('recon_mex'), seed);
% Many tests have only a few samples around the centre. test_warnings turns this warning on.
quiet = warning('off', 'recon:Extent');
restore = onCleanup(@() warning(quiet));
passed = 0;
failed = 0;
skipped = 0;
for i = 1:numel(varargin)
    tests = feval(varargin{i});
    for j = 1:numel(tests)
        name = [varargin{i} ': ' func2str(tests{j})];
        try
            tests{j}();
            passed = passed + 1;
            fprintf('%s ... ok\n', name);
        catch e
            if strcmp(e.identifier, 'recontest:skip')
                skipped = skipped + 1;
                fprintf('skipped: %s, %s\n', name, e.message);
            else
                failed = failed + 1;
                fprintf('%s ... FAILED\n%s: %s\n', name, e.identifier, e.message);
                for s = 1:numel(e.stack)
                    fprintf('    %s, line %d\n', e.stack(s).name, e.stack(s).line);
                end
            end
        end
    end
end
fprintf('%d passed, %d failed, %d skipped\n', passed, failed, skipped);
if failed || passed == 0
    error('recontest:failed', '%d tests failed, %d passed', failed, passed);
end
end
