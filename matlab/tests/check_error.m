function check_error(f, identifier, words)
%CHECK_ERROR  Checks that f() ends with an error of this identifier.
%   Its message must have the words, and no names of the C API.
try
    f();
catch e
    if ~strcmp(e.identifier, identifier)
        error('recontest:identifier', '%s: the error is %s (%s), %s was expected', func2str(f), e.identifier, ...
            e.message, identifier);
    end
    if nargin > 2 && isempty(strfind(e.message, words)) %#ok<STREMP>
        error('recontest:message', '%s: "%s" is not in "%s"', func2str(f), words, e.message);
    end
    % Names of environment variables and of the MEX file are not of the C API.
    names = regexp(e.message, '\<(recon_[a-z]\w*|RECON_[A-Z]\w*)\>', 'match');
    names = setdiff(names, {'recon_mex', 'RECON_SIMD', 'RECON_CACHE_DIR', 'RECON_NVRTC'});
    if ~isempty(names)
        error('recontest:message', '%s: "%s" names %s of the C API', func2str(f), e.message, names{1});
    end
    return
end
error('recontest:noerror', '%s: no error, %s was expected', func2str(f), identifier);
end
