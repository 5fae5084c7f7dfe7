function [own, others] = options(name, list, own_names, other_names)
%OPTIONS  Sorts name-value arguments: own ones into a structure, others into a list to be passed on.
%   Names are compared without regard to case. A structure of options may stand for the list. For internal use.
if numel(list) == 1 && isstruct(list{1}) && numel(list{1}) == 1
    list = reshape([fieldnames(list{1}), struct2cell(list{1})].', 1, []);
end
own = struct();
others = {};
known = [own_names, other_names];
for i = 1:2:numel(list)
    given = list{i};
    if isstring(given) && isscalar(given)
        given = char(given);
    end
    if ~ischar(given) || size(given, 1) ~= 1
        error('recon:InvalidArgument', '%s: argument %d of the options is a %s: options are pairs of a name and a value', ...
            name, i, class(given));
    end
    match = find(strcmpi(given, known), 1);
    if isempty(match)
        error('recon:UnknownOption', '%s: there is no option ''%s''. Options are: %s', name, given, strjoin(known, ', '));
    end
    if i == numel(list)
        error('recon:InvalidArgument', '%s: the option ''%s'' has no value', name, given);
    end
    value = list{i + 1};
    if isstring(value) && isscalar(value)
        value = char(value);
    end
    if match <= numel(own_names)
        own.(known{match}) = value;
    else
        others(end + 1:end + 2) = {known{match}, value};
    end
end
end
