#!/usr/bin/env python3
"""Prints `--test NAME` for each test program of the workspace except one, because cargo has no option to exclude a program.

usage: tests_besides.py NAME
"""
import json
import subprocess
import sys

[besides] = sys.argv[1:]
listed = subprocess.run(
    ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"], check=True, stdout=subprocess.PIPE
)
packages = json.loads(listed.stdout)["packages"]
names = {target["name"] for package in packages for target in package["targets"] if target["kind"] == ["test"]}
if besides not in names:
    sys.exit(f"no test program `{besides}`; there are: {', '.join(sorted(names))}")
print(*(f"--test {name}" for name in sorted(names - {besides})))
