classdef Encoding
%ENCODING  The encoding operator E of an MR scan: coil sensitivities and the Fourier transform at a trajectory.
%   E = recon.Encoding(k, dims) creates the operator for the trajectory k and images of size dims, [nx ny] or
%   [nx ny nz]. E contains everything that depends on the trajectory, until the last copy of E is cleared:
%
%       y  = E * x          the k-space data of the image x
%       x  = E' * y         the adjoint, E^H y, without weights and without scaling
%       x2 = E.normal(x)    E^H W E x, faster than E' * (W .* (E * x))
%
%   k is real, [samples 2], [readout shots 2], or the same with 3 for 3D, or complex, kx + 1i*ky. Its unit is cycles
%   per voxel, from -0.5 to 0.5: divide cycles per field of view by the matrix size, and radians by 2*pi. k(..., 1) runs
%   along the first dimension of an image.
%
%   Images are [nx ny] or [nx ny nz]. Without coil maps, coils may follow, [nx ny coils]. Further dimensions (frames)
%   are transformed one by one. K-space data have the trajectory's shape, then coils, then frames: [samples coils] or
%   [readout shots coils]. An image or data may also be a column: E * x(:) is a column. E' * y(:) is one too, unless a
%   column is the shape of y. A = E.matrix() always gives columns. It takes columns, or x and y in their shapes.
%
%   An array has these sizes, or one dimension with all samples or all voxels instead of several. Everything else is the
%   error recon:SizeMismatch, also a row instead of a column. The message says how to permute the array. A square array
%   and its transpose have the same size, so a transposed square array is not detected.
%
%   E = recon.Encoding(k, dims, Name, Value, ...) sets options:
%
%       'Maps'         coil sensitivity maps, [nx ny coils] or [nx ny nz coils]: all coils have one image. dims may then
%                      be [] or left out. Without maps, each coil has one image
%       'Weights'      density weights in the shape of the samples, or 'ramp', 'jackson', 'pipe-menon'. They are the W
%                      of E.normal, E.rhs, recon.cg and recon.grid. E and E' have no weights. Default: 1, in
%                      recon.grid 'pipe-menon'
%       'FieldMap'     off-resonance f in Hz, of the image's size: the model then has the factor exp(-2i*pi*f*t)
%       'DecayMap'     decay rates R2* in 1/s, of the image's size: the factor exp(-R2*t). With it or without FieldMap
%       'Times'        for these maps: the time t of each sample in seconds from the excitation, or from the echo, in
%                      the shape of the samples, or a column for all of them. If all shots have the same times, a
%                      column for one readout, [readout 1], is enough, unless k has a second dimension of that length
%       'Precision'    precision of the computation, 'single' or 'double'. Default: single if k, Maps or Weights are
%                      single. Results have the class of the data
%       'Tolerance'    relative l2 error of a transform against the exact sums; default 1e-5 (0 means the default)
%       'Method'       'auto', 'nufft', or 'exact' for the direct sums
%       'Normal'       how E.normal computes: 'auto', 'toeplitz', 'transforms'
%       'Window'       of gridding: 'minimax', 'kaiser-bessel', 'gaussian', 'bilinear'
%       'Width'        of that window, in cells of the grid, 2 to 16; default 0: one that meets the tolerance
%       'Oversampling' size of the grid over that of the image, 1.25 to 2.5; default 0: one that meets the tolerance.
%                      A 'Tolerance' that the given 'Width' and 'Oversampling' cannot meet is an error. Without a
%                      'Tolerance', E.info() returns the error
%       'Basis'        shape of a voxel: 'point' or 'box'
%       'Voxels'       a list of voxels instead of the grid: their positions, [voxels dims], in voxels from the centre
%       'Device'       'auto' (a GPU or the CPU, by estimated times), 'cpu', 'cuda'
%       'Gpus'         which GPUs, counted from 1 as recon.devices lists them; several share the work
%       'GpuArray'     true: data are gpuArrays, used without a copy. Default: true if k or Maps is a gpuArray
%       'Threads'      CPU threads; default: all
%       'MemoryLimit'  maximum memory of the operator in bytes
%       'Simd'         'auto', 'baseline', 'avx2', 'avx512', 'neon'
%       'Coils'        number of coils that are transformed together without maps; default 1: one by one
%       'Frames'       number of frames that are transformed together; default 1: one by one
%
%   No option may be empty: leave it out for its default.
%
%   Other methods:
%
%       E.rhs(y)       E^H W y, the right-hand side of the equation that recon.cg solves
%       E.q()          the Toeplitz kernel Q of E^H W E; E.saveq(file) and E.loadq(file) keep it in a file
%       E.info()       device, method, window, grid and memory of the operator
%       E.afun(x, flag)  E * x or E' * x, for lsqr
%       size(E)        the size of the operator as a matrix
%       delete(E)      frees the plan now
%
%       E.settrajectory(k)   sets a new trajectory, for scans whose trajectory changes from frame to frame. An E with
%                            FieldMap or DecayMap keeps it and requires the new times: E.settrajectory(k, 'Times', t)
%       E.setweights(w)      sets new density weights
%       E.setmaps(S)         sets new coil maps
%
%   These three change E and all copies of it, including E'. They cost much less than a new operator, and results have
%   the same bits as those of a new one. E.settrajectory(k) is for an E without weights, and keeps its coil maps.
%   E.settrajectory(k, 'Weights', w, 'Maps', S) sets both. After an error E is unchanged.
%
%   Every error has an identifier, for example recon:InvalidArgument, recon:SizeMismatch or recon:CoordinateOutOfRange.
%   There are four warnings, each issued once, when the operator is created. recon:Extent: k covers less than a quarter
%   of the range that dims could resolve, which may be a wrong unit. recon:Tolerance: the default tolerance cannot be
%   reached, for example in single precision, or with the given 'Width' and 'Oversampling'. recon:Times: Times beyond a
%   second, which may be milliseconds. recon:Threads: the system refused threads, so fewer are used.
%
%   Ctrl-C ends long computations with the error recon:Cancelled. The operator can be used again. load creates a saved
%   operator again from its arguments (in MATLAB; Octave cannot save objects).
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
        imageSize    % [nx ny] or [nx ny nz], or the number of voxels in the list
        coils        % number of receive coils that are transformed together
        frames       % number of frames that are transformed together
        combines     % whether coil maps combine the coils into one image
        precision    % 'single' or 'double'
    end
    properties (Dependent)
        sampleSize   % shape of the trajectory's samples: [samples] or [readout shots ...]
        adjoint      % whether this is E'
    end
    properties (SetAccess = private, Hidden)
        options
        plan
        key          % for recon_mex: [the plan's handle, whether adjoint, whether to return columns]
        imageShape   % size of the images that the plan transforms in one call
    end
    properties (Dependent, Hidden)
        kspaceShape  % size of the data that the plan transforms in one call
        geometry     % arguments of the plan; loadobj makes it again from these
    end

    methods
        function E = Encoding(k, varargin)
            if nargin < 1
                error('recon:InvalidArgument', 'too few arguments: call it as recon.Encoding(k, dims)');
            end
            [dims, varargin] = recon.internal.split_image_size(varargin);
            o = recon.internal.options('recon.Encoding', varargin, recon.internal.plan_options(), {});
            [samples, ndim] = recon.internal.trajectory(k);

            maps = take(o, 'Maps', []);
            voxels = take(o, 'Voxels', []);
            [dims, E.imageSize, coils] = recon.internal.image_and_coils(ndim, dims, maps, voxels);
            E.combines = ~isempty(maps);
            E.coils = recon.internal.one_number(take(o, 'Coils', 1), 'Coils');
            E.frames = recon.internal.one_number(take(o, 'Frames', 1), 'Frames');
            if E.combines
                if isfield(o, 'Coils') && E.coils ~= coils
                    error('recon:SizeMismatch', 'Maps has %d coils, the option Coils says %g', coils, E.coils);
                end
                E.coils = coils;
            end

            weights = take(o, 'Weights', []);
            E.precision = take(o, 'Precision', 'double');
            classes = cellfun(@recon.internal.number_class, {k, maps, weights}, 'UniformOutput', false);
            if ~isfield(o, 'Precision') && any(strcmp(classes, 'single'))
                E.precision = 'single';
            end
            check_weights(weights, samples);
            g.k = k;
            g.dims = dims;
            g.precision = E.precision;
            g.coils = E.coils;
            g.frames = E.frames;
            g.maps = maps;
            g.weights = weights;
            g.voxels = voxels;
            g.basis = take(o, 'Basis', 'point');
            g = recon.internal.off_resonance(g, o, E.imageSize, samples);
            E.options = rmfield(o, intersect(fieldnames(o), {'Maps', 'Weights', 'FieldMap', 'DecayMap', 'Times', ...
                'Coils', 'Frames', 'Basis', 'Voxels', 'Precision'}));
            if ~isfield(o, 'GpuArray') && (isa(k, 'gpuArray') || isa(maps, 'gpuArray'))
                E.options.GpuArray = true;
            end
            g = on_host(g);
            g.weights = E.computed_weights(g, samples);
            if E.combines
                E.imageShape = recon.internal.full_size(E.imageSize, E.frames);
            else
                E.imageShape = recon.internal.full_size(E.imageSize, E.coils, E.frames);
            end
            g.image_shape = E.imageShape;
            g.kspace_shape = recon.internal.full_size(samples, E.coils, E.frames);
            E.plan = recon.internal.Plan(g, E.options);
            E.plan.sampleSize = samples;
            E.key = [E.plan.id, 0, 0];
            E.plan.warn();
        end

        function sizes = get.sampleSize(E)
            sizes = E.plan.sampleSize;
        end

        function shape = get.kspaceShape(E)
            shape = E.plan.geometry.kspace_shape;
        end

        function g = get.geometry(E)
            g = E.plan.geometry;
        end

        function flag = get.adjoint(E)
            flag = E.key(2) ~= 0;
        end

        function y = mtimes(E, x)
        %*  E * x is the k-space data of x, E' * y is the adjoint of y.
            if isnumeric(E)
                error('recon:InvalidArgument', ['an operator is multiplied with an array to its right: E * x, ' ...
                    'E'' * y, and E.normal(x) for E'' * E']);
            end
            y = recon_mex('multiply', E.key, x, 'product');
            if isempty(y)
                % A different shape from the plan's: coils or frames one by one, columns, or an error.
                if E.key(2)
                    y = E.transform('fhd', x);
                else
                    y = E.transform('forward', x);
                end
            end
        end

        function E = ctranspose(E)
        %'  Returns the adjoint operator. It uses the same plan.
            E.key(2) = ~E.key(2);
        end

        function E = transpose(E) %#ok<STOUT>
            error('recon:Unsupported', 'an operator has an adjoint, E'', and no transpose, E.''');
        end

        function A = matrix(E)
        %MATRIX  Returns the operator as a matrix, for solvers: it accepts and returns columns.
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
        %AFUN  E.afun(x, 'notransp') is E * x, E.afun(y, 'transp') is E' * y, in columns: for lsqr and similar solvers.
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
        %NORMAL  Computes E^H W E x, in the shape of x. W are the density weights, 1 by default.
            E.need_forward('normal');
            y = recon_mex('multiply', E.key, x, 'normal');
            if isempty(y)
                recon.internal.need_numbers(x, 'the image');
                if ~iscolumn(x)
                    E.check_image(x);
                end
                y = recon_mex('apply', E.plan.id, 'normal', x, size(x), '');
            end
        end

        function x = rhs(E, y)
        %RHS  Computes E^H W y, the right-hand side of the equation that recon.cg solves. It is a column if y is one.
            E.need_forward('rhs');
            x = recon_mex('multiply', E.key, y, 'rhs');
            if isempty(x)
                x = E.transform('weighted_fhd', y);
            end
        end

        function kernel = q(E)
        %Q  Returns the Toeplitz kernel of E^H W E: Q(d) = sum_m w_m |phi(k_m)|^2 exp(2i pi k_m.d).
        %   Its size is 2*dims. d = 0 is at the index dims + 1.
            sizes = 2 * E.imageSize;
            if ~isempty(E.geometry.voxels)
                sizes = E.imageSize;
            end
            kernel = recon_mex('q', E.plan.id, recon.internal.full_size(sizes));
        end

        function saveq(E, file)
        %SAVEQ  Saves Q in a file, for operators with the same trajectory, weights and size in other sessions.
            recon_mex('save_q', E.plan.id, recon.internal.utf8(file, 'saveq: the file''s name'));
        end

        function loadq(E, file)
        %LOADQ  Reads Q from a file instead of computing it.
            recon_mex('load_q', E.plan.id, recon.internal.utf8(file, 'loadq: the file''s name'));
        end

        function settrajectory(E, k, varargin)
        %SETTRAJECTORY  Sets a new trajectory in the operator and its copies.
        %   E.settrajectory(k) is for an operator without weights, and keeps its coil maps. If it has weights, they
        %   belong to the previous samples, and the call is an error: E.setweights([]) removes them.
        %   E.settrajectory(k, 'Weights', w, 'Maps', S) sets both, or one of them. Weights may also be 'ramp',
        %   'jackson' or 'pipe-menon'.
        %   E.settrajectory(k, 'Times', t) is for an operator with a FieldMap or DecayMap, which it keeps. 'FieldMap'
        %   and 'DecayMap' set new maps.
            recon.internal.need_arguments(nargin, 2, 'E.settrajectory(k)');
            names = {'Weights', 'Maps', 'Times', 'FieldMap', 'DecayMap'};
            o = recon.internal.options('E.settrajectory', varargin, names, {});
            [samples, ndim] = recon.internal.trajectory(k);
            if ndim ~= numel(E.geometry.dims)
                error('recon:SizeMismatch', 'the trajectory has %d dimensions, the operator''s image %d', ndim, ...
                    numel(E.geometry.dims));
            end
            g = E.geometry;
            g.k = k;
            g.weights = take(o, 'Weights', []);
            check_weights(g.weights, samples);
            g.maps = take(o, 'Maps', []);
            if ~isempty(g.maps)
                E.check_maps(g.maps);
            end
            g = recon.internal.off_resonance(g, E.with_own_maps(o), E.imageSize, samples);
            g = on_host(g);
            g.weights = E.computed_weights(g, samples);
            g.kspace_shape = recon.internal.full_size(samples, E.coils, E.frames);
            E.plan.set_trajectory(g, samples);
            E.plan.warn();
        end

        function setweights(E, weights)
        %SETWEIGHTS  Sets the density weights of the operator and its copies, as the option 'Weights'; [] for none.
            recon.internal.need_arguments(nargin, 2, 'E.setweights(w)');
            check_weights(weights, E.sampleSize);
            g = E.geometry;
            g.weights = weights;
            g = on_host(g);
            E.plan.set_weights(E.computed_weights(g, E.sampleSize));
        end

        function setmaps(E, maps)
        %SETMAPS  Sets new coil maps in an operator that was created with coil maps, and in its copies.
            recon.internal.need_arguments(nargin, 2, 'E.setmaps(S)');
            E.check_maps(maps);
            g = on_host(struct('maps', maps));
            E.plan.set_maps(g.maps);
        end

        function s = info(E)
        %INFO  Returns device, vector unit, threads, method, window width, grid, expected error and memory in bytes.
        %   With FieldMap or DecayMap: segments, the number of transforms without off-resonance per transform (0 with
        %   exact sums), and nodes, the number of convolutions in E.normal (0 if it uses transforms).
        %   device_reason is why this device computes: 'requested', 'estimated-faster' (with the estimates
        %   estimated_cpu_ms and estimated_gpu_ms of an operator and one transform), 'no-gpu' or 'gpu-unusable'.
            s = recon_mex('info', E.plan.id);
        end

        function varargout = size(E, varargin)
        %SIZE  Returns the size of the operator as a matrix: [samples of all coils, voxels of all images].
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
            fprintf('  recon.%s: %s image, %s samples, %d coils', kind, recon.internal.size_text(E.imageSize), ...
                recon.internal.size_text(E.sampleSize), E.coils);
            if E.combines
                fprintf(' with maps');
            end
            if ~isempty(E.geometry.field_map)
                fprintf(', field map');
            end
            if ~isempty(E.geometry.decay_map)
                fprintf(', decay map');
            end
            fprintf('\n  %s precision, %s', E.precision, s.method);
            if strcmp(s.method, 'nufft')
                fprintf(' (error %.1g, window of %d cells, grid %s', s.error, s.width, ...
                    recon.internal.size_text(s.grid));
                if s.segments
                    fprintf(', %d segments', s.segments);
                end
                fprintf(')');
            end
            if s.nodes
                fprintf(', E.normal by %d convolutions', s.nodes);
            end
            fprintf(', on %s', s.device);
            if ~strcmp(s.simd, 'none')
                fprintf(' (%s, %d threads)', s.simd, s.threads);
            end
            fprintf(', %.1f MB\n', (s.host_bytes + s.device_bytes) / 1e6);
        end

        function delete(E)
        %DELETE  Frees the plan now. This operator and its copies cannot be used any more.
            if ~isempty(E.plan)
                E.plan.release();
            end
        end

        function s = saveobj(E)
            s = struct('geometry', E.geometry, 'options', E.options, 'adjoint', E.adjoint, 'columns', E.key(3) ~= 0);
        end
    end

    methods (Hidden)
        function b = transform(E, which, a, filter)
        %TRANSFORM  Computes a transform between images and k-space data. The output has the shape that fits the input.
            % Only filtered backprojection has a filter.
            if nargin < 4
                filter = '';
            end
            % Rows: input, output. Columns: size that the plan transforms in one call, size of one image or of the
            % samples, size of the coils after it.
            forward = strcmp(which, 'forward');
            sizes = {E.kspaceShape, E.sampleSize, E.trailing_coil_dim(true)
                E.imageShape, E.imageSize, E.trailing_coil_dim(false)};
            if forward
                sizes = flipud(sizes);
                recon.internal.need_numbers(a, 'the image');
                one_column = isequal(size(a), recon.internal.full_size(E.imageSize));
            else
                recon.internal.need_numbers(a, 'the k-space data');
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
                        rest = E.check_image(a);
                    else
                        rest = recon.internal.check_data_size(a, lead, next, 'the k-space data', 'y');
                    end
                    if ~E.key(3)
                        shape = recon.internal.full_size(sizes{2, 2:3}, rest);
                    end
                end
            end
            if count ~= round(count)
                error('recon:SizeMismatch', 'the array is %s: the operator takes %d elements, or a multiple', ...
                    recon.internal.size_text(size(a)), prod(whole));
            end
            b = recon_mex('apply', E.plan.id, which, a, shape, filter);
        end

        function sizes = trailing_coil_dim(E, kspace)
        %TRAILING_COIL_DIM  Returns the number of coils if it must follow the samples or an image, or [].
            sizes = [];
            if kspace && E.combines || ~E.combines && E.coils > 1
                sizes = E.coils;
            end
        end

        function rest = check_image(E, x)
            rest = recon.internal.check_size(x, E.imageSize, E.trailing_coil_dim(false), true, ...
                {'the image', 'x', 'the operator''s image'});
        end

        function rest = trailing_image_dims(E, y, what, name)
        %TRAILING_IMAGE_DIMS  Returns the dimensions of the images of these data after [nx ny nz].
            rest = [E.trailing_coil_dim(false), ...
                recon.internal.check_data_size(y, E.sampleSize, E.trailing_coil_dim(true), what, name)];
        end

        function check_maps(E, maps)
            if ~E.combines
                error('recon:InvalidArgument', ...
                    'the operator was made without coil maps, with an image for each coil: make it again with Maps');
            end
            recon.internal.need_numbers(maps, 'Maps');
            recon.internal.check_size(maps, E.imageSize, E.coils, false, ...
                {'Maps', 'Maps', 'the operator''s image and coils'});
        end

        function refuse_off_resonance(E, name)
        %REFUSE_OFF_RESONANCE  Ends with an error if the operator has a map of off-resonance or decay.
            if ~isempty(E.geometry.times)
                error('recon:Unsupported', ['%s: this is computed without off-resonance and decay: leave out ' ...
                    'FieldMap, DecayMap and Times, or use recon.grid or recon.cg'], name);
            end
        end

        function own = with_own_maps(E, own)
        %WITH_OWN_MAPS  Returns the options of settrajectory, with the operator's maps of off-resonance and decay.
            names = {'FieldMap', 'DecayMap'};
            if ~isempty(E.geometry.times) && ~isfield(own, 'Times')
                error('recon:InvalidArgument', ['the operator has a FieldMap or DecayMap: give the times of the ' ...
                    'new samples, E.settrajectory(k, ''Times'', t)']);
            end
            maps = {E.geometry.field_map, E.geometry.decay_map};
            for i = 1:2
                if isempty(maps{i}) && isfield(own, names{i})
                    error('recon:InvalidArgument', 'the operator was made without %s: make it again with it', names{i});
                elseif ~isempty(maps{i}) && ~isfield(own, names{i})
                    own.(names{i}) = maps{i};
                end
            end
        end

        function weights = computed_weights(E, g, samples)
        %COMPUTED_WEIGHTS  Returns the weights of a geometry. If they are given by a word, a minimal plan computes them.
            weights = g.weights;
            if ischar(weights)
                g.weights = [];
                g.coils = 1;
                g.frames = 1;
                g.maps = [];
                g.field_map = [];
                g.decay_map = [];
                g.times = [];
                first = recon.internal.Plan(g, E.options);
                weights = recon_mex('density', first.id, weights, 0, 0, recon.internal.full_size(samples));
                first.release();
            end
        end

        function need_forward(E, name)
            if E.adjoint
                error('recon:InvalidArgument', 'this is an adjoint operator, E'': call E.%s', name);
            end
        end
    end

    methods (Static)
        function E = loadobj(s)
        %LOADOBJ  Creates a saved operator again.
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
            if ~isempty(g.field_map)
                list = [list, {'FieldMap', g.field_map}];
            end
            if ~isempty(g.decay_map)
                list = [list, {'DecayMap', g.decay_map}];
            end
            if ~isempty(g.times)
                list = [list, {'Times', g.times}];
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

function check_weights(weights, samples)
if ~ischar(weights) && ~isempty(weights)
    recon.internal.need_numbers(weights, 'Weights');
    recon.internal.check_size(weights, samples, [], false, ...
        {'Weights', 'Weights', 'the trajectory''s samples', 'k'});
end
end

function g = on_host(g)
% Returns the arrays of a geometry in the host's memory.
names = intersect(fieldnames(g), {'k', 'maps', 'weights', 'voxels', 'field_map', 'decay_map', 'times'});
for i = 1:numel(names)
    if isa(g.(names{i}), 'gpuArray')
        g.(names{i}) = gather(g.(names{i}));
    end
end
end

function value = take(structure, name, default)
value = default;
if isfield(structure, name)
    value = structure.(name);
end
end
