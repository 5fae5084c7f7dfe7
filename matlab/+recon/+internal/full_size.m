function sizes = full_size(varargin)
%FULL_SIZE  Sizes in a row, without ones at the end, as MATLAB counts dimensions: at least two. For internal use.
sizes = recon.internal.trim([varargin{:}]);
sizes(end + 1:2) = 1;
end
