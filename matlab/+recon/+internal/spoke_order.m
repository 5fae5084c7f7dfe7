function kind = spoke_order(name, own)
%SPOKE_ORDER  Returns the name of a trajectory with its option 'Order', as recon_mex expects it. For internal use.
kind = name;
if isfield(own, 'Order')
    switch own.Order
        case 'golden'
            kind = [name '-golden'];
        case 'linear'
        otherwise
            error('recon:UnknownValue', 'recon.trajectory.%s: give the Order ''linear'' or ''golden''', name);
    end
end
end
