function rest = fit_data(data, samples, coils, what, name)
%FIT_DATA  Dimensions of k-space data behind the trajectory's samples, and behind the coils where their number is known.
%   What the trajectory cannot tell of itself its data do, and the other way round. For internal use.
whose = 'the trajectory''s samples';
if ~isempty(coils)
    whose = [whose ', then coils'];
end
rest = recon.internal.fit(data, samples, coils, true, {what, name, whose, 'k'});
end
