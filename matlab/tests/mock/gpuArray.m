classdef gpuArray
%GPUARRAY  Replaces MATLAB's class in tests, with the methods that recon calls. isa is true for this class only.
    properties (SetAccess = private)
        held
    end
    methods
        function x = gpuArray(array)
            x.held = array;
        end
        function array = gather(x)
            array = x.held;
        end
        function name = classUnderlying(x)
            name = class(x.held);
        end
        function varargout = size(x, varargin)
            [varargout{1:max(1, nargout)}] = size(x.held, varargin{:});
        end
        function n = numel(x, varargin)
            n = 1;
            if nargin == 1
                n = numel(x.held);
            end
        end
        function n = ndims(x)
            n = ndims(x.held);
        end
        function flag = isempty(x)
            flag = isempty(x.held);
        end
        function flag = isreal(x)
            flag = isreal(x.held);
        end
        function flag = isfloat(x)
            flag = isfloat(x.held);
        end
        function flag = isnumeric(x)
            flag = isnumeric(x.held);
        end
        function flag = issparse(x)
            flag = issparse(x.held);
        end
        function flag = isvector(x)
            flag = isvector(x.held);
        end
    end
end
