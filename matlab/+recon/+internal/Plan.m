classdef Plan < handle
%PLAN  Owner of one plan of the library: it is freed with the last copy of this handle.
%   Made by recon.Encoding. For internal use.
    properties
        id = []   % uint64, of recon_mex; [] once released
        warnings  % what the library warns of: identifier, text
    end
    methods
        function plan = Plan(geometry, options)
            [plan.id, plan.warnings] = recon_mex('create', geometry, options);
        end
        function warn(plan)
            for i = 1:numel(plan.warnings)
                warning(plan.warnings(i).identifier, '%s', plan.warnings(i).text);
            end
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
