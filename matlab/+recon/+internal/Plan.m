classdef Plan < handle
%PLAN  Owner of one plan of the library. The plan is freed with the last copy of this handle.
%   recon.Encoding creates it. The changeable state of a plan is stored here, since all copies of an operator share it.
%   For internal use.
    properties
        id = []     % the handle of recon_mex, uint64; [] after release
        warnings    % the library's warnings: identifier, text
        geometry    % arguments of the plan, in the form that recon_mex expects
        sampleSize  % shape of the trajectory's samples
    end
    methods
        function plan = Plan(geometry, options)
            [plan.id, plan.warnings] = recon_mex('create', geometry, options);
            plan.geometry = geometry;
        end
        function set_trajectory(plan, geometry, samples)
            plan.warnings = recon_mex('set_trajectory', plan.id, geometry);
            if isempty(geometry.maps)
                geometry.maps = plan.geometry.maps;
            end
            plan.geometry = geometry;
            plan.sampleSize = samples;
        end
        function set_weights(plan, weights)
            recon_mex('set_weights', plan.id, weights);
            plan.geometry.weights = weights;
        end
        function set_maps(plan, maps)
            recon_mex('set_maps', plan.id, maps);
            plan.geometry.maps = maps;
        end
        function warn(plan)
            recon.internal.warn(plan.warnings);
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
