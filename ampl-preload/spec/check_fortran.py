#!/usr/bin/env python3
"""Compares the number of words that the Fortran wrappers forward with what Fortran callers pass.

    python3 check_fortran.py ../src/wrappers/generated.rs FILE...

A FILE is a compiled module of gfortran (`mpi.mod`, `mpi_f08.mod`), Fortran source with the bodies or
interfaces of the procedures, or Open MPI's header with the C prototypes of `mpif.h`. A caller passes
one word per argument and, behind the last, one hidden length per CHARACTER argument. Prints each
procedure whose wrapper forwards another number, or that has no wrapper; exits with 1 if one forwards
too few.
"""

import gzip
import re
import sys


def wrappers(path):
    """{exported symbol: words that it forwards} of generated.rs."""
    found = {}
    for line in open(path):
        if match := re.match(r"fortran\w*!\(\[([^]]*)\], \[[^]]*\], \d+, \(([a-z ]*)\)\)", line):
            for name in match.group(1).split():
                found[name] = len(match.group(2).split())
    return found


def expressions(text):
    """The nested lists that a module's text is made of."""
    stack = [[]]
    for token in re.findall(r"'(?:[^']|'')*'|[()]|[^\s()']+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0]


def module(path):
    """{symbol: (arguments, CHARACTER arguments)} of the external procedures in a gfortran module."""
    with gzip.open(path, "rt") as file:
        lists = expressions(file.read().split("\n", 1)[1])
    # The last but one list holds the symbols: number, name, module, binding label, namespace, facts.
    symbols = {}
    for table in lists:
        for at in range(len(table) - 5):
            number, name, _, label, _, facts = table[at:at + 6]
            if isinstance(facts, list) and facts and isinstance(facts[0], list) and number.isdigit():
                symbols[number] = (name.strip("'"), label.strip("'"), facts)
    found = {}
    for name, label, facts in symbols.values():
        attributes = facts[0]
        # Procedures of the module itself have names of their own.
        if "PROCEDURE" not in attributes or "EXTERNAL" not in attributes or "DUMMY" in attributes:
            continue
        formal = facts[5] if len(facts) > 5 and isinstance(facts[5], list) else []
        if not all(number in symbols for number in formal):
            continue
        characters = sum(symbols[number][2][2][:1] == ["CHARACTER"] for number in formal)
        if not label:
            found[name.lower() + "_"] = (len(formal), characters)
    return found


def source(path):
    """As `module`, of Fortran source in free form."""
    text = re.sub(r"&\s*(?:!.*)?\n\s*&?", " ", open(path).read())
    found, name, inner = {}, None, 0
    for line in text.split("\n"):
        line = re.sub(r"!.*", "", line).strip().lower()
        if name and re.match(r"(abstract )?interface\b", line):
            inner += 1
        elif name and re.match(r"end ?interface\b", line):
            inner -= 1
        if inner:
            continue
        if match := re.match(r"(?:[\w()= ]* )?(?:subroutine|function) (p?mpi\w+) ?\(([^)]*)\)(.*)", line):
            if line.startswith("end"):
                continue
            name, arguments = match.group(1), [word.strip() for word in match.group(2).split(",")]
            arguments = [word for word in arguments if word]
            if "bind" not in match.group(3):
                found[name + "_"] = (len(arguments), 0)
            else:
                name = None
        elif re.match(r"end (subroutine|function)", line):
            name = None
        elif name and (match := re.match(r"character\b.*::(.*)", line)):
            declared = re.findall(r"[a-z]\w*", re.sub(r"\([^)]*\)", "", match.group(1)))
            count, characters = found[name + "_"]
            found[name + "_"] = (count, characters + sum(word in arguments for word in declared))
    return found


def prototypes(path):
    """As `module`, of C prototypes `PN(type, MPI_X, mpi_x, MPI_X, (…))`, hidden lengths included."""
    text = re.sub(r"/\*.*?\*/", " ", open(path).read(), flags=re.S)
    found = {}
    prototype = re.compile(r"\bPN2?\s*\([^,]*,\s*\w+,\s*(mpi_\w+),\s*\w+,\s*\((.*?)\)\)\s*;", re.S)
    for name, inside in prototype.findall(text):
        words = [] if inside.strip() in ("", "void") else inside.split(",")
        lengths = sum(bool(re.match(r"\s*(int|size_t)\s+\w+$", word)) for word in words)
        found[name + "_"] = (len(words) - lengths, lengths)
    return found


def main():
    forwarded = wrappers(sys.argv[1])
    short = 0
    for path in sys.argv[2:]:
        read = module if path.endswith(".mod") else prototypes if path.endswith(".h") else source
        procedures = {name: words for name, words in read(path).items() if name.startswith("mpi_")}
        equal, missing = 0, []
        for name, (arguments, characters) in sorted(procedures.items()):
            words = arguments + characters
            if name not in forwarded:
                missing.append(name)
            elif forwarded[name] == words:
                equal += 1
            else:
                lengths = f", {characters} of them lengths" if characters else ""
                print(f"{name}: {words} words are passed{lengths}; {forwarded[name]} go on")
                short += forwarded[name] < words
        print(f"{path}: {equal} of {len(procedures)} forward as many words as are passed")
        if missing:
            print("  without a wrapper:", " ".join(missing))
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
