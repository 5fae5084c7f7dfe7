"""Finds the prose of a file: paragraphs of comments and documents, and the sentences in them."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass

C_LIKE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp")
HASH_COMMENTS = (".sh", ".toml", ".cmake", "Makefile", "CMakeLists.txt", ".ci/run")
ENDINGS = (*C_LIKE, ".rs", ".m", ".md", ".py", *HASH_COMMENTS)

# A sentence ends at its mark, except after these abbreviations.
SENTENCE_END = re.compile(r"""(?<!et al)(?<!e\.g)(?<!i\.e)(?<!\bvs)(?<!\bFig)(?<!\bEq)[.!?]["')*\]]*(?=\s)|$""")
# Headings, tables, HTML, pictures, rules of a page, and fixed lines. None of them is part of a paragraph.
NO_PROSE = re.compile(r"\s*(?:[#|<]|!\[|-{3}|={3}|SAFETY|SPDX|Example|See also|@)")
BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)]) +")
# "name   meaning" in columns: each line is a paragraph of its own.
COLUMNS = re.compile(r"\s*\S+(?: \S+){0,4}  +(?=\S)")
# Code, then a comment after it. A quote as a character, and strings, may contain slashes.
TRAILING = re.compile(r"""(?:'"'|"(?:\\.|[^"\\])*"|/(?!/)|[^"/])*?(?<=\s)//[/!]? (?P<text>.*)""")


@dataclass(frozen=True)
class Line:
    """One line of prose: its number in the file, the raw line, and the text without the marks of the comment."""

    number: int
    raw: str
    text: str
    # The kind of the comment. Lines of different kinds are never in one paragraph.
    kind: str = ""


def c_lines(source, rust):
    """Returns the lines of `//` comments, and of `/* */` comments in C."""
    inside = False
    for number, raw in enumerate(source.splitlines(), 1):
        if inside or not rust and re.match(r"\s*/\*", raw):
            text = re.sub(r"^\s*(?:/\*+|\*(?!/))? ?|\s*\*/.*$", "", raw)
            inside = "*/" not in raw
            yield Line(number, raw, text.rstrip(), "block")
        elif match := re.match(r"\s*(//[/!]?) ?(.*)", raw):
            yield Line(number, raw, match[2].rstrip(), match[1])
        elif match := TRAILING.fullmatch(raw):
            yield Line(number, raw, match["text"].rstrip(), f"after code {number}")
        else:
            yield None


def marked_lines(source, mark):
    """Returns the lines that are a comment as a whole, after a mark such as `%`."""
    for number, raw in enumerate(source.splitlines(), 1):
        match = re.match(rf"\s*{mark}+(?![#!{{}}]) ?(.*)", raw)
        yield Line(number, raw, match[1].rstrip(), mark) if match else None


def python_lines(source):
    """Returns the lines of docstrings, and the comments that have their own lines."""
    raw, found = source.splitlines(), {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            string = node.body[0].value
            for number in range(string.lineno, string.end_lineno + 1):
                text = re.sub(r'^\s*[rf]?"""|"""$', "", raw[number - 1]).rstrip()
                text = text.removeprefix(" " * string.col_offset)
                found[number] = Line(number, raw[number - 1], text, "docstring")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            text = token.string.lstrip("#").removeprefix(" ")
            found[token.start[0]] = Line(token.start[0], token.line.rstrip("\n"), text, "#")
    for number in range(1, len(raw) + 1):
        yield found.get(number)


def comment_lines(path, source):
    """Returns one `Line` for each line of prose of a file, and None for each line of code."""
    if path.endswith(".md"):
        return (Line(number, raw, raw.rstrip()) for number, raw in enumerate(source.splitlines(), 1))
    if path.endswith(".m"):
        return marked_lines(source, "%")
    if path.endswith(".py"):
        return python_lines(source)
    if path.endswith(HASH_COMMENTS):
        return marked_lines(source, "#")
    return c_lines(source, path.endswith(".rs"))


def paragraphs(path, source):
    """Returns the paragraphs of a file, each a list of `Line`. Code blocks, tables and headings are left out."""
    document, paragraph, fenced = path.endswith(".md"), [], False
    for line in comment_lines(path, source):
        if line is None:
            fenced = False
            text = ""
        else:
            text = line.text
        fence = re.match(r"\s*(?:```|~~~)", text)
        fenced ^= bool(fence)
        bullet = BULLET.match(text) or not document and COLUMNS.match(text)
        # Indented code. Lines of a paragraph may be indented more than its first, in documents by any number of spaces.
        indented = text.startswith(("    ", "\t")) and not (paragraph and (document or not re.match(r" {4}\S", text)))
        ends = fenced or fence or indented or not text.strip() or NO_PROSE.match(text) or "prose-ok" in text
        if paragraph and (ends or bullet or line.kind != paragraph[-1].kind):
            yield paragraph
            paragraph = []
        if not ends:
            begin = bullet.end() if bullet else 0
            paragraph.append(Line(line.number, line.raw, text[begin:].strip(), line.kind))
    if paragraph:
        yield paragraph


def sentences(paragraph):
    """Returns (sentence, lines) of a paragraph: `lines` maps a position in the sentence to the number of its line."""
    text, starts = "", []
    for line in paragraph:
        starts.append((len(text), line.number))
        text += line.text + "\n"
    # Code and links lose their characters but keep their line ends, so that lines can still be counted.
    text = re.sub(r"`[^`]*`", lambda code: "_" + "\n" * code[0].count("\n"), text)
    plain = re.sub(r"\]\([^)]*\)", lambda link: "]" + "\n" * link[0].count("\n"), text)
    begin = 0
    for end in SENTENCE_END.finditer(plain):
        part = plain[begin : end.end()]
        first = begin + len(part) - len(part.lstrip())
        if part.strip():
            number = lambda at, first=first: paragraph[min(plain.count("\n", 0, first + at), len(paragraph) - 1)].number
            yield " ".join(part.split("\n")).strip(), number
        begin = end.end()
