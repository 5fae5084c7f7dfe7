function text = last_dimension(sizes, wanted, name)
%LAST_DIMENSION  Returns the permutation that makes the last dimension one of the required ones. For internal use.
%   text is '' if no permutation does that.
text = '';
found = find(ismember(sizes, wanted), 1);
if ~isempty(found) && found < numel(sizes)
    text = sprintf(': permute(%s, %s)', name, mat2str([1:found - 1, found + 1:numel(sizes), found]));
end
end
