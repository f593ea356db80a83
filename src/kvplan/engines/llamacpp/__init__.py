"""llama.cpp's server, and ik_llama.cpp where it differs.

rules       what each build does                settings  flags resolved by a build's defaults
geometry    what each block keeps, in elements  caches    cells, streams, bytes, snapshots
placement   which block is on which card        buffers   bytes of blocks, embedding, output
file_types  the types of a quantised file       compute   buffers of the graph and the logits
layout      all of it on cards and host         fitting   what --fit chooses
plan, report, prints, levers, engine            what a person is told
"""
