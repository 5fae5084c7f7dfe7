function text = size_text(numbers)
%SIZE_TEXT  Returns a size as text: 256 x 256 x 8. For internal use.
text = strjoin(arrayfun(@(n) sprintf('%d', n), numbers, 'UniformOutput', false), ' x ');
end
