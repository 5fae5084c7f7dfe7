function k = make_trajectory(kind, values, counts, own)
%MAKE_TRAJECTORY  Returns a trajectory of the library, of size [counts ndim]. For internal use.
for i = 1:numel(values)
    what = sprintf('argument %d', i);
    if strcmp(kind, 'propeller-scan') && i == 4
        what = 'Matrix';
    end
    values{i} = recon.internal.one_number(values{i}, sprintf('recon.trajectory.%s, %s', strtok(kind, '-'), what));
end
switch kind
    case 'cartesian'
        ndim = numel(counts);
    case {'propeller', 'propeller-scan'}
        counts = [values{3}, values{2}, values{1}];
        ndim = 2;
    case {'stackofstars', 'stackofstars-golden'}
        counts = [values{2}, values{1}, values{3}];
        ndim = 3;
    otherwise
        counts = [values{2}, values{1}];
        ndim = 2 + strcmp(kind, 'radial3d');
end
precision = 'double';
if isfield(own, 'Precision')
    precision = own.Precision;
end
k = recon_mex('trajectory', kind, precision, [values{:}], [counts, ndim]);
end
