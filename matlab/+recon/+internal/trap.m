function thrown = trap(f, p)
%TRAP  f(p); the error that it ends with, or []. For internal use: no error may pass through the solver.
thrown = [];
try
    f(p);
catch e
    thrown = e;
end
end
