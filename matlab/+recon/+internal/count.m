function value = count(value, what)
%COUNT  Refuses what is not one real number; recon_mex checks the rest. For internal use.
if ~isnumeric(value) || ~isreal(value) || ~isscalar(value) || issparse(value)
    error('recon:InvalidArgument', '%s: this is a %s %s; give one number', what, ...
        recon.internal.sizes(size(value)), class(value));
end
value = double(value);
end
