function tests = test_progress()
%TEST_PROGRESS  Progress functions of recon.cg: what they are called with, and how they stop it.
tests = {@function_is_called, @printed, @errors_stop_it, @functions_may_do_anything};
end

function function_is_called()
global recontest_calls %#ok<GVMIS>
recontest_calls = {};
k = recon.trajectory.radial(10, 20);
d = recon.phantom.kspace(k, [10 10], 'Coils', 2);
[~, report] = recon.cg(k, d, [10 10], 'Iterations', 4, 'Progress', @note);
check(numel(recontest_calls) == 10, 'before the first and after each iteration of each image');
first = recontest_calls{1};
last = recontest_calls{end};
check(first.image == 1 && first.images == 2 && first.iteration == 0 && first.iterations == 4, 'the first');
check(first.residual == 1 && last.image == 2 && last.iteration == 4, 'the last');
check(last.residual == report.residuals(5, 2), 'residuals');
clear global recontest_calls
end

function note(p)
global recontest_calls %#ok<GVMIS>
recontest_calls{end + 1} = p;
end

function printed()
k = recon.trajectory.radial(10, 20); %#ok<NASGU>
text = evalc('recon.cg(k, ones(20, 10), [10 10], ''Iterations'', 3, ''Progress'', true);');
check(~isempty(strfind(text, 'iteration 3 of 3')), 'it is printed'); %#ok<STREMP>
text = evalc('recon.cg(k, ones(20, 10), [10 10], ''Iterations'', 3, ''Progress'', false);');
check(isempty(text), 'it is not printed unless asked for');
end

function errors_stop_it()
k = recon.trajectory.radial(10, 20);
d = ones(20, 10);
check_error(@() recon.cg(k, d, [10 10], 'Progress', @stop), 'mine:stop', 'after 2');
x = recon.cg(k, d, [10 10], 'Iterations', 2);
check(all(isfinite(x(:))), 'and the next works');
end

function stop(p)
if p.iteration == 2
    error('mine:stop', 'after %d', p.iteration);
end
end

function functions_may_do_anything()
% Deletes the operator during its solution, makes other operators, uses the operator, and solves with it.
k = recon.trajectory.radial(10, 20);
d = recon.phantom.kspace(k, [10 10]);
expected = recon.cg(k, d, [10 10], 'Iterations', 3);
before = recon_mex('plans');
E = recon.Encoding(k, [10 10]);
check(isequal(recon.cg(E, d, 'Iterations', 3, 'Progress', @(p) delete(E)), expected), 'the solution is not disturbed');
check_error(@() E * ones(10), 'recon:Deleted');
check(recon_mex('plans') == before, 'the plan goes afterwards');
E = recon.Encoding(k, [10 10]);
check(isequal(recon.cg(E, d, 'Iterations', 3, 'Progress', @(p) make_many(k)), expected), 'nor by other operators');
check(isequal(recon.cg(E, d, 'Iterations', 3, 'Progress', @(p) E * ones(10)), expected), 'nor by its use');
within = @(p) recon.cg(E, d, 'Iterations', 1);
check(isequal(recon.cg(E, d, 'Iterations', 3, 'Progress', within), expected), 'nor by another');
end

function make_many(k)
made = cell(1, 50);
for i = 1:50
    made{i} = recon.Encoding(k, [8 8]);
end
end
