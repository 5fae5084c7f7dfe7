"""Names of the sides and measurements of `make bench-sweep`, in its rows."""

OURS = "recon"
# "host" and "device" after a comma say where the arrays of the caller are on a GPU.
TRANSFORM, PLAN, CALL = "transform", "plan", "call"
