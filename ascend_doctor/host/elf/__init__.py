"""Shared libraries as ld.so would load them, told from their bytes: nothing of them is run, no foreign tool is asked.

reader.py reads one file, loader.py finds files as ld.so does, process.py links them, analysis.py asks for the libraries
of a deployment. Sources: ld.so(8), elf(5), the gABI, the GNU symbol versioning document and glibc's elf/dl-load.c.
"""
