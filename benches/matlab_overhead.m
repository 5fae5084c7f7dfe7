function matlab_overhead(library, calls)
%MATLAB_OVERHEAD  How much longer E*x and E'*y take than the C calls inside them.
%   matlab_overhead(library, calls) builds c_call_mex.c with the given static library. It then runs the operators and
%   the C calls in turns in this process, for radial2d (504 spokes x 512 samples to 256 x 256, one coil, single
%   precision). It prints the median time of each and the median of their ratios. `make bench-matlab` calls it.
here = fileparts(mfilename('fullpath'));
work = tempname();
mkdir(work);
source = fullfile(here, 'c_call_mex.c');
include = fullfile(here, '..', 'include');
command = sprintf(['mkoctfile --mex -O2 "-I%s" "%s" "%s" -Wl,--exclude-libs,ALL -lgcc_s -lutil -lrt -lpthread -lm ' ...
    '-ldl -lc -o "%s"'], include, source, library, fullfile(work, 'c_call_mex.mex'));
if system(command) ~= 0
    error('recon:Bench', '%s failed', command);
end
addpath(work);
k = recon.trajectory.radial(504, 512, 'Precision', 'single');
E = recon.Encoding(k, [256 256], 'Tolerance', 4e-4, 'Device', 'cpu');
x = complex(randn(256, 'single'), randn(256, 'single'));
y = E * x;
operations = {'E'' * y', @() E' * y, 0; 'E * x', @() E * x, 1};
for i = 1:2
    [name, f, forward] = operations{i, :};
    times = zeros(calls, 2);
    for j = 1:calls
        start = tic();
        result = f(); %#ok<NASGU>
        times(j, 1) = 1e3 * toc(start);
        times(j, 2) = c_call_mex(k, 4e-4, forward);
    end
    fprintf('%s: %.3f ms, the C call %.3f ms, ratio %.3f\n', name, median(times(:, 1)), median(times(:, 2)), ...
        median(times(:, 1) ./ times(:, 2)));
end
c_call_mex();
end
