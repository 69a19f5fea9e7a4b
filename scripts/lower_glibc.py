"""lower_glibc.py FROM TO: copies a shared library so that it asks for arc4random_buf without asking for glibc 2.36.

The copy takes the symbol from whoever has it: glibc where it is new enough, else the program itself
(cli/old_glibc.cpp). Refuses a library that needs anything else of that version.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

VERSION = "GLIBC_2.36"
SYMBOLS = {"arc4random_buf"}
ANY_VERSION = 1  # VER_NDX_GLOBAL


def lowered(path: Path) -> bytes:
    """Returns the library's bytes, changed; as they are where it does not need that version."""
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        needs = elf.get_section_by_name(".gnu.version_r")
        versions = elf.get_section_by_name(".gnu.version")
        symbols = elf.get_section_by_name(".dynsym")
        table = needs.header.sh_offset
        for need, auxiliaries in needs.iter_versions():
            entries = list(auxiliaries)
            ours = [entry for entry in entries if entry.name == VERSION]
            others = [entry for entry in entries if entry.name != VERSION]
            if not ours:
                continue
            if not others:
                raise SystemExit(f"error: {path.name} needs nothing of {need.name} but {VERSION}")
            index = ours[0].entry.vna_other
            for number in range(symbols.num_symbols()):
                at = versions.header.sh_offset + 2 * number
                if struct.unpack_from("<H", data, at)[0] != index:
                    continue
                name = symbols.get_symbol(number).name
                if name not in SYMBOLS:
                    raise SystemExit(
                        f"error: {path.name} needs {name} of {VERSION}, which nothing stands in for"
                    )
                struct.pack_into("<H", data, at, ANY_VERSION)
            # The entry stays in the list, under the name and hash of a version that is needed anyway.
            at = data.find(struct.pack("<I", ours[0].entry.vna_hash), table, table + needs.header.sh_size)
            struct.pack_into("<I", data, at, others[0].entry.vna_hash)
            struct.pack_into("<I", data, at + 8, others[0].entry.vna_name)
    return bytes(data)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lowered(source))
