#!/usr/bin/env python3
"""Applies the one-line changes of list.txt to a copy of the source, one by one, and requires the test of each to fail.

    run.py                 every change, each with a build of its own: an hour or more on two cores
    run.py --switched      one build for all changes, which an environment variable turns on: minutes
    run.py --check         only reads the list: each old text must occur exactly once in its file
    run.py NAME ...        only changes whose names contain one of these

The tests must pass without a change first. A line is printed for each change. The exit status is 1 if a change
survives, does not compile, or is not found in its file, and if a test fails without a change. The copy of the source
and its build are in target/mutants. The environment variable CARGO names the cargo that is used.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("list.txt")
FOLDER = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "mutants"
CARGO = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--profile", "quick"]
# Seconds after which a test that hangs counts as failed. The slowest takes two minutes on a loaded machine.
LIMIT = 900
# The variable that holds the number of the change that is turned on, with --switched.
SWITCH = "RECON_MUTANT"
FIELDS = ("file", "old", "new", "test")


class Mutant:
    """A change: its number from 1 on, its name, and the fields of its block in the list."""

    def __init__(self, number, name):
        self.number, self.name = number, name
        self.file = self.old = self.new = self.test = None

    def check(self):
        """Returns what is wrong with the change, or None."""
        missing = [field for field in FIELDS if not getattr(self, field)]
        if missing:
            return f"the block has no {missing[0]}"
        path = ROOT / self.file
        if not path.is_file():
            return f"{self.file} does not exist: name the file that has the formula now"
        text = path.read_text()
        count = text.count(self.old)
        if count != 1:
            return f"{self.file} has the old text {count} times, not once: correct the block in list.txt"
        begin = text.index(self.old)
        if re.match(r"\w\w", text[begin - 1 : begin + 1]):
            return f"in {self.file} the old text begins within a word: add the rest of the word to the block"
        return None

    def is_rust(self):
        """Returns whether the change is in Rust. Changes of other languages need no build by cargo."""
        return self.file.endswith(".rs")

    def switched(self):
        """Returns the text that does the new or the old, by the number in the environment variable."""
        crate = "recon" if self.file.startswith(("src/cli", "src/files")) else "crate"
        choose = f"if {crate}::mutant_is_on({self.number}) {{ %s }} else {{ %s }}"
        for head, tail in ((r"let \w+ = ", ";"), (r"\|[\w, ]+\| ", "")):
            both = [re.fullmatch(f"({head})(.*?){tail}", text) for text in (self.new, self.old)]
            if all(both):
                return both[1][1] + choose % (both[0][2], both[1][2]) + tail
        if self.old.endswith(";"):
            return choose % (self.new, self.old)
        return "(" + choose % (self.new, self.old) + ")"


def read_list():
    """Returns the changes of list.txt."""
    mutants = []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if line.startswith("[") and line.endswith("]"):
            mutants.append(Mutant(len(mutants) + 1, line[1:-1]))
        elif line.strip() and not line.startswith("#"):
            field, separator, value = line.partition(" = ")
            if field not in FIELDS or not separator or not mutants:
                sys.exit(f"list.txt, line {number}: expected a name in brackets, or one of {', '.join(FIELDS)} = ...")
            setattr(mutants[-1], field, value.strip())
    return mutants


def check(mutants):
    """Prints what is wrong with the changes, and returns the number of those that have something wrong."""
    wrong = 0
    for mutant in mutants:
        problem = mutant.check()
        if problem or sum(other.name == mutant.name for other in mutants) > 1:
            print(f"{mutant.name}: {problem or 'two changes have this name'}")
            wrong += 1
    return wrong


def copy_source(tree, changed):
    """Copies the files of the repository to `tree`, with the texts of `changed` in place of some. Files that are the
    same keep their time stamps, so that cargo does not build them again."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE,
    ).stdout.decode().split("\0")
    names = {name for name in names if name and (ROOT / name).is_file()}
    for name in names:
        content = changed[name].encode() if name in changed else (ROOT / name).read_bytes()
        write(tree / name, content)
    for path in [path for path in tree.rglob("*") if path.is_file()]:
        if path.relative_to(tree).as_posix() not in names:
            path.unlink()


def write(path, content):
    """Writes a file whose content is different."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def switched_source(mutants):
    """Returns the texts of the files that have changes, with all changes in them."""
    texts = {}
    for mutant in filter(Mutant.is_rust, mutants):
        text = texts.get(mutant.file, (ROOT / mutant.file).read_text())
        texts[mutant.file] = text.replace(mutant.old, mutant.switched())
    library = texts.get("src/lib.rs", (ROOT / "src/lib.rs").read_text())
    texts["src/lib.rs"] = library + f"""
/// Whether the change of this number is turned on.
#[doc(hidden)]
pub fn mutant_is_on(number: usize) -> bool {{
    static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let on = || std::env::var("{SWITCH}").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    *ON.get_or_init(on) == number
}}
"""
    return texts


class Workplace:
    """The copy of the source, and the folder of its build."""

    def __init__(self, switched):
        self.tree = FOLDER / ("switched" if switched else "tree")
        self.environment = dict(os.environ, CARGO_TARGET_DIR=str(FOLDER / "build"))
        self.environment.pop(SWITCH, None)

    def builds(self, test):
        """Builds a test, and returns whether this succeeded, with the compiler's errors."""
        done = subprocess.run(
            CARGO + ["--no-run"] + test.split()[: 2 if test.startswith("--test") else 4],
            cwd=self.tree, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return done.returncode == 0, done.stdout

    def run(self, test, switch=0):
        """Runs a test. Returns whether it passed, the number of tests that ran, the names of those that failed, and the
        lines that say what was skipped."""
        environment = dict(self.environment, **({SWITCH: str(switch)} if switch else {}))
        process = subprocess.Popen(
            CARGO + ["--quiet"] + test.split(), cwd=self.tree, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            return False, 1, [f"no end after {LIMIT} s"], []
        ran = sum(int(n) for n in re.findall(r"^running (\d+) tests?$", text, re.MULTILINE))
        failed = sorted(set(re.findall(r"^---- (\S+) stdout ----$", text, re.MULTILINE)))
        skipped = re.findall(r"^skipped: .*", text, re.MULTILINE)
        return process.returncode == 0, ran, failed or [f"exit status {process.returncode}"], skipped


def report(state, started, name, more=""):
    """Prints the line of a change or of a test."""
    print(f"{state:<16}{time.monotonic() - started:6.0f} s  {name}{more}", flush=True)


def passes_unchanged(workplace, mutants):
    """Returns whether the tests pass without a change, and the changes whose tests this machine can run."""
    passed, possible = True, []
    for test in sorted({mutant.test for mutant in mutants}):
        started = time.monotonic()
        built, text = workplace.builds(test)
        if not built:
            print(text)
            report("DOES NOT COMPILE", started, test)
            return False, []
        success, ran, failed, skipped = workplace.run(test)
        own = [mutant for mutant in mutants if mutant.test == test]
        if not success or ran == 0:
            report("FAILS UNCHANGED", started, test, f": {', '.join(failed) if ran else 'no test has this name'}")
            passed = False
        elif skipped and not all(mutant.is_rust() for mutant in own):
            report("skipped", started, test, f": {skipped[0]}")
        else:
            report("passes", started, test)
            possible += own
    return passed, sorted(possible, key=lambda mutant: mutant.number)


def try_mutant(workplace, mutant, switched):
    """Applies a change and runs its test. Returns whether the test failed, as it must."""
    started = time.monotonic()
    path = workplace.tree / mutant.file
    original = path.read_bytes()
    switched = switched and mutant.is_rust()
    try:
        if not switched:
            write(path, original.decode().replace(mutant.old, mutant.new).encode())
            built, text = workplace.builds(mutant.test)
            if not built:
                print("\n".join(re.findall(r"^error.*(?:\n.+)*", text, re.MULTILINE)))
                report("DOES NOT COMPILE", started, mutant.name)
                return False
        passed, _, failed, _ = workplace.run(mutant.test, mutant.number if switched else 0)
    finally:
        write(path, original)
    report("SURVIVES" if passed else "caught", started, mutant.name, "" if passed else f" (by {', '.join(failed)})")
    return not passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names of changes")
    parser.add_argument("--check", action="store_true", help="only read the list")
    parser.add_argument("--switched", action="store_true", help="one build for all changes")
    args = parser.parse_args()
    mutants = read_list()
    wrong = check(mutants)
    if wrong:
        sys.exit(f"{wrong} of {len(mutants)} changes in tests/mutants/list.txt cannot be applied")
    if args.check:
        return
    chosen = [m for m in mutants if not args.names or any(name in m.name for name in args.names)]
    if not chosen:
        sys.exit("no change has such a name")
    workplace = Workplace(args.switched)
    copy_source(workplace.tree, switched_source(mutants) if args.switched else {})
    passed, possible = passes_unchanged(workplace, chosen)
    if not passed:
        sys.exit("tests must pass without a change first")
    caught = sum(try_mutant(workplace, mutant, args.switched) for mutant in possible)
    left_out = f"; {len(chosen) - len(possible)} skipped" if len(possible) < len(chosen) else ""
    print(f"{caught} of {len(possible)} changes are caught{left_out}")
    if caught < len(possible):
        sys.exit(1)


if __name__ == "__main__":
    main()
