function values = defaults(values, own)
%DEFAULTS  Returns default values, replaced by the user's values. For internal use.
given = fieldnames(own);
for i = 1:numel(given)
    values.(given{i}) = own.(given{i});
end
end
