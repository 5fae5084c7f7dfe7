function text = last_dimension(sizes, wanted, name)
%LAST_DIMENSION  How to permute an array so that its last dimension is one of those wanted. For internal use.
%   text is '' where no permutation does that.
text = '';
found = find(ismember(sizes, wanted), 1);
if ~isempty(found) && found < numel(sizes)
    text = sprintf(': permute(%s, %s)', name, mat2str([1:found - 1, found + 1:numel(sizes), found]));
end
end
