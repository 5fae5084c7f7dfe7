function sizes = full_size(varargin)
%FULL_SIZE  Returns a size in MATLAB's form: without ones at the end, but with at least two entries. For internal use.
sizes = recon.internal.trim_ones([varargin{:}]);
sizes(end + 1:2) = 1;
end
