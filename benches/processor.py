"""Name of a processor, for the files of its table, from lines of /proc/cpuinfo.

Virtual machines often hide a processor's name ("AMD EPYC"), but not its family and model, which decide. They follow
the tables of Linux (arch/x86/kernel/cpu/amd.c and arch/x86/include/asm/intel-family.h), and Arm's list of parts. A
processor that is not in them gets a name of its vendor, family and model.
"""

import re

# (family, first model, last model, architecture, its widest vector unit)
AMD = (
    (0x17, 0x00, 0x2F, "zen1", "avx2"),
    (0x17, 0x30, 0xFF, "zen2", "avx2"),
    (0x19, 0x00, 0x0F, "zen3", "avx2"),
    (0x19, 0x20, 0x5F, "zen3", "avx2"),
    (0x19, 0x10, 0x1F, "zen4", "avx512"),
    (0x19, 0x60, 0xAF, "zen4", "avx512"),
    (0x1A, 0x00, 0x2F, "zen5", "avx512"),
    (0x1A, 0x40, 0x4F, "zen5", "avx512"),
    (0x1A, 0x60, 0x7F, "zen5", "avx512"),
)
INTEL = (
    (6, 0x3F, 0x3F, "haswell", "avx2"),
    (6, 0x4F, 0x4F, "broadwell", "avx2"),
    # Cascade Lake and Cooper Lake have this model too. They differ in the stepping, which Linux's tables leave out.
    (6, 0x55, 0x55, "skylake", "avx512"),
    (6, 0x6A, 0x6C, "ice-lake", "avx512"),
    (6, 0x8F, 0x8F, "sapphire-rapids", "avx512"),
    (6, 0xCF, 0xCF, "emerald-rapids", "avx512"),
    (6, 0xAD, 0xAE, "granite-rapids", "avx512"),
    (6, 0xAF, 0xAF, "sierra-forest", "avx2"),
    (6, 0x97, 0x97, "alder-lake", "avx2"),
    (6, 0x9A, 0x9A, "alder-lake", "avx2"),
    (6, 0xB7, 0xB7, "raptor-lake", "avx2"),
    (6, 0xBA, 0xBA, "raptor-lake", "avx2"),
    (6, 0xBF, 0xBF, "raptor-lake", "avx2"),
)
ARM = {0xD0C: "neoverse-n1", 0xD40: "neoverse-v1", 0xD49: "neoverse-n2", 0xD4F: "neoverse-v2"}
VENDORS = {"AuthenticAMD": ("amd", AMD), "GenuineIntel": ("intel", INTEL)}
BRANDS = ("epyc", "ryzen", "threadripper", "xeon", "core")
# From the widest: the name here, and the flag of Linux.
UNITS = (("avx512", "avx512f"), ("avx2", "avx2"), ("avx", "avx"), ("sse2", "sse2"), ("neon", "asimd"))


def fields(cpuinfo):
    """Returns the first value of each field."""
    found = {}
    for name, value in re.findall(r"^([^\n:]*?)\s*:[ \t]*(.*)$", cpuinfo, re.MULTILINE):
        found.setdefault(name, value.strip())
    return found


def widest_unit(flags):
    return next((name for name, flag in UNITS if flag in flags), "no-vectors")


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def name(cpuinfo):
    """Returns for example amd-epyc-zen5, or amd-epyc-zen5-avx2 if a virtual machine hides AVX-512."""
    found = fields(cpuinfo)
    unit = widest_unit(found.get("flags", found.get("Features", "")).split())
    if "CPU part" in found:
        part = int(found["CPU part"], 16)
        implementer = found.get("CPU implementer", "unknown")
        if implementer == "0x41" and part in ARM:
            return f"arm-{ARM[part]}"
        return slug(f"arm-implementer-{implementer}-part-{part:#x}-{unit}")
    vendor, architectures = VENDORS.get(found.get("vendor_id"), (found.get("vendor_id", "unknown"), ()))
    family, model = (int(found.get(field, -1)) for field in ("cpu family", "model"))
    brand = next((word for word in BRANDS if word in re.findall("[a-z]+", found.get("model name", "").lower())), None)
    for of_family, first, last, architecture, widest in architectures:
        if family == of_family and first <= model <= last:
            hidden = "" if unit == widest else unit
            return slug("-".join(filter(None, (vendor, brand, architecture, hidden))))
    if family < 0:
        return slug(f"{vendor}-{found.get('model name', 'unknown')}-{unit}")
    return slug(f"{vendor}-family-{family}-model-{model}-{unit}")
