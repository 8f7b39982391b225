"""Back end for the WJASIP: code generation, assembler, disassembler, image."""
