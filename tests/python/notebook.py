"""Executes a notebook; prints the number of its pictures."""

import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
print(sum("image/png" in output.get("data", {}) for output in outputs))
