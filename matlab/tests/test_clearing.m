function tests = test_clearing()
%TEST_CLEARING  clear mex and clear all free all plans. These tests run last: they clear the tests' functions too.
tests = {@clear_mex_frees, @clear_all_frees, @clear_all_within_a_call};
end

function clear_mex_frees()
E = recon.Encoding(zeros(10, 2), [8 8]);
% In Octave, clear mex clears a variable with the name mex.
if exist('OCTAVE_VERSION', 'builtin')
    clear -f recon_mex
else
    clear mex %#ok<CLMEX>
end
check(recon_mex('plans') == 0, 'clear mex frees all plans');
check_error(@() E * ones(8), 'recon:Deleted', 'clear mex');
F = recon.Encoding(zeros(10, 2), [8 8]);
check(isequal(size(F * ones(8)), [10 1]), 'new ones work');
check_error(@() E * ones(8), 'recon:Deleted');
end

function clear_all_frees()
inner();
check(recon_mex('plans') == 0, 'clear all frees');
end

function inner()
E = recon.Encoding(zeros(10, 2), [8 8]);
check(isequal(size(E * ones(8)), [10 1]), 'it works');
clear all %#ok<CLALL>
end

function clear_all_within_a_call()
k = recon.trajectory.radial(10, 20);
d = recon.phantom.kspace(k, [10 10]);
expected = recon.cg(k, d, [10 10], 'Iterations', 3);
x = recon.cg(k, d, [10 10], 'Iterations', 3, 'Progress', @(p) evalin('base', 'clear all'));
check(isequal(x, expected), 'the solution is not disturbed');
check(recon_mex('plans') == 0, 'and nothing is left');
end
