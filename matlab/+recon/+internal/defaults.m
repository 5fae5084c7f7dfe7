function values = defaults(values, own)
%DEFAULTS  Values, and in their place those that were given. For internal use.
given = fieldnames(own);
for i = 1:numel(given)
    values.(given{i}) = own.(given{i});
end
end
