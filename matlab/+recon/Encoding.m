classdef Encoding
%ENCODING  The encoding operator E of an MR scan: coils, Fourier transform at any trajectory.
%   E = recon.Encoding(k, dims) makes the operator for the trajectory k and images of size dims, [nx ny] or
%   [nx ny nz]. All that depends on the trajectory is done now, and kept until the last copy of E is cleared:
%
%       y  = E * x          what the scanner would measure of the image x
%       x  = E' * y         the adjoint, E^H y: neither weighted nor scaled
%       x2 = E.normal(x)    E^H W E x, faster than E' * (W .* (E * x))
%
%   k is real, [samples 2], [readout shots 2], or the same with 3 for 3D, or complex, kx + 1i*ky. Its unit is cycles
%   per voxel, from -0.5 to 0.5: divide cycles per field of view by the matrix size, radians by 2*pi. k(..., 1) runs
%   along the first dimension of an image.
%
%   Images are [nx ny] or [nx ny nz]; without coil maps more coils may follow, [nx ny coils]; further dimensions
%   (frames) are transformed one by one. K-space data have the trajectory's shape, [samples coils] or [readout shots
%   coils], with frames behind the coils. Columns may stand for either: E * x(:) is a column, and E' * y(:) is one
%   unless y has a column for its own shape. A = E.matrix() gives columns only, and takes columns, or x and y.
%
%   Every array has these sizes, or one dimension of as many samples or voxels in their place. All else, a row for a
%   column too, is the error recon:SizeMismatch, which says how to permute the array. A square array cannot be told from
%   its transpose, and is taken as it is.
%
%   E = recon.Encoding(k, dims, Name, Value, ...) sets options:
%
%       'Maps'         coil sensitivities, [nx ny coils] or [nx ny nz coils]: coils are combined into one image; dims
%                      may then be [] or left out. Without them each coil has an image of its own
%       'Weights'      density weights in the shape of the samples, or 'ramp', 'jackson', 'pipe-menon': the W of
%                      E.normal, E.rhs, recon.cg and recon.grid; E and E' are not weighted. Default: 1 (recon.grid:
%                      'pipe-menon')
%       'Precision'    'single' or 'double', in which is computed. Default: single if k, Maps or Weights are. Results
%                      have the class of the data
%       'Tolerance'    relative l2 error of a transform against the exact sums; default (and 0) 1e-5
%       'Method'       'auto', 'nufft', or 'exact' for the direct sums
%       'Normal'       how E.normal computes: 'auto', 'toeplitz', 'transforms'
%       'Window'       of gridding: 'kaiser-bessel', 'gaussian', 'bilinear'
%       'Basis'        shape of a voxel: 'point' or 'box'
%       'Voxels'       positions of voxels in place of the grid, [voxels dims], in voxels from its centre
%       'Device'       'auto' (a GPU if there is one), 'cpu', 'cuda'
%       'Gpus'         which GPUs, counted from 1 as recon.devices lists them; several share the work
%       'GpuArray'     true: data are gpuArrays, and used where they are. Default: whether k or Maps is one
%       'Threads'      CPU threads; default: all
%       'MemoryLimit'  bytes that the operator may hold
%       'Simd'         'auto', 'baseline', 'avx2', 'avx512'
%       'Coils', 'Frames'  how many are transformed together, where there are no maps; default 1 (others follow one by one)
%
%   No option may be empty: leave it out for its default.
%
%   Other methods: E.rhs(y) is E^H W y, what recon.cg solves for; E.q() the kernel Q of E^H W E, E.saveq(file) and
%   E.loadq(file) keep it; E.info() what was chosen; size(E); E.afun(x, flag) for lsqr; delete(E) frees the plan now.
%
%   Every error has an identifier, as recon:InvalidArgument, recon:SizeMismatch, recon:CoordinateOutOfRange. The warning
%   recon:Extent says that k reaches less than a quarter of what dims could resolve, as coordinates in the wrong unit do,
%   recon:Tolerance that single precision cannot keep the tolerance: once for each operator, when it is made.
%   Ctrl-C ends long computations with recon:Cancelled; the operator can be used again.
%   After save and load the operator is rebuilt from its list (MATLAB; Octave cannot save objects).
%
%   Example
%       k = recon.trajectory.radial(64, 256);
%       y = recon.phantom.kspace(k, [128 128]);
%       E = recon.Encoding(k, [128 128], 'Weights', 'ramp');
%       x = pcg(@(x) E.normal(x), reshape(E.rhs(y), [], 1), 1e-3, 20);
%       recon.show(reshape(x, 128, 128))
%
%   See also recon.cg, recon.grid, recon.fhd, recon.coilmaps, recon.density.

    properties (SetAccess = private)
        imageSize    % [nx ny] or [nx ny nz], or the number of voxels listed
        sampleSize   % of the trajectory: [samples] or [readout shots ...]
        coils        % receive coils transformed together
        frames       % frames transformed together
        combines     % whether coil maps combine the coils into one image
        precision    % 'single' or 'double'
    end
    properties (Dependent)
        adjoint      % whether this is E'
    end
    properties (SetAccess = private, Hidden)
        geometry     % what the plan was made from, to make it again
        options
        plan
        key          % for recon_mex: [the plan's handle, whether adjoint, whether columns are wanted]
        imageShape   % what size gives for the arrays that the plan transforms in one piece
        kspaceShape
    end

    methods
        function E = Encoding(k, varargin)
            if nargin < 1
                error('recon:InvalidArgument', 'too few arguments: call it as recon.Encoding(k, dims)');
            end
            [dims, varargin] = recon.internal.leading_size(varargin);
            o = recon.internal.options('recon.Encoding', varargin, recon.internal.plan_options(), {});
            [E.sampleSize, ndim] = recon.internal.trajectory(k);

            maps = take(o, 'Maps', []);
            voxels = take(o, 'Voxels', []);
            [dims, E.imageSize, coils] = recon.internal.image_of(ndim, dims, maps, voxels);
            E.combines = ~isempty(maps);
            E.coils = recon.internal.count(take(o, 'Coils', 1), 'Coils');
            E.frames = recon.internal.count(take(o, 'Frames', 1), 'Frames');
            if E.combines
                if isfield(o, 'Coils') && E.coils ~= coils
                    error('recon:SizeMismatch', 'Maps has %d coils, the option Coils says %g', coils, E.coils);
                end
                E.coils = coils;
            end

            weights = take(o, 'Weights', []);
            E.precision = take(o, 'Precision', 'double');
            classes = cellfun(@recon.internal.class_of, {k, maps, weights}, 'UniformOutput', false);
            if ~isfield(o, 'Precision') && any(strcmp(classes, 'single'))
                E.precision = 'single';
            end
            if ~ischar(weights) && ~isempty(weights)
                recon.internal.numbers(weights, 'Weights');
                recon.internal.fit(weights, E.sampleSize, [], false, ...
                    {'Weights', 'Weights', 'the trajectory''s samples', 'k'});
            end
            g.k = k;
            g.dims = dims;
            g.precision = E.precision;
            g.coils = E.coils;
            g.frames = E.frames;
            g.maps = maps;
            g.weights = weights;
            g.voxels = voxels;
            g.basis = take(o, 'Basis', 'point');
            E.geometry = g;
            E.options = rmfield(o, intersect(fieldnames(o), ...
                {'Maps', 'Weights', 'Coils', 'Frames', 'Basis', 'Voxels', 'Precision'}));
            if ~isfield(o, 'GpuArray') && (isa(k, 'gpuArray') || isa(maps, 'gpuArray'))
                E.options.GpuArray = true;
            end
            on_gpu = {'k', 'maps', 'weights', 'voxels'};
            for i = 1:numel(on_gpu)
                if isa(E.geometry.(on_gpu{i}), 'gpuArray')
                    E.geometry.(on_gpu{i}) = gather(E.geometry.(on_gpu{i}));
                end
            end
            if ischar(weights)
                plain = E.geometry;
                plain.weights = [];
                plain.coils = 1;
                plain.frames = 1;
                plain.maps = [];
                first = recon.internal.Plan(plain, E.options);
                E.geometry.weights = recon_mex('density', first.id, weights, 0, 0, recon.internal.full_size(E.sampleSize));
                first.release();
            end
            if E.combines
                E.imageShape = recon.internal.full_size(E.imageSize, E.frames);
            else
                E.imageShape = recon.internal.full_size(E.imageSize, E.coils, E.frames);
            end
            E.kspaceShape = recon.internal.full_size(E.sampleSize, E.coils, E.frames);
            g = E.geometry;
            g.image_shape = E.imageShape;
            g.kspace_shape = E.kspaceShape;
            E.plan = recon.internal.Plan(g, E.options);
            E.key = [E.plan.id, 0, 0];
            E.plan.warn();
        end

        function flag = get.adjoint(E)
            flag = E.key(2) ~= 0;
        end

        function y = mtimes(E, x)
        %*  E * x is what the scanner would measure of x, E' * y the adjoint of y.
            if isnumeric(E)
                error('recon:InvalidArgument', ...
                    'an operator is multiplied with an array to its right: E * x, E'' * y, and E.normal(x) for E'' * E');
            end
            y = recon_mex('multiply', E.key, x, 'product');
            if isempty(y)
                % Not of the plan's own shape: coils or frames one by one, columns, or wrong.
                if E.key(2)
                    y = E.transform('fhd', x);
                else
                    y = E.transform('forward', x);
                end
            end
        end

        function E = ctranspose(E)
        %'  The adjoint operator; it shares the plan.
            E.key(2) = ~E.key(2);
        end

        function E = transpose(E) %#ok<STOUT>
            error('recon:Unsupported', 'an operator has an adjoint, E'', and no transpose, E.''');
        end

        function A = matrix(E)
        %MATRIX  The same operator as a matrix: it takes and gives columns, for solvers.
            A = E;
            A.key(3) = true;
        end

        function E = horzcat(varargin) %#ok<STOUT>
            error('recon:Unsupported', 'operators cannot be put side by side: write a function of x');
        end

        function E = vertcat(varargin) %#ok<STOUT>
            error('recon:Unsupported', 'operators cannot be stacked: write a function of x');
        end

        function y = afun(E, x, flag)
        %AFUN  E.afun(x, 'notransp') is E * x, E.afun(y, 'transp') is E' * y, in columns: for lsqr and its like.
            A = E.matrix();
            if strcmp(flag, 'transp')
                y = A' * x;
            elseif strcmp(flag, 'notransp')
                y = A * x;
            else
                error('recon:UnknownValue', 'the flag is neither ''transp'' nor ''notransp''');
            end
        end

        function y = normal(E, x)
        %NORMAL  E^H W E x, in the shape of x. W are the weights, 1 where none were given.
            E.need_forward('normal');
            y = recon_mex('multiply', E.key, x, 'normal');
            if isempty(y)
                recon.internal.numbers(x, 'the image');
                if ~iscolumn(x)
                    E.fit_image(x);
                end
                y = recon_mex('apply', E.plan.id, 'normal', x, size(x));
            end
        end

        function x = rhs(E, y)
        %RHS  E^H W y: the right-hand side that recon.cg solves for. A column for a column.
            E.need_forward('rhs');
            x = recon_mex('multiply', E.key, y, 'rhs');
            if isempty(x)
                x = E.transform('weighted_fhd', y);
            end
        end

        function kernel = q(E)
        %Q  The kernel of E^H W E, Q(d) = sum_m w_m |phi(k_m)|^2 exp(2i pi k_m.d), of size 2*dims, d = 0 at dims + 1.
            sizes = 2 * E.imageSize;
            if ~isempty(E.geometry.voxels)
                sizes = E.imageSize;
            end
            kernel = recon_mex('q', E.plan.id, recon.internal.full_size(sizes));
        end

        function saveq(E, file)
        %SAVEQ  Saves Q in a file, for operators of the same trajectory, weights and size in other sessions.
            recon_mex('save_q', E.plan.id, text_of(file));
        end

        function loadq(E, file)
        %LOADQ  Takes Q from a file in place of computing it.
            recon_mex('load_q', E.plan.id, text_of(file));
        end

        function s = info(E)
        %INFO  What was chosen: device, vector unit, threads, method, window width, grid, expected error, bytes held.
            s = recon_mex('info', E.plan.id);
        end

        function varargout = size(E, varargin)
        %SIZE  Of the operator as a matrix: samples of all coils, voxels of all images.
            images = 1;
            if ~E.combines
                images = E.coils;
            end
            sizes = [prod(E.sampleSize) * E.coils, prod(E.imageSize) * images] * E.frames;
            if E.adjoint
                sizes = fliplr(sizes);
            end
            if nargin > 1
                sizes = [sizes, ones(1, max([0, varargin{1} - 2]))];
                varargout = {sizes(varargin{1})};
            elseif nargout > 1
                varargout = [num2cell(sizes), num2cell(ones(1, nargout - 2))];
            else
                varargout = {sizes};
            end
        end

        function n = numel(E, varargin) %#ok<INUSD>
            n = 1;
        end

        function flag = isreal(E) %#ok<MANU>
            flag = false;
        end

        function disp(E)
            if isempty(E.plan) || isempty(E.plan.id)
                fprintf('  deleted recon.Encoding\n');
                return
            end
            kind = 'Encoding';
            if E.adjoint
                kind = 'Encoding, adjoint';
            end
            s = E.info();
            fprintf('  recon.%s: %s image, %s samples, %d coils', kind, recon.internal.sizes(E.imageSize), ...
                recon.internal.sizes(E.sampleSize), E.coils);
            if E.combines
                fprintf(' with maps');
            end
            fprintf('\n  %s precision, %s', E.precision, s.method);
            if strcmp(s.method, 'nufft')
                fprintf(' (error %.1g, window of %d cells, grid %s)', s.error, s.width, recon.internal.sizes(s.grid));
            end
            fprintf(', on %s', s.device);
            if ~strcmp(s.simd, 'none')
                fprintf(' (%s, %d threads)', s.simd, s.threads);
            end
            fprintf(', %.1f MB\n', (s.host_bytes + s.device_bytes) / 1e6);
        end

        function delete(E)
        %DELETE  Frees the plan now; this operator and its copies cannot be used any more.
            if ~isempty(E.plan)
                E.plan.release();
            end
        end

        function s = saveobj(E)
            s = struct('geometry', E.geometry, 'options', E.options, 'adjoint', E.adjoint, 'columns', E.key(3) ~= 0);
        end
    end

    methods (Hidden)
        function b = transform(E, which, a)
        %TRANSFORM  One of the transforms between images and k-space, in the shape that belongs to that of its input.
            % The sizes of all that the plan transforms, of one image or its samples, and of the coils behind them.
            forward = strcmp(which, 'forward');
            sizes = {E.kspaceShape, E.sampleSize, E.next(true); E.imageShape, E.imageSize, E.next(false)};
            if forward
                sizes = flipud(sizes);
                recon.internal.numbers(a, 'the image');
                one_column = isequal(size(a), recon.internal.full_size(E.imageSize));
            else
                recon.internal.numbers(a, 'the k-space data');
                one_column = numel(a) == prod(E.sampleSize);
            end
            [whole, lead, next] = sizes{1, :};
            count = numel(a) / prod(whole);
            parts = numel(a) / prod([lead, next]);
            if ~E.key(3) && iscolumn(a) && ~one_column && parts == round(parts)
                shape = [prod([sizes{2, 2:3}]) * parts, 1];
            else
                shape = [prod(sizes{2, 1}), count];
                if ~E.key(3) || ~ismatrix(a) || size(a, 1) ~= prod(whole)
                    if forward
                        rest = E.fit_image(a);
                    else
                        rest = recon.internal.fit_data(a, lead, next, 'the k-space data', 'y');
                    end
                    if ~E.key(3)
                        shape = recon.internal.full_size(sizes{2, 2:3}, rest);
                    end
                end
            end
            if count ~= round(count)
                error('recon:SizeMismatch', 'the array is %s: the operator takes %d elements, or a multiple', ...
                    recon.internal.sizes(size(a)), prod(whole));
            end
            b = recon_mex('apply', E.plan.id, which, a, shape);
        end

        function sizes = next(E, kspace)
        %NEXT  What must follow behind the samples, or behind an image: the coils, where they belong together.
            sizes = [];
            if kspace && E.combines || ~E.combines && E.coils > 1
                sizes = E.coils;
            end
        end

        function rest = fit_image(E, x)
            rest = recon.internal.fit(x, E.imageSize, E.next(false), true, {'the image', 'x', 'the operator''s image'});
        end

        function rest = image_rest(E, y, what, name)
        %IMAGE_REST  Dimensions behind an image's own, of the images of these data.
            rest = [E.next(false), recon.internal.fit_data(y, E.sampleSize, E.next(true), what, name)];
        end

        function need_forward(E, name)
            if E.adjoint
                error('recon:InvalidArgument', 'this is an adjoint operator, E'': call E.%s', name);
            end
        end
    end

    methods (Static)
        function E = loadobj(s)
        %LOADOBJ  Makes the operator again from what was saved.
            g = s.geometry;
            list = {'Basis', g.basis, 'Precision', g.precision, 'Coils', g.coils, 'Frames', g.frames};
            if ~isempty(g.maps)
                list = [list, {'Maps', g.maps}];
            end
            if ~isempty(g.weights)
                list = [list, {'Weights', g.weights}];
            end
            if ~isempty(g.voxels)
                list = [list, {'Voxels', g.voxels}];
            end
            names = fieldnames(s.options);
            for i = 1:numel(names)
                list(end + 1:end + 2) = {names{i}, s.options.(names{i})};
            end
            E = recon.Encoding(g.k, g.dims, list{:});
            if s.columns
                E = E.matrix();
            end
            if s.adjoint
                E = E';
            end
        end
    end
end

function text = text_of(text)
% A string object as the text that recon_mex reads; it refuses all else.
if isstring(text) && isscalar(text)
    text = char(text);
end
end

function value = take(structure, name, default)
value = default;
if isfield(structure, name)
    value = structure.(name);
end
end
