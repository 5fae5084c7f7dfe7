function check_error(f, identifier, words)
%CHECK_ERROR  f() ends with an error of this identifier, whose message holds the words.
try
    f();
catch e
    if ~strcmp(e.identifier, identifier)
        error('recontest:identifier', '%s: the error is %s (%s), %s was expected', func2str(f), e.identifier, e.message, identifier);
    end
    if nargin > 2 && isempty(strfind(e.message, words)) %#ok<STREMP>
        error('recontest:message', '%s: "%s" is not in "%s"', func2str(f), words, e.message);
    end
    return
end
error('recontest:noerror', '%s: no error, %s was expected', func2str(f), identifier);
end
