function rest = check_data_size(data, samples, coils, what, name)
%CHECK_DATA_SIZE  Checks the size of k-space data, and returns the dimensions after the samples. For internal use.
%   coils is the number of coils, or [] if it is unknown. If sizes differ, either the data or the trajectory may have a
%   different order: the message contains both remedies.
whose = 'the trajectory''s samples';
if ~isempty(coils)
    whose = [whose ', then coils'];
end
rest = recon.internal.check_size(data, samples, coils, true, {what, name, whose, 'k'});
end
