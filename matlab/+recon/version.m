function text = version()
%VERSION  Returns the version of the library, 'major.minor.patch'.
text = recon_mex('version');
end
