#!/usr/bin/env python3
"""Compares mpi.toml with the C prototypes of installed MPI headers.

    python3 check_headers.py mpi.toml HEADER...

For each function the first header that declares it is used. Compared are the number of parameters
and, for each, whether it is a pointer, its C type's width and whether MPI may write through it.
Prints each mismatch and exits with 1 if there is one.
"""

import re
import sys
import tomllib

INT = {"int", "MPI_Fint", "MPI_T_cb_safety", "MPI_T_source_order"}
TYPES = {
    "int": INT, "logical": INT, "rank": INT, "tag": INT, "int-or-undefined": INT,
    "count": {"MPI_Count"}, "aint": {"MPI_Aint"}, "offset": {"MPI_Offset"}, "double": {"double"},
    "comm": {"MPI_Comm"}, "datatype": {"MPI_Datatype"}, "op": {"MPI_Op"}, "group": {"MPI_Group"},
    "info": {"MPI_Info"}, "errhandler": {"MPI_Errhandler"}, "file": {"MPI_File"}, "win": {"MPI_Win"},
    "message": {"MPI_Message"}, "session": {"MPI_Session"}, "request": {"MPI_Request", "MPIO_Request"},
    "status": {"MPI_Status"}, "buffer": {"void"}, "string": {"char"},
}
# Pointers under another name.
POINTERS = re.compile(r"MPI_T_(enum|cvar_handle|pvar_handle|pvar_session|event_instance|event_registration)")
# Buffers and arrays that MPI only reads, or only hands on, though the C binding lacks `const`.
NOT_CONST = re.compile(
    r"MPI_((Comm_|Session_)?(Buffer_attach|attach_buffer)(_c)?|Free_mem|Win_attach|Win_create(_c)?"
    r"|Group_range_(in|ex)cl|Pready_list|Address|Type_struct|Type_hindexed)"
)


def prototypes(path):
    """{function: (return type, [parameter declarations])} of a header."""
    text = open(path).read()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.S | re.M)
    found = {}
    for match in re.finditer(r"([A-Za-z_]\w*(?:\s*\*)*)\s+(MPI_[A-Z]\w*)\s*\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        inside, params, depth, last = text[match.end():at - 1], [], 0, ""
        for char in inside:
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char == "," and not depth:
                params.append(last)
                last = ""
            else:
                last += char
        params.append(last)
        params = [" ".join(p.split()) for p in params]
        if params == ["void"] or params == [""]:
            params = []
        if not match.group(1).startswith(("define", "return", "typedef")):
            found.setdefault(match.group(2), (match.group(1), [p for p in params if p != "..."]))
    return found


def split(declaration):
    """(const, base type, pointer levels) of a parameter declaration."""
    const = bool(re.search(r"\bconst\b", declaration))
    text = re.sub(r"\b(const|struct)\b", " ", declaration)
    levels = text.count("*") + text.count("[")
    if "[][" in text.replace(" ", ""):
        levels -= 1
    words = re.findall(r"\w+", text)
    return const, words[0], levels


def mismatch(kind, direction, length, declaration):
    const, base, levels = split(declaration)
    many = length is not None
    if kind in ("address", "attribute"):
        written = direction != "in"
        pointer = levels + (1 if POINTERS.fullmatch(base) else 0)
        if pointer == 0 and not base.endswith(("_function", "_function_c", "_fn")):
            return "not an address"
        # MPI stores a pointer through `void *` too, as attribute values and base addresses.
        return "written address is not a pointer" if written and not levels else None
    if base not in TYPES[kind]:
        return f"kind {kind}, type {base}"
    expected = 1 if kind in ("buffer", "string", "status") or direction != "in" or many else 0
    if levels != expected:
        return f"{levels} pointer levels, not {expected}"
    if levels and const and direction != "in":
        return "const, yet written"
    if levels and not const and direction == "in":
        return "not const, yet only read"
    return None


def main():
    functions = tomllib.load(open(sys.argv[1], "rb"))["function"]
    headers = [prototypes(path) for path in sys.argv[2:]]
    bad = missing = 0
    used = [0] * len(headers)
    for function in functions:
        name = function["name"]
        for index, header in enumerate(headers):
            if name in header:
                break
        else:
            print(f"{name}: in no header")
            missing += 1
            continue
        used[index] += 1
        returned, declared = header[name]
        double = function.get("returns") == "double"
        if (returned == "double") != double:
            print(f"{name}: returns {returned}")
            bad += 1
        if "returns" not in function and returned != "int":
            print(f"{name}: returns {returned}, not an error code")
            bad += 1
        if function.get("returns") == "word" and returned == "int" and not name.endswith(("_toint", "_c2f")):
            print(f"{name}: returns an int, which is an error code everywhere else")
            bad += 1
        if len(declared) != len(function["params"]):
            print(f"{name}: {len(declared)} parameters in C, {len(function['params'])} in the table")
            bad += 1
            continue
        for text, declaration in zip(function["params"], declared):
            param, kind, direction, *length = text.split(":")
            problem = mismatch(kind, direction, length[0] if length and kind != "string" else None, declaration)
            if problem and not (problem.startswith("not const") and NOT_CONST.fullmatch(name)):
                print(f"{name} {param}: {problem} ({declaration})")
                bad += 1
    print(f"{len(functions)} functions, {used} by header, {missing} without a prototype, {bad} mismatches")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
