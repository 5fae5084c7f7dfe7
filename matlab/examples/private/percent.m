function value = percent(image, truth)
%PERCENT  The error of an image's magnitude in percent of the truth's RMS, at the best scale.
q = recon.metrics(abs(image), truth, 'Scale', 'best');
value = q.percent_error;
end
