"""The rules of language, each with sentences that break it and sentences that do not; test_check.py tries them all.

A pattern sees one sentence, in which code in backticks is replaced with `_` and the targets of links are removed.
"""

import re
from dataclasses import dataclass, field

# Nouns that are counted, and nouns that are counted per something: "one map a coil" has one of each.
COUNTED = (
    "one two three four several each array byte cell element file frame grid image kernel line map number page phase "
    "plan record row sample slice spoke subject sum table tap term thread tile value voxel"
).split()
PER = (
    "array axis batch blade block call cell channel coil column command commit echo file frame GPU group image line "
    "loop node page plan point processor row sample scan segment shot slice spoke stage step subject thread tile "
    "vector voxel"
).split()
PLURALS = "|".join(f"{noun}s?" for noun in COUNTED)


@dataclass(frozen=True)
class Rule:
    """One rule. A sentence breaks it if any of the patterns is found in it."""

    name: str
    advice: str
    patterns: tuple
    bad: tuple
    good: tuple
    compiled: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "compiled", tuple(re.compile(pattern) for pattern in self.patterns))

    def search(self, sentence):
        """Returns the first match of a pattern of this rule, or None."""
        return next(filter(None, (pattern.search(sentence) for pattern in self.compiled)), None)


RULES = (
    Rule(
        "clause-as-subject",
        'begin with a noun or a verb: "Properties of ...", "Returns ..."',
        (r"^(?:What|Who|Whatever|Whoever)\b(?!.*\?$)",),
        ("What serves the scan.", "Who only asks whether there is Q does not."),
        ("Properties of the scan.", "What is the adjoint?"),
    ),
    Rule(
        "clause-as-object",
        'name the thing: not "for what", "of what is there"',
        (
            r"\b(?:as|at|but|by|for|in|into|on|to|under|without) what\b(?! prior\b)",
            r"\bof what (?:comes|goes|is|are|was|were|it|they|there|one)\b",
        ),
        ("Room for what is kept.", "It warns of what was lost.", "Sorts by what they hold, in what order it likes."),
        ("Space for the stored arrays.", "It reports what prior was used in what prior step."),
    ),
    Rule(
        "pronoun-as-subject",
        "repeat the noun",
        (r"^(?:Such|That|Theirs|These|Those)(?:,|\.$| (?:as|for|in|of|where|which)\b)",),
        ("Those of the caller.", "That of a plan.", "Those."),
        ("The caller's weights.", "These weights are positive.", "That is why the sum is exact."),
    ),
    Rule(
        "where-for-if",
        '"if" or "when" for a condition',
        (
            r"\b[Ww]here (?:none|not|one is|some)\b",
            r"\b[Ww]here there (?:is|are|was|were) (?:an?|any|none|one|several|some|such)\b",
            r"\b[Ww]here (?:it|they|that) (?:is|are|was) (?:none|not)\b",
        ),
        ("Where none is given, 16 is used.", "The scale, where it is not 1.", "Where there is a GPU, it computes."),
        ("If it is absent, 16 is used.", "The folder where the kernels are stored.", "If there is a GPU, it computes."),
    ),
    Rule(
        "tell",
        '"returns", "reports", "shows", "distinguishes"',
        (
            r"\b(?:tells?|told)\b"
            r"(?! (?:[a-z]+ )*?(?:apart|from|you|us|me|to|the (?:user|library)|Gadgetron)\b)",
        ),
        ("The plan tells its error.", "Memory is told in bytes."),
        ("The plan reports its error.", "Two axes of equal length cannot be told apart."),
    ),
    Rule(
        "named",
        '"set", "given", "specified"',
        (
            r"\b(?:are|be|been|is|none|not|one|that|was|were) named\b",
            r"\bnames? (?:a tolerance|none|one|them)\b",
            r"\bnamed (?:tolerance|width|window)",
        ),
        ("A width that is named is used.", "Unless you name one.", "The named window."),
        ("A width that is set is used.", "The header names the unit."),
    ),
    Rule(
        "keep-tolerance",
        '"meets the tolerance"',
        (
            r"\b(?:keep|keeps|kept)\b[^.;]{0,30}\b(?:error|tolerance)",
            r"\b(?:error|tolerance)\b[^.;]{0,40}\b(?:are|be|is) kept\b",
        ),
        ("It keeps the tolerance.", "A tolerance that cannot be kept is refused.", "The error that is asked for is kept."),
        ("It meets the tolerance.", "The arrays are kept for the next plan."),
    ),
    Rule(
        "err",
        '"has an error of"',
        (r"\berr(?:s|ed)?\b(?!\()",),
        ("An entry errs by 1e-3.", "They err by half."),
        ("An entry has an error of 1e-3.", "The error is 1e-3."),
    ),
    Rule(
        "double-genitive",
        '"your stream", "a plan of recon"',
        (
            r"\bof (?:ours|theirs|yours|hers|his|mine)\b",
            r"\bof (?:an? |the )?[A-Za-z]+'s(?: own)?"
            r"(?=$|[.,;:)]| (?:and|are|for|in|is|or|serves|takes|that|to|which)\b)",
        ),
        ("A stream of yours.", "A stream of the caller's.", "A plan of recon's serves both."),
        ("Your stream.", "The caller's stream.", "One of the caller's arrays."),
    ),
    Rule(
        "archaic",
        '"also", "again", "in advance", "except", "compared with"',
        (
            r"\b(?:[Aa]fresh|[Aa]new|[Bb]eforehand|[Bb]esides|[Bb]ut for|[Tt]hereof|[Tt]hereby|[Ww]herein|[Ww]hence)\b",
            r"\b[Bb]eside (?:that|the sorting|them\b|those|sorting|what|which)",
        ),
        ("It is computed anew.", "Besides, it warns.", "All but for the last.", "Slow beside those of 2D."),
        ("It is computed again.", "It also warns.", "All except the last.", "The pointer beside the array."),
    ),
    Rule(
        "limit-last",
        '"Maximum number of ...", "at most N ..."',
        (r"^[^.;]*, at (?:least|most)\.$", r"[^,] at (?:least|most)\.$"),
        ("Terms at most.", "The number of nodes, at least."),
        ("Maximum number of terms.", "At most 16 terms are used.", "Uses at most 16 terms."),
    ),
    Rule(
        "a-for-per",
        '"one per coil"',
        (rf"\b(?:{PLURALS}) an? (?:{'|'.join(PER)})\b(?!'s| can\b| has\b| is\b)",),
        ("One map a coil.", "t in seconds, one a sample.", "Two numbers a voxel."),
        ("One map per coil.", "If for one a sample is missing, it fails.", "Gives each thread a tile's sums."),
    ),
    Rule(
        "none-as-predicate",
        'say what is: "non-negative", "no X is ...", "does not have"',
        (
            r"\b(?:is|are) none\b",
            r"\bnone (?:are|can|is|may|negative|was)\b",
            r"\b[Nn]obody\b",
            r"\b(?:of which|where|among which) none\b",
            r"\bnone among\b",
        ),
        ("There is none.", "Weights, none negative.", "Nobody waits for it."),
        ("It does not exist.", "Non-negative weights.", "`none` disables whitening, and None is the default."),
    ),
    Rule(
        "is-no",
        '"is not a ..."',
        (r"(?<![Tt]here )\b(?:are|is|was|were) no (?!faster\b|larger\b|less\b|longer\b|more\b|need\b|one\b|slower\b)[a-z]",),
        ("It is no readout.", "These are no weights."),
        ("It is not a readout.", "There is no readout.", "It is no longer used."),
    ),
    Rule(
        "is-there",
        '"exists", "is available", "is installed"',
        (r"\b(?:are|be|is|was|were) there\b(?! (?:an?|any|are|is|no)\b)",),
        ("If the file is there, it is read.", "The file is there."),
        ("If the file exists, it is read.", "Is there a GPU?"),
    ),
    Rule(
        "another",
        '"different", "new", "changed"',
        (
            r"\b(?:are|be|is) (?:another|other)\b",
            r"\b(?:has|have|wants?|with) another (?!file\b|process\b|thread\b|way\b)",
        ),
        ("If the size is another, it fails.", "Frames have another trajectory."),
        ("If the size differs, it fails.", "With another thread it would be faster."),
    ),
    Rule(
        "before-as-noun",
        '"the previous ..."',
        (
            r"\b(?:call|frame|image|it|maps|ones?|plan|state|that|the|those|version) before"
            r"(?=$|[.,;:)]| (?:are|has|is|was|where)\b)",
        ),
        ("It starts from the image before.", "The one before is kept."),
        ("It starts from the previous image.", "The image before whitening is kept."),
    ),
    Rule(
        "so-many",
        'give the number its name: "`count` samples", "the same number of"',
        (r"\b[Ss]o (?:few|many|much)\b(?! that\b)", r"\b[Aa]s many\b(?!(?: [a-z]+){0,3} as\b)"),
        ("For batches of so many samples.", "The next array holds as many."),
        ("For batches of `batch` samples.", "It has as many threads as cores.", "So many that memory runs out."),
    ),
    Rule(
        "serve",
        '"works", "is enough", "is used for", "corrects"',
        (
            r"\b(?:that|will|would) do\b(?! (?:it|not|so)\b)",
            r"\bserves?\b(?! (?:all|scans|several)\b)",
            r"\bmakes? (?:no )?good\b",
            r"\bis as good as before\b",
        ),
        ("A smaller window will do.", "One plan serves both directions.", "It makes good the loss."),
        ("A smaller window is enough.", "One plan serves several threads."),
    ),
    Rule(
        "as-it-is",
        '"unchanged"',
        (r"\bas (?:it|they) (?:came|comes?|stands?|was|were|will do)\b(?=$|[.,;:)]| (?:before|then)\b)",),
        ("lambda is taken as it stands.", "Voxels are taken as they come."),
        ("The array is unchanged.", "As it is large, it is split.", "Coils stay as they are."),
    ),
    Rule(
        "stand",
        '"is in", "is defined in"',
        (r"\bstands? (?:above|at|below|beside|in|on|there|together)\b",),
        ("Defaults stand in defaults.rs.", "The factor stands at the end."),
        ("Defaults are in defaults.rs.", "The letter N stands for the number of voxels."),
    ),
    Rule(
        "want",
        '"needs", "requires", "requested"',
        (r"\b(?:wanted|wants)\b(?! to\b)", r"\b(?:it|may|nobody|that|they|which) want\b"),
        ("The kernel wants whole tiles.", "The precision that is wanted.", "Programs that want Q."),
        ("The kernel requires whole tiles.", "If you want Q, set this."),
    ),
    Rule(
        "have-done",
        '"calls", "creating"',
        (
            r"\b(?:[Hh]as|have) (?:_|an? [a-z]+|buffers|the [a-z]+) (?:asked|done|made|make|write|written)\b",
            r"\b(?:its|the|their|whose|'s) making\b",
        ),
        ("Has the caller asked meanwhile.", "A fraction of its making."),
        ("Polls the caller.", "A fraction of the time of creation."),
    ),
    Rule(
        "semicolons",
        "a list, or several sentences",
        (r"(?:;.*){3}",),
        ("One; two; three; four.",),
        ("One; two; three.",),
    ),
)
