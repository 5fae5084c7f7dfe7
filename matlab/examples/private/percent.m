function value = percent(image, truth)
%PERCENT  The RMS error of an image's magnitude, in percent of the truth's RMS, with the scale of the smallest error.
q = recon.metrics(abs(image), truth, 'Scale', 'best');
value = q.percent_error;
end
