function names = plan_options()
%PLAN_OPTIONS  Returns the names of the options of recon.Encoding. All reconstructions accept them too. For internal
%   use.
names = {'Maps', 'Weights', 'FieldMap', 'DecayMap', 'Times', 'Coils', 'Frames', 'Basis', 'Voxels', 'Precision', ...
    'Method', 'Normal', 'Window', 'Width', 'Oversampling', 'Device', 'Gpus', 'Threads', 'Tolerance', 'MemoryLimit', ...
    'Simd', 'GpuArray'};
end
