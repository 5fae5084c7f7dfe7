function check(condition, what)
%CHECK  Ends with an error unless the condition holds.
if ~all(condition(:)) || isempty(condition)
    error('recontest:check', '%s does not hold', what);
end
end
