function build(varargin)
%BUILD  Builds the MEX file of this package, with librecon and its readers of files linked statically.
%   recon.build() builds recon_mex next to this package, with the C compiler that mex or mkoctfile uses. In the folder
%   of a release it uses the library of that release, lib/librecon_files.a. In a folder with recon's source it first
%   builds this library with cargo (Rust must be installed: see rustup.rs). Nothing else is needed.
%
%   recon.build(Name, Value, ...) sets options:
%
%       'Library'   another static library recon_files (librecon_files.a, recon_files.lib). It contains librecon
%       'Output'    folder for the MEX file; default the one that holds +recon
%       'GpuArray'  MATLAB only: whether the MEX file accepts gpuArrays. Default: true if the header of the Parallel
%                   Computing Toolbox is found
%       'Separate'  Octave only: true for separate complex arrays, which Octave before 7 needs. Default: by version
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
    library = find_library(project);
end
if exist(library, 'file') ~= 2
    error('recon:IO', 'recon.build: the library %s does not exist', library);
end
if exist(output, 'dir') ~= 7
    error('recon:IO', 'recon.build: the folder %s does not exist: create it first', output);
end
[place, name, ending] = fileparts(library);
if any(strcmp(name, {'librecon', 'recon'}))
    needed = fullfile(place, [name '_files' ending]);
    error('recon:InvalidArgument', ['recon.build: the library %s has no readers of files: give %s, which contains ' ...
        'it. cargo build --release --package recon-files makes it, make install installs it'], library, needed);
end
source = fullfile(folder, 'mex');
if exist(source, 'dir') ~= 7
    % An Octave package has them next to the folder of the functions.
    source = fullfile(project, 'src');
end
sources = dir(fullfile(source, '*.c'));
if isempty(sources)
    error('recon:Build', ['recon.build: the source of recon_mex is not in %s: an installed package has only its ' ...
        'functions. Build in the folder of a release or of recon''s source'], source);
end
sources = cellfun(@(name) fullfile(source, name), {sources.name}, 'UniformOutput', false);
if exist('OCTAVE_VERSION', 'builtin')
    % The compiler runs in a different folder.
    library = make_absolute_filename(library);
end
common = [{['-I' fullfile(project, 'include')]}, sources, {library}];
% Windows cannot replace a file that is loaded.
clear recon_mex

if exist('OCTAVE_VERSION', 'builtin')
    separate = compare_versions(OCTAVE_VERSION, '7.0.0', '<');
    if isfield(own, 'Separate')
        separate = own.Separate;
    end
    layout = {'-R2018a'};
    if separate
        % Older mkoctfile does not know the option.
        layout = {};
    end
    target = fullfile(output, 'recon_mex.mex');
    run_mkoctfile(output, [{'--mex', '-DRECON_OCTAVE', '-O2', '-Wall', '-Wextra'}, layout, common, ...
        system_libraries(), {'-o', 'recon_mex.mex'}]);
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

function library = find_library(project)
% Returns the library of the release that this package belongs to, or builds it from recon's source.
if exist(fullfile(project, 'Cargo.toml'), 'file') == 2
    library = build_library(project);
    return;
end
library = fullfile(project, 'lib', 'librecon_files.a');
if ispc && ~strcmp(windows_target(), 'x86_64-pc-windows-gnu')
    error('recon:Build', ['recon.build: a release''s library is for MinGW, but mex uses Microsoft''s compiler: install ' ...
        'MATLAB''s support package for MinGW-w64 and select it by mex -setup C, or build recon from source']);
end
if exist(library, 'file') ~= 2
    error('recon:Build', ['recon.build: neither a release''s library (%s) nor recon''s source is next to this ' ...
        'package: give an installed static library with ''Library'''], library);
end
end

function library = build_library(project)
command = ['cargo build --release --locked --package recon-files --manifest-path "' fullfile(project, 'Cargo.toml') '"'];
folder = 'release';
if ispc
    % Rust has one target for each of the two C compilers.
    rust_target = windows_target();
    command = ['rustup target add ' rust_target ' && ' command ' --target ' rust_target];
    folder = fullfile(rust_target, 'release');
end
if isunix
    % cargo and the system's linker may fail with MATLAB's own libraries.
    command = ['LD_LIBRARY_PATH= ' command];
end
if system(command) ~= 0
    error('recon:Build', ['recon.build: cargo failed or was not found: install Rust (rustup.rs); its messages are ' ...
        'above']);
end
target = getenv('CARGO_TARGET_DIR');
if isempty(target)
    target = fullfile(project, 'target');
end
name = 'librecon_files.a';
if ispc && ~isempty(strfind(folder, 'msvc'))
    name = 'recon_files.lib';
end
library = fullfile(target, folder, name);
end

function rust_target = windows_target()
% Returns Rust's target for the C compiler that builds the MEX file: Octave's is MinGW's, MATLAB's may be Microsoft's.
rust_target = 'x86_64-pc-windows-gnu';
if ~exist('OCTAVE_VERSION', 'builtin')
    compiler = mex.getCompilerConfigurations('C', 'Selected');
    if isempty(compiler)
        error('recon:Build', 'recon.build: MATLAB has no C compiler: run mex -setup C');
    end
    if strcmp(compiler(1).Manufacturer, 'Microsoft')
        rust_target = 'x86_64-pc-windows-msvc';
    end
end
end

function libraries = system_libraries()
% System libraries that librecon needs, and the option that keeps its symbols inside the MEX file.
if ispc
    libraries = {'-lkernel32', '-lntdll', '-luserenv', '-lws2_32', '-ldbghelp'};
    if exist('OCTAVE_VERSION', 'builtin')
        libraries = [{'-Wl,--exclude-libs,ALL', '-s'}, libraries];
    end
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

function run_mkoctfile(folder, list)
% Runs mkoctfile in the output's folder: it accepts spaces in all paths except the output's. Octave itself stays in its
% folder, in which relative folders of the path exist (addpath matlab).
program = fullfile(OCTAVE_HOME, 'bin', 'mkoctfile');
if ispc
    program = [program '.exe'];
end
if exist(program, 'file') ~= 2
    program = 'mkoctfile';
end
% On Windows the path of Octave contains a space.
quoted = cellfun(@(a) sprintf('"%s"', a), [{program}, list], 'UniformOutput', false);
command = [strjoin(quoted, ' ') ' 2>&1'];
if isunix
    enter = 'cd';
    % mkoctfile 7.3 does not delete all of its temporary files.
    scratch = tempname();
    mkdir(scratch);
    command = ['TMPDIR="' scratch '" ' command];
else
    enter = 'cd /d';
end
[status, text] = system(sprintf('%s "%s" && %s', enter, folder, command));
if isunix
    confirm_recursive_rmdir(false, 'local');
    rmdir(scratch, 's');
end
if status ~= 0
    error('recon:Build', 'recon.build: mkoctfile failed:\n%s', text);
end
fprintf('%s', text);
end
