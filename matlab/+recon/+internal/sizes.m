function text = sizes(numbers)
%SIZES  A size in words: 256 x 256 x 8. For internal use.
text = strjoin(arrayfun(@(n) sprintf('%d', n), numbers, 'UniformOutput', false), ' x ');
end
