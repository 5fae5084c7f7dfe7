function text = row(numbers)
%ROW  Whole numbers as they are written in code: [2 1 3]. For internal use.
text = ['[' strjoin(arrayfun(@(n) sprintf('%d', n), numbers, 'UniformOutput', false), ' ') ']'];
end
