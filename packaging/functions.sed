# The functions of include/recon.h, one a line: sed -n -f packaging/functions.sed include/recon.h
s/^[a-z][^(]*[ *]\(recon_[a-z0-9_]*\)(.*/\1/p
