"""Tests of the check of language and layout. `make check` runs them: they need Python alone.

    python3 tests/prose/test_check.py
"""

import unittest

import check
from prose import paragraphs, sentences
from rules import RULES


def rules_of(path, source):
    return [finding.rule for finding in check.findings(path, source)]


def prose_of(path, source):
    return [" ".join(line.text for line in paragraph) for paragraph in paragraphs(path, source)]


class Rules(unittest.TestCase):
    def test_bad_sentences_are_found(self):
        for rule in RULES:
            for sentence in rule.bad:
                with self.subTest(rule=rule.name, sentence=sentence):
                    self.assertIn(rule.name, rules_of("page.md", sentence))

    def test_good_sentences_pass(self):
        for rule in RULES:
            for sentence in rule.good:
                with self.subTest(rule=rule.name, sentence=sentence):
                    self.assertNotIn(rule.name, rules_of("page.md", sentence))

    def test_code_and_links_are_not_read(self):
        self.assertEqual(rules_of("page.md", "It returns `what is there`, [as usual](wants/beside-those/so-many)."), [])

    def test_a_line_can_be_exempt(self):
        self.assertEqual(rules_of("a.rs", "// The plan tells its error. prose-ok\n"), [])

    def test_the_line_of_a_finding_is_that_of_the_words(self):
        source = "First line of a paragraph that is long enough to\nfill its line. The plan `a\nb` tells its error.\n"
        found = [finding for finding in check.findings("page.md", source) if finding.rule == "tell"]
        self.assertEqual([finding.line for finding in found], [3])


class Layout(unittest.TestCase):
    def test_long_sentences(self):
        self.assertEqual(rules_of("page.md", "word " * 34 + "end."), ["long-line"] * 1)
        self.assertIn("long-sentence", rules_of("page.md", "word " * 35 + "end."))

    def test_long_lines(self):
        text = "a sentence of words that goes on. " * 4
        self.assertEqual(rules_of("page.md", text), ["long-line"])
        for exempt in (f"| {text} |", f"```sh\n{text}\n```", f"[here](http://{text.replace(' ', '-')})", f"# {text}"):
            self.assertEqual(rules_of("page.md", exempt), [])

    def test_broken_paragraphs(self):
        full = "A sentence of many words that ends in the line. Another one that fills nearly all of its columns, and goes"
        self.assertEqual(rules_of("a.rs", f"// {full}\n// more\n// {full}\n"), ["broken-reflow"])
        self.assertEqual(rules_of("a.rs", f"// {full}\n// {full}\n// more.\n"), [])
        self.assertEqual(rules_of("page.md", "A short line that goes\non in the next.\n"), ["broken-reflow"])
        self.assertEqual(rules_of("page.md", "A short sentence.\nThe next one.\n"), [])


class Prose(unittest.TestCase):
    def test_rust(self):
        source = '/// A plan.\n///\n/// ```\n/// let a = 1;\n/// ```\nfn f() {\n    let x = "no // comment"; // Why.\n}\n'
        self.assertEqual(prose_of("a.rs", source), ["A plan.", "Why."])

    def test_c(self):
        source = "/* One\n * comment. */\nint a; // Two.\n// SPDX-License-Identifier: MIT\n/**\n * Three.\n */\n"
        self.assertEqual(prose_of("a.h", source), ["One comment.", "Two.", "Three."])

    def test_matlab(self):
        source = "%GRID Gridding.\n%   'Width'    width of the window\n%   'Filter'   the filter\nx = 1;\n%! code\n"
        self.assertEqual(prose_of("a.m", source), ["GRID Gridding.", "width of the window", "the filter"])

    def test_python(self):
        source = '"""Title.\n\n    usage: code\n"""\n\nx = "what is"  # trailing\n# A comment.\n'
        self.assertEqual(prose_of("a.py", source), ["Title.", "A comment."])

    def test_make(self):
        self.assertEqual(prose_of("Makefile", "# A comment.\nall:\n\techo # no\n"), ["A comment."])

    def test_markdown(self):
        source = "# Title\n\nText of\na paragraph.\n\n- one\n- two\n  goes on\n\n    code\n\n| a | b |\n"
        self.assertEqual(prose_of("page.md", source), ["Text of a paragraph.", "one", "two goes on"])

    def test_sentences(self):
        (paragraph,) = paragraphs("page.md", "By Stone et al. 2008, i.e. the 2nd. Is it `a. b`? Yes.")
        found = [sentence for sentence, _ in sentences(paragraph)]
        self.assertEqual(found, ["By Stone et al. 2008, i.e. the 2nd.", "Is it _?", "Yes."])


class Verbs(unittest.TestCase):
    def test_first_words(self):
        for document in ("Returns the sum.", "Copies samples.", "Re-sorts them."):
            self.assertTrue(check.begins_with_verb(document), document)
        for document in ("The sum.", "Samples of a shot.", "Less than x.", "`x` is returned.", "copies", "Return x."):
            self.assertFalse(check.begins_with_verb(document), document)

    def test_functions_only(self):
        source = (
            "/// Sums.\nstruct A;\n/// Returns it.\n/// More.\n#[inline]\npub(crate) unsafe fn f() {}\n"
            '/// A number.\npub extern "C" fn g() {}\n/// A field.\na: u32,\nfn h() {}\n'
        )
        self.assertEqual(list(check.function_documents(source)), [(3, "Returns it."), (7, "A number.")])


if __name__ == "__main__":
    unittest.main()
