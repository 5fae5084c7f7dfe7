function sizes = trim_ones(sizes)
%TRIM_ONES  Returns a size without ones at the end. For internal use.
sizes = sizes(1:max([0, find(sizes ~= 1, 1, 'last')]));
end
