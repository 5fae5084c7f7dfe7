"""Writes the two files of the package that follow from include/recon.h, so that nothing is written twice.

- _cdef.py: the types, as cffi reads them without a compiler and without parsing C at import.
- _header.py: documentation, which numbers are enumerations, and the names of parameters, for librecon/_capi.py.

Usage: python3 bindings.py HEADER FOLDER
"""

import pathlib
import pprint
import re
import sys

# Arrays of other libraries, by the protocol of DLPack (dlpack.h, version 0.8).
DLPACK = """
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct { void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides;
                 uint64_t byte_offset; } DLTensor;
typedef struct DLManagedTensor { DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *);
                               } DLManagedTensor;
"""

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def without_preprocessor(text):
    """Returns the declarations of a header for cffi: without comments, conditions and attributes.

    Macros that are numbers stay, as constants. Other macros are attributes of declarations, and are removed where they
    are used, with their arguments.
    """
    code = COMMENT.sub("", text)
    code = re.sub(r"\\\n", " ", code)
    code = re.sub(r'#\s*ifdef\s+__cplusplus\b.*?#\s*endif[^\n]*', "", code, flags=re.S)
    constants, attributes = [], []
    for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?[ \t]*([^\n]*)", code, re.M):
        if re.fullmatch(r"\(?-?(0x[0-9a-fA-F]+|\d+)[uUlL]*\)?", value.strip()):
            constants.append(f"#define {name} {value.strip('() uUlL')}")
        else:
            attributes.append(name)
    code = re.sub(r"^[ \t]*#[^\n]*\n", "", code, flags=re.M)
    for name in sorted(set(attributes), key=len, reverse=True):
        code = re.sub(rf"\b{name}\b(\s*\((?:[^()]|\([^()]*\))*\))?", " ", code)
    code = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\[\[[^\]]*\]\]", " ", code)
    return "\n".join(constants) + "\n" + code


def documented(text):
    """Yields (comment, code) for each run of line comments and the code after it, up to the next comment."""
    comment, code = [], []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("//"):
            if code:
                yield "\n".join(comment), "\n".join(code)
                comment, code = [], []
            comment.append(stripped[2:].removeprefix(" "))
        elif not stripped:
            if not code:
                comment = []
        else:
            code.append(line)
    yield "\n".join(comment), "\n".join(code)


def paragraphs(comment):
    """Returns the text of each list item of a comment, by its names: "- kx, ky: real ..."."""
    found = {}
    for names, text in re.findall(r"^- ([\w, ]+): (.*?)(?=^- |^\s*$|\Z)", comment, re.S | re.M):
        for name in names.split(","):
            found[name.strip()] = " ".join(text.split())
    return found


def enumeration(text, known):
    """Returns the enumeration that a text names: "A recon_window. Default: ..."."""
    match = re.search(r"\b(?:[Aa]|requested) (recon_\w+)", text)
    return match.group(1) if match and match.group(1) in known else None


def describe(header):
    """Returns documentation and enumerations of the functions and structures of the header."""
    clean = without_preprocessor(header)
    enums = set(re.findall(r"enum\s+(?:\w+\s*)?\{[^}]*\}\s*(\w+)\s*;", clean)) | set(re.findall(r"enum\s+(\w+)\s*\{", clean))
    functions, structures, types = {}, {}, {}
    structure, fields = None, {}
    for comment, code in documented(header):
        opening = re.search(r"\b(?:struct|enum)\s*(\w*)\s*\{", code)
        if opening:
            types_comment, structure, fields = comment, opening.group(1), {}
        field = re.search(r"([\w ]+?)[ *]+(\w+)\s*(?:\[\d+\])?\s*;", code)
        if structure is not None and field and not opening:
            fields[field.group(2)] = {"doc": " ".join(comment.split()), "enum": enumeration(comment, enums)
                                      if field.group(1).strip() == "uint32_t" else None}
        closing = re.search(r"^\}\s*(\w*)\s*;", code, re.M)
        if closing and structure is not None:
            name = closing.group(1) or structure
            types[name] = types_comment
            structures[name] = fields
            structure = None
        declaration = re.search(r"\b(recon_\w+)\s*\((.*?)\)[^;()]*(?:\([^;]*\))?;", COMMENT.sub("", code), re.S)
        if structure is None and not closing and declaration and "typedef" not in code:
            items = paragraphs(comment)
            parameters = []
            for part in declaration.group(2).split(","):
                name = re.findall(r"\w+", part)[-1]
                kind = enumeration(items.get(name, ""), enums) if "uint32_t " + name in part else None
                parameters.append((name, kind))
            functions[declaration.group(1)] = {"doc": comment, "parameters": [p for p in parameters if p[0] != "void"]}
    structures = {name: fields for name, fields in structures.items() if fields and name not in enums}
    # "the meaning of `precision`" of all generators is that of the first.
    for function in functions.values():
        function["parameters"] = [(name, kind or ("recon_precision" if name == "precision" else None))
                                  for name, kind in function["parameters"]]
    return {"FUNCTIONS": functions, "STRUCTURES": structures, "TYPES": types}


def write(header, folder):
    """Writes both files of a header into a folder."""
    import cffi

    text = pathlib.Path(header).read_text(encoding="utf-8")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    builder = cffi.FFI()
    builder.set_source("librecon._cdef", None)
    builder.cdef(without_preprocessor(text))
    builder.cdef(DLPACK)
    builder.emit_python_code(str(folder / "_cdef.py"))
    lines = ['"""Documentation and enumerations of include/recon.h, written by bindings.py."""', ""]
    for name, value in describe(text).items():
        lines += [f"{name} = " + pprint.pformat(value, width=118, sort_dicts=False), ""]
    (folder / "_header.py").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
