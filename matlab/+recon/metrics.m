function quality = metrics(image, truth, varargin)
%METRICS  How far an image is from the truth.
%   q = recon.metrics(image, truth) compares two images of the same size. Of the error e = scale * image - truth:
%
%       q.percent_error  100 RMS(e) / RMS(truth)
%       q.mse            RMS(e)^2
%       q.psnr_db        20 log10(max|truth| / RMS(e))
%       q.snr_db         20 log10(RMS(truth) / RMS(e))
%       q.scale          what the image was multiplied by
%
%   q = recon.metrics(image, truth, Name, Value, ...) sets options:
%
%       'Part'   'complex', or 'magnitude' to compare magnitudes
%       'Scale'  'none', or 'best': the number that makes the error least
%       'Mask'   logical, of the images' size: voxels that count
%
%   See also recon.phantom.image.
recon.internal.need(nargin, 2, 'recon.metrics(image, truth)');
recon.internal.numbers(image, 'recon.metrics: the image');
recon.internal.numbers(truth, 'recon.metrics: the truth');
recon.internal.fit(image, size(truth), [], false, {'recon.metrics: the image', 'image', 'the truth'});
own = recon.internal.options('recon.metrics', varargin, {'Part', 'Scale', 'Mask'}, {});
values = recon.internal.defaults(struct('Part', 'complex', 'Scale', 'none', 'Mask', []), own);
if isfield(own, 'Mask')
    recon.internal.fit(own.Mask, size(truth), [], false, {'recon.metrics: Mask', 'Mask', 'the images'});
end
quality = recon_mex('metrics', image, truth, values.Mask, values.Part, values.Scale);
end
