function tests = test_warnings()
%TEST_WARNINGS  Warnings are given where an image may be wrong, once for each operator.
tests = {@coordinates_divided_once_too_often, @ordinary_trajectories_say_nothing, @once_for_an_operator, ...
    @a_narrow_window_is_warned_of, @errors_of_warnings_leave_nothing, @all_are_given_out};
end

function [count, text] = warnings_of(identifier, f)
% How many warnings f() gave, which must have this identifier. A program can only read lastwarn and the printed text.
lastwarn('', '');
printed = evalc('f();');
[text, last] = lastwarn();
count = numel(regexp(printed, '[Ww]arning: (?!called from)'));
check(count == 0 || strcmp(last, identifier), [identifier ' is the warning, not ' last]);
end

function restore = heard()
before = warning('on', 'recon:Extent');
restore = onCleanup(@() warning(before));
end

function list = functions_of(k, d, n)
maps = recon.phantom.coilmaps(n, 2);
list = {
    @() recon.cg(k, d, n, 'Iterations', 1)
    @() recon.cg(k, d, n, 'Iterations', 1, 'Weights', 'jackson')
    @() recon.grid(k, d, n)
    @() recon.fhd(k, d, n)
    @() recon.fhd(single(k), d, n)
    @() recon.Encoding(k, n)
    @() recon.Encoding(k, n, 'Weights', 'jackson')
    @() recon.Encoding(k, [], 'Maps', maps)
    @() recon.density(k, n)
    };
end

function coordinates_divided_once_too_often()
% These data look like a scan of the centre of k-space, and the image is blurred. Each function warns once, and the
% warning can be turned off.
restore = heard(); %#ok<NASGU>
n = [32 24];
k = recon.trajectory.radial(20, 64) / 32;
d = complex(randn(64, 20, 2), randn(64, 20, 2));
list = functions_of(k, d, n);
for i = 1:numel(list)
    [count, text] = warnings_of('recon:Extent', list{i});
    check(count == 1, sprintf('%s warns %d times', func2str(list{i}), count));
    check(~isempty(strfind(text, '0.0156')) && ~isempty(strfind(text, 'cycles per voxel')), text); %#ok<STREMP>
end
warning('off', 'recon:Extent');
for i = 1:numel(list)
    check(warnings_of('recon:Extent', list{i}) == 0, [func2str(list{i}) ' is quiet']);
end
end

function ordinary_trajectories_say_nothing()
restore = heard(); %#ok<NASGU>
n = [32 24];
trajectories = {recon.trajectory.radial(20, 64), recon.trajectory.spiral(8, 100, 4), recon.trajectory.cartesian(n), ...
    recon.trajectory.rosette(20, 100, 3, 2), recon.trajectory.propeller(6, 8, 32), recon.trajectory.radial(20, 64) / 3};
for i = 1:numel(trajectories)
    k = trajectories{i};
    samples = size(k);
    list = functions_of(k, complex(randn([samples(1:end - 1) 2]), 1), n);
    for j = 1:numel(list)
        check(warnings_of('', list{j}) == 0, sprintf('%s is quiet for trajectory %d', func2str(list{j}), i));
    end
end
end

function once_for_an_operator()
restore = heard(); %#ok<NASGU>
k = recon.trajectory.radial(20, 64) / 32;
made = [];
    function make()
        made = recon.Encoding(k, [32 24]);
    end
check(warnings_of('recon:Extent', @make) == 1, 'when it is made');
calls = {@() made * ones(32, 24), @() made' * ones(64, 20), @() made.normal(ones(32, 24)), ...
    @() made.rhs(ones(64, 20)), @() recon.cg(made, ones(64, 20), 'Iterations', 1), ...
    @() recon.grid(made, ones(64, 20)), @() made.info(), @() made'};
for i = 1:numel(calls)
    check(warnings_of('', calls{i}) == 0, [func2str(calls{i}) ' does not warn again']);
end
end

function a_narrow_window_is_warned_of()
% Without a tolerance, but not with one that is met.
before = warning('on', 'recon:Tolerance');
restore = onCleanup(@() warning(before));
k = recon.trajectory.radial(15, 32);
[count, text] = warnings_of('recon:Tolerance', @() recon.Encoding(k, [16 16], 'Width', 3, 'Oversampling', 2));
check(count == 1 && ~isempty(strfind(text, '3 cells')), text); %#ok<STREMP>
check(warnings_of('recon:Tolerance', @() recon.Encoding(k, [16 16], 'Width', 3, 'Tolerance', 0.1)) == 0, 'named');
check(warnings_of('recon:Tolerance', @() recon.Encoding(k, [16 16], 'Width', 8, 'Oversampling', 2)) == 0, 'kept');
end

function errors_of_warnings_leave_nothing()
% Where the user turns the warning into an error, the error has its identifier, and no plan is left.
k = recon.trajectory.radial(20, 64) / 32;
before = recon_mex('plans');
state = warning('error', 'recon:Extent'); %#ok<CTPCT>
restore = onCleanup(@() warning(state));
for i = 1:3
    check_error(@() recon.Encoding(k, [32 24]), 'recon:Extent', 'cycles per voxel');
end
check(recon_mex('plans') == before, 'nothing is left');
end

function all_are_given_out()
% All warnings of the library are given, each with its identifier.
restore = heard(); %#ok<NASGU>
plan = recon.internal.Plan(struct('k', zeros(4, 2), 'dims', [8 8], 'precision', 'double'), struct());
check(numel(plan.warnings) == 1 && strcmp(plan.warnings.identifier, 'recon:Extent'), 'all samples at the centre');
plan.warnings(2) = struct('identifier', 'recon:Tolerance', 'text', '100 % cannot be kept');
[count, text] = warnings_of('recon:Tolerance', @() plan.warn());
check(count == 2 && strcmp(text, '100 % cannot be kept'), 'both, as they are written');
[~, list] = recon_mex('create', struct('k', 0.4 * [1 1; -1 -1], 'dims', [8 8], 'precision', 'double'), struct());
check(isstruct(list) && isempty(list), 'none');
end
