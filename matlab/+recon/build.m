function build(varargin)
%BUILD  Builds the MEX file behind this package, with librecon linked statically.
%   recon.build() builds librecon with cargo (Rust must be installed: see rustup.rs), then recon_mex beside this
%   package with the C compiler that mex or mkoctfile uses. Nothing else is needed, and nothing when it runs.
%
%   recon.build(Name, Value, ...) sets options:
%
%       'Library'   a static library that is there already (librecon.a, recon.lib), in place of building it
%       'Output'    folder for the MEX file; default the one that holds +recon
%       'GpuArray'  MATLAB only: true or false, whether gpuArrays are used in place. Default: where the Parallel
%                   Computing Toolbox's header is found
%       'Separate'  Octave only: true for separate complex arrays, as Octave before 7 needs them. Default: by version
%
%   See also recon.version, mex, mkoctfile.
own = recon.internal.options('recon.build', varargin, {'Library', 'Output', 'GpuArray', 'Separate'}, {});
folder = fileparts(fileparts(mfilename('fullpath')));
project = fileparts(folder);
output = folder;
if isfield(own, 'Output')
    output = own.Output;
end
if isfield(own, 'Library')
    library = own.Library;
else
    library = build_library(project);
end
if exist(library, 'file') ~= 2
    error('recon:IO', 'recon.build: there is no library %s', library);
end
common = {['-I' fullfile(project, 'include')], fullfile(folder, 'recon_mex.c'), library};
% A file that is loaded cannot be replaced everywhere.
clear recon_mex

if exist('OCTAVE_VERSION', 'builtin')
    separate = compare_versions(OCTAVE_VERSION, '7.0.0', '<');
    if isfield(own, 'Separate')
        separate = own.Separate;
    end
    layout = {'-R2018a'};
    if separate
        % All that there was before version 7, and no option for it.
        layout = {};
    end
    target = fullfile(output, 'recon_mex.mex');
    run_mkoctfile([{'--mex', '-DRECON_OCTAVE', '-O2', '-Wall', '-Wextra'}, layout, common, system_libraries(), ...
        {'-o', target}]);
else
    header = fullfile(matlabroot, 'toolbox', 'parallel', 'gpu', 'extern', 'include');
    gpu = exist(fullfile(header, 'gpu', 'mxGPUArray.h'), 'file') == 2;
    if isfield(own, 'GpuArray')
        gpu = own.GpuArray;
    end
    extra = {};
    if gpu
        extra = {'-DRECON_GPUARRAY', ['-I' header], '-lmwgpu'};
    end
    list = [{'-R2018a', '-outdir', output, '-output', 'recon_mex'}, common, extra, system_libraries()];
    mex(list{:});
    target = fullfile(output, ['recon_mex.' mexext]);
end
fprintf('built %s\n', target);
end

function library = build_library(project)
if exist(fullfile(project, 'Cargo.toml'), 'file') ~= 2
    error('recon:Build', ['recon.build: librecon''s source is not beside this package: name an installed static ' ...
        'library with ''Library''']);
end
command = ['cargo build --release --locked --lib --manifest-path "' fullfile(project, 'Cargo.toml') '"'];
if isunix
    % MATLAB's own libraries are no use to cargo and the system's linker.
    command = ['LD_LIBRARY_PATH= ' command];
end
if system(command) ~= 0
    error('recon:Build', 'recon.build: cargo failed or was not found: install Rust (rustup.rs); its messages are above');
end
target = getenv('CARGO_TARGET_DIR');
if isempty(target)
    target = fullfile(project, 'target');
end
name = 'librecon.a';
if ispc
    name = 'recon.lib';
end
library = fullfile(target, 'release', name);
end

function libraries = system_libraries()
% What the static library needs of the system. Its symbols stay inside the MEX file.
if ispc
    libraries = {'-lkernel32', '-lntdll', '-luserenv', '-lws2_32', '-ldbghelp'};
elseif ismac
    libraries = {'-liconv', '-lSystem', '-lc', '-lm'};
else
    libraries = {'-lgcc_s', '-lutil', '-lrt', '-lpthread', '-lm', '-ldl', '-lc'};
    hide = '-Wl,--exclude-libs,ALL';
    if exist('OCTAVE_VERSION', 'builtin')
        libraries = [{hide, '-s'}, libraries];
    else
        libraries = [{['LDFLAGS=$LDFLAGS ' hide]}, libraries];
    end
end
end

function run_mkoctfile(list)
program = fullfile(OCTAVE_HOME, 'bin', 'mkoctfile');
if exist(program, 'file') ~= 2
    program = 'mkoctfile';
end
quoted = cellfun(@(a) sprintf('"%s"', a), list, 'UniformOutput', false);
[status, text] = system([program ' ' strjoin(quoted, ' ') ' 2>&1']);
if status ~= 0
    error('recon:Build', 'recon.build: mkoctfile failed:\n%s', text);
end
fprintf('%s', text);
end
