function value = one_number(value, what)
%ONE_NUMBER  Ends with an error unless value is one real number. recon_mex checks the rest. For internal use.
if ~isnumeric(value) || ~isreal(value) || ~isscalar(value) || issparse(value)
    error('recon:InvalidArgument', '%s: this is a %s %s; give one number', what, ...
        recon.internal.size_text(size(value)), class(value));
end
value = double(value);
end
