function name = underlyingType(x)
%UNDERLYINGTYPE  Replaces the function of MATLAB R2020b and newer in tests.
name = class(gather(x));
end
