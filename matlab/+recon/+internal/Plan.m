classdef Plan < handle
%PLAN  Owner of one plan of the library. The plan is freed with the last copy of this handle.
%   recon.Encoding makes it. For internal use.
    properties
        id = []   % the handle of recon_mex, uint64; [] after release
        warnings  % the library's warnings: identifier, text
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
