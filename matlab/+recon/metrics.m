function quality = metrics(image, truth, varargin)
%METRICS  Errors of an image against the truth.
%   q = recon.metrics(image, truth) compares two images of the same size. With the error e = scale * image - truth:
%
%       q.percent_error  100 RMS(e) / RMS(truth)
%       q.mse            RMS(e)^2
%       q.psnr_db        20 log10(max|truth| / RMS(e))
%       q.snr_db         20 log10(RMS(truth) / RMS(e))
%       q.scale          the factor of the image
%
%   q = recon.metrics(image, truth, Name, Value, ...) sets options:
%
%       'Part'   'complex' (default), or 'magnitude': compares the magnitudes
%       'Scale'  'none' (default), or 'best': the factor with the smallest error
%       'Mask'   logical, of the images' size: the voxels to compare. Default: all
%
%   See also recon.phantom.image.
recon.internal.need_arguments(nargin, 2, 'recon.metrics(image, truth)');
recon.internal.need_numbers(image, 'recon.metrics: the image');
recon.internal.need_numbers(truth, 'recon.metrics: the truth');
recon.internal.check_size(image, size(truth), [], false, {'recon.metrics: the image', 'image', 'the truth'});
own = recon.internal.options('recon.metrics', varargin, {'Part', 'Scale', 'Mask'}, {});
values = recon.internal.defaults(struct('Part', 'complex', 'Scale', 'none', 'Mask', []), own);
if isfield(own, 'Mask')
    recon.internal.check_size(own.Mask, size(truth), [], false, {'recon.metrics: Mask', 'Mask', 'the images'});
end
quality = recon_mex('metrics', image, truth, values.Mask, values.Part, values.Scale);
end
