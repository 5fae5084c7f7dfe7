classdef Plan < handle
%PLAN  Owner of one plan of the library: it is freed with the last copy of this handle.
%   Made by recon.Encoding. For internal use.
    properties
        id = []   % uint64, of recon_mex; [] once released
    end
    methods
        function plan = Plan(geometry, options)
            plan.id = recon_mex('create', geometry, options);
        end
        function release(plan)
            if ~isempty(plan.id)
                id = plan.id;
                plan.id = [];
                recon_mex('destroy', id);
            end
        end
        function delete(plan)
            plan.release();
        end
    end
end
