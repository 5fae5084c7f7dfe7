function sizes = trim(sizes)
%TRIM  A size without the ones at its end. For internal use.
sizes = sizes(1:max([0, find(sizes ~= 1, 1, 'last')]));
end
