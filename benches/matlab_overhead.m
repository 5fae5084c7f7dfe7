function matlab_overhead(program, rounds)
%MATLAB_OVERHEAD  How much longer E*x and E'*y take in MATLAB or Octave than the library's own calls.
%   matlab_overhead(program, rounds) times radial2d (504 spokes x 512 samples to 256 x 256, one coil, single precision)
%   here and by `recon bench`, the program named, in turn; it prints medians of `rounds` rounds and their ratio.
%   `make bench-matlab` calls it.
k = recon.trajectory.radial(504, 512, 'Precision', 'single');
E = recon.Encoding(k, [256 256], 'Tolerance', 4e-4, 'Device', 'cpu');
x = complex(randn(256, 'single'), randn(256, 'single'));
y = E * x;
operations = {'adjoint', @() E' * y; 'forward', @() E * x};
for i = 1:2
    [name, f] = operations{i, :};
    here = zeros(1, rounds);
    there = zeros(1, rounds);
    for round = 1:rounds
        here(round) = median_of(f);
        there(round) = program_median(program, name);
    end
    fprintf('%s: %.3f ms here, %.3f ms by the program, ratio %.3f (of each round: %s)\n', name, median(here), ...
        median(there), median(here ./ there), num2str(here ./ there, ' %.3f'));
end
end

function ms = median_of(f)
runs = 41;
times = zeros(1, runs);
f();
for i = 1:runs
    start = tic();
    result = f(); %#ok<NASGU>
    times(i) = 1e3 * toc(start);
end
ms = median(times);
end

function ms = program_median(program, operation)
command = sprintf('"%s" bench radial2d --json --tolerance 4e-4 --device cpu --runs 41 --operation %s', program, operation);
[status, text] = system(command);
if status ~= 0
    error('recon:Bench', '%s: %s', command, text);
end
found = regexp(text, '"median_ms":([0-9.]+)', 'tokens', 'once');
ms = str2double(found{1});
end
