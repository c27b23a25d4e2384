#!/usr/bin/env python3
"""Compares the generated wrappers with the symbols of installed MPI libraries.

    python3 check_symbols.py mpi.toml ../src/wrappers/generated.rs LIBRARY...

Every defined MPI symbol of a library that has a profiling twin must be wrapped, with that twin among
the symbols the wrapper goes on to, or be listed as skipped. Exits with 1 if one is not.
"""

import fnmatch
import re
import subprocess
import sys
import tomllib


def wrapped(path):
    """{exported symbol: set of symbols it goes on to} of generated.rs."""
    found = {}
    for line in open(path):
        if match := re.match(r"fortran\w*!\(\[([^]]*)\], \[([^]]*)\]", line):
            names, nexts = match.group(1).split(), match.group(2).split()
            for index, name in enumerate(names):
                found[name] = set(nexts) if len(names) == 1 else {nexts[index]}
        elif match := re.match(r"(?:c\w*|pcontrol)!\((\w+),", line):
            found[match.group(1)] = {"P" + match.group(1)}
    return found


def symbols(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True)
    return {line.split()[2].split("@")[0] for line in lines.stdout.splitlines() if line.split()[1] in "TWti"}


def main():
    spec, generated, *libraries = sys.argv[1:]
    skipped = [entry["name"] for entry in tomllib.load(open(spec, "rb"))["skipped"]]
    wrappers = wrapped(generated)
    bad = 0
    used = set()
    for library in libraries:
        defined = symbols(library)
        counts = {"wrapped": 0, "skipped": 0}
        for name in sorted(defined):
            if not re.match(r"mpix?_", name, re.I):
                continue
            twins = {"p" + name, "P" + name, "pmpir_" + name[4:]} & defined
            if not twins:
                continue
            # Skips are written in the mangling `mpi_x_`.
            fortran = name.lower().rstrip("_") + "_" if name in (name.lower(), name.upper()) else name
            reasons = [s for s in skipped if fnmatch.fnmatchcase(name, s) or fnmatch.fnmatchcase(fortran, s)]
            if name in wrappers:
                counts["wrapped"] += 1
                if not twins & wrappers[name]:
                    print(f"{library}: {name} goes on to {wrappers[name]}, but the twin is {twins}")
                    bad += 1
            elif reasons:
                counts["skipped"] += 1
                used.update(reasons)
            else:
                print(f"{library}: {name} is neither wrapped nor skipped")
                bad += 1
        print(library, counts)
    print("skips without a symbol here:", sorted(set(skipped) - used))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
