function names = plan_options()
%PLAN_OPTIONS  Names of the options of recon.Encoding. Every reconstruction takes them too. For internal use.
names = {'Maps', 'Weights', 'Coils', 'Frames', 'Basis', 'Voxels', 'Precision', 'Method', 'Normal', 'Window', ...
    'Width', 'Oversampling', 'Device', 'Gpus', 'Threads', 'Tolerance', 'MemoryLimit', 'Simd', 'GpuArray'};
end
