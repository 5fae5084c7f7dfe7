function list = devices()
%DEVICES  The NVIDIA GPUs that recon can see.
%   recon.devices() is a structure array: index (for the option 'Gpus'), name, multiprocessors, compute (the compute
%   capability), memory_bytes, memory_free_bytes. It is empty if there is no GPU or no driver.
%
%   See also recon.Encoding.
list = recon_mex('devices');
end
