function name = underlyingType(x)
%UNDERLYINGTYPE  A stand-in for that of MATLAB R2020b and later.
name = class(gather(x));
end
