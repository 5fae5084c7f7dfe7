function warn(list)
%WARN  Issues warnings of the library, structures of an identifier and a text. For internal use.
for i = 1:numel(list)
    warning(list(i).identifier, '%s', list(i).text);
end
end
