function values = defaults(values, own)
%DEFAULTS  Default values, replaced by the values that the user gave. For internal use.
given = fieldnames(own);
for i = 1:numel(given)
    values.(given{i}) = own.(given{i});
end
end
