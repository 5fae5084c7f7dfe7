function progress(p)
%PROGRESS  Prints the progress of recon.cg, twice a second. For internal use.
persistent printed
last = p.iteration == p.iterations && p.image == p.images;
if isempty(printed) || p.iteration == 0 && p.image == 1 || last || toc(printed) > 0.5
    printed = tic;
    text = sprintf('recon.cg: iteration %d of %d', p.iteration, p.iterations);
    if p.images > 1
        text = sprintf('%s, image %d of %d', text, p.image, p.images);
    end
    fprintf('%s, residual %.2e\n', text, p.residual);
    if exist('OCTAVE_VERSION', 'builtin')
        fflush(stdout);
    else
        drawnow;
    end
end
end
