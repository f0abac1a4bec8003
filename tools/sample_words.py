#!/usr/bin/env python3
"""Draws random comments, docs of public items and messages of the source, for a reader who checks that they are plain.

usage: sample_words.py [--seed SEED] [--number N]

Each item must be clear at the first reading to a network engineer whose first language is not English. If one is not, repair it, and
search for the same mistake in other places. The seed is printed, so that another reader gets the same items. tests/words.rs has the
phrases that are never allowed.
"""

import argparse
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("crates", "tests", "fuzz")
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)
      | (?<![A-Za-z0-9_])r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
      | "(?P<string>(?:\\.|[^"\\])*)"
      | '(?:\\[^']*|[^'\\])'""",
    re.VERBOSE | re.DOTALL,
)
PUBLIC = re.compile(r"\s*pub (?:const |unsafe |async )*(?:fn|struct|enum|trait|type|mod|static|const|[a-z_]+:)")


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if "target" not in path.parts:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def comment_blocks(text):
    """Yields the line and the text of each block of comments, and whether it is the doc of a public item."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        begin, block = at, []
        while at < len(lines) and lines[at].strip().startswith("//"):
            block.append(lines[at].strip())
            at += 1
        if not block:
            at += 1
            continue
        item = at
        while item < len(lines) and lines[item].strip().startswith("#["):
            item += 1
        is_doc = block[0].startswith("///")
        is_public = is_doc and item < len(lines) and PUBLIC.match(lines[item]) is not None
        shown = block + ([lines[item].strip()] if is_public else [])
        yield begin + 1, "\n".join(shown), is_public


def messages(path, text):
    """Yields the line and the text of each string with a space, outside of tests."""
    if "tests" in path.parts or path.stem.endswith("tests") or path.parts[0] != "crates":
        return
    product = text.split("#[cfg(test)]\nmod ")[0]
    for token in TOKEN.finditer(product):
        string = token["string"] if token["raw"] is None else token["raw"]
        before = product[: token.start()]
        if before.endswith(("b", "reason = ")):  # bytes, and the reason of an expected lint
            continue
        if string and re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", string):
            yield product.count("\n", 0, token.start()) + 1, re.sub(r"\\\n\s*", "", string)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), help="the random seed")
    parser.add_argument("--number", type=int, default=30, help="the number of items of each kind [default: 30]")
    options = parser.parse_args()
    kinds = {"comments": [], "docs of public items": [], "messages": []}
    for path, text in sources():
        for line, block, is_public in comment_blocks(text):
            kinds["docs of public items" if is_public else "comments"].append((path, line, block))
        kinds["messages"].extend((path, line, string) for line, string in messages(path, text))
    rng = random.Random(options.seed)
    print(f"seed {options.seed}")
    for kind, items in kinds.items():
        print(f"\n=== {kind}: {min(options.number, len(items))} of {len(items)}")
        for path, line, text in rng.sample(items, min(options.number, len(items))):
            print(f"\n{path}:{line}\n    " + text.replace("\n", "\n    "))


if __name__ == "__main__":
    main()
