function need_arguments(given, wanted, usage)
%NEED_ARGUMENTS  Ends with an error if a call has too few arguments. For internal use.
if given < wanted
    error('recon:InvalidArgument', 'too few arguments: call it as %s', usage);
end
end
