function check(condition, what)
%CHECK  A condition holds.
if ~all(condition(:)) || isempty(condition)
    error('recontest:check', '%s does not hold', what);
end
end
