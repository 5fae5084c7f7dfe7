function k = generate(kind, values, counts, own)
%GENERATE  One of the library's trajectories, [counts ndim]. For internal use.
for i = 1:numel(values)
    if ~isfloat(values{i}) || ~isscalar(values{i}) || ~isreal(values{i}) || issparse(values{i})
        error('recon:InvalidArgument', 'recon.trajectory.%s: argument %d is a %s %s: give one real number', ...
            strtok(kind, '-'), i, recon.internal.sizes(size(values{i})), class(values{i}));
    end
end
switch kind
    case 'cartesian'
        ndim = numel(counts);
    case 'propeller'
        counts = [values{3}, values{2}, values{1}];
        ndim = 2;
    otherwise
        counts = [values{2}, values{1}];
        ndim = 2 + strcmp(kind, 'radial3d');
end
precision = 'double';
if isfield(own, 'Precision')
    precision = own.Precision;
end
k = recon_mex('trajectory', kind, precision, double([values{:}]), double([counts, ndim]));
end
