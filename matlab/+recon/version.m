function text = version()
%VERSION  The version of the library, 'major.minor.patch'.
text = recon_mex('version');
end
