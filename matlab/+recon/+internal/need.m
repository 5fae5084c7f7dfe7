function need(given, wanted, usage)
%NEED  Refuses a call with too few arguments. For internal use.
if given < wanted
    error('recon:InvalidArgument', 'too few arguments: call it as %s', usage);
end
end
