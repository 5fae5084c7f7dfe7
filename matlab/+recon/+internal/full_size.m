function sizes = full_size(varargin)
%FULL_SIZE  A size as MATLAB's size gives it: without ones at the end, but at least two entries. For internal use.
sizes = recon.internal.trim_ones([varargin{:}]);
sizes(end + 1:2) = 1;
end
