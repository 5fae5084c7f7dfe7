function thrown = catch_error(f, p)
%CATCH_ERROR  Calls f(p), and returns its error, or []. No error may pass through the solver. For internal use.
thrown = [];
try
    f(p);
catch e
    thrown = e;
end
end
