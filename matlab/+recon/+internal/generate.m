function k = generate(kind, values, counts, own)
%GENERATE  One of the library's trajectories, [counts ndim]. For internal use.
for i = 1:numel(values)
    values{i} = recon.internal.count(values{i}, sprintf('recon.trajectory.%s, argument %d', strtok(kind, '-'), i));
end
switch kind
    case 'cartesian'
        ndim = numel(counts);
    case 'propeller'
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
