"""Checks the language and the layout of comments and documents, by the rules of rules.py.

    check.py                 all files of the project; fails on any finding, and if too few documents begin with a verb
    check.py PATH...         some files or folders
    check.py --counts        totals by rule only
    check.py --verbs PATH... lists the documents of Rust functions that do not begin with a verb

Only Python's standard library is needed. A line that contains `prose-ok` is not checked. Generated files are not, either:
they are right if their sources are.
"""

import argparse
import collections
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from prose import ENDINGS, paragraphs, sentences
from rules import RULES

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, WORDS = 120, 35
# The share of the documents of Rust functions, in percent, that must begin with a verb.
LEAST_VERBS = 75
GENERATED = re.compile(r"minimax_table\.rs$|include/recon\.h$|docs/benchmarks/(?:cpu|gpu|defaults)|LICENSE|rules\.py$")
# Words that end as verbs do: plural nouns that documents begin with, and small words.
NO_VERBS = frozenset(
    """Acquisitions Always Angles Arrays As Axes Besides Bits Blades Buffers Bytes Cells Coils Columns Coordinates
    Defaults Details Differences Digits Dimensions Elements Entries Errors Factors Files Frames Has Images Indices Is
    Its Lanes Lengths Less Limits Lines Lists Maps Matrices Means Minus Names Nodes Numbers Options Others Parts
    Perhaps Phases Pixels Plus Points Positions Products Reconstructions Residuals Results Rows Samples Scans Seconds
    Segments Settings Shots Sizes Spokes Steps Sums Taps Terms Texts Theirs Things This Those Threads Thus Tiles Times
    Towards Units Values Vectors Voxels Was Weights Windows Words""".split()
)


@dataclass(frozen=True)
class Finding:
    """One violation of a rule."""

    path: str
    line: int
    rule: str
    excerpt: str
    advice: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.excerpt.strip()} ({self.advice})"


def layout(path, paragraph):
    """Returns the lines of a paragraph that are too long or broken too early."""
    for index, line in enumerate(paragraph):
        if len(line.raw) > COLUMNS and "http" not in line.raw:
            yield Finding(path, line.number, "long-line", line.text[-60:], f"{len(line.raw)} columns, limit {COLUMNS}")
        if index + 1 < len(paragraph):
            free = COLUMNS - len(line.raw) - len(paragraph[index + 1].text.split()[0])
            fragment = index > 0 and len(line.text.split()) <= 2 and ":" not in line.text and free > 15
            if fragment or free > 45 and line.text[-1] not in ".:;!?)":
                yield Finding(path, line.number, "broken-reflow", line.text, "wrap the paragraph again")


def language(path, paragraph):
    """Returns the sentences of a paragraph that are too long or break a rule of language."""
    for sentence, line_at in sentences(paragraph):
        words = len(sentence.split())
        if words > WORDS:
            yield Finding(path, line_at(0), "long-sentence", sentence[:70], f"{words} words, limit {WORDS}: split it")
        for rule in RULES:
            if match := rule.search(sentence):
                excerpt = sentence[max(0, match.start() - 40) : match.end() + 40]
                yield Finding(path, line_at(match.start()), rule.name, excerpt, rule.advice)


def findings(path, source):
    """Returns all violations in a file."""
    for paragraph in paragraphs(path, source):
        yield from layout(path, paragraph)
        yield from language(path, paragraph)


def function_documents(source):
    """Returns (line, text) for the first line of the document of each Rust function."""
    document, first = None, 0
    for number, line in enumerate(source.splitlines(), 1):
        if match := re.match(r"\s*/// ?(.*)", line):
            document, first = (document, first) if document is not None else (match[1], number)
        elif document is not None and not re.match(r"\s*(?:#|\)\]|//)", line):
            if re.match(r'\s*(?:pub(?:\([^)]*\))? )?(?:(?:const|async|unsafe) |extern "[^"]*" )*fn \w', line):
                yield first, document
            document = None


def begins_with_verb(document):
    """Checks whether the first word has the form of a verb in the third person: "Returns", "Copies"."""
    word = re.match(r"[A-Z][a-z-]*s\b", document)
    return bool(word) and not word[0].endswith("ss") and word[0] not in NO_VERBS


def project_files(paths):
    """Returns the files of the project with prose, or those of them that lie under `paths`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--full-name", "--", *paths],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return sorted({name for name in listed if name.endswith(ENDINGS) and not GENERATED.search(name)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--verbs", action="store_true")
    arguments = parser.parse_args()
    counts, documents, verbs = collections.Counter(), 0, 0
    for name in project_files(arguments.paths or [str(ROOT)]):
        path = ROOT / name
        if not path.is_file():
            continue
        source = path.read_text(encoding="utf-8")
        for finding in () if arguments.verbs else findings(name, source):
            counts[finding.rule] += 1
            if not arguments.counts:
                print(finding)
        for number, document in function_documents(source) if name.endswith(".rs") else ():
            documents += 1
            verbs += begins_with_verb(document)
            if arguments.verbs and not begins_with_verb(document):
                print(f"{name}:{number}: {document}")
    for rule, count in counts.most_common() if arguments.counts else ():
        print(f"{count:6} {rule}")
    share = 100 * verbs / max(documents, 1)
    print(f"prose: {sum(counts.values())} findings; {share:.0f} % of {documents} function documents begin with a verb")
    too_few = not arguments.paths and share < LEAST_VERBS
    if too_few:
        print(f"prose: at least {LEAST_VERBS} % must begin with a verb; --verbs lists the others")
    return 1 if counts or too_few else 0


if __name__ == "__main__":
    sys.exit(main())
