"""Makes the two fonts of the report tool out of Noto Sans CJK.

The PDF writer embeds only TrueType outlines, and Noto Sans CJK is published with CFF2 outlines in
one 33 MB variable file for five regions. This script takes its Simplified Chinese face, keeps the
characters a business report needs, fixes the weight, turns the curves into TrueType ones and gives
the result its own name, as the SIL Open Font License allows.

    pip install fonttools manimgx-fonts-cjk==2026.9.26.post1
    python scripts/make_fonts.py
"""

import argparse
import importlib.resources
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTCollection, TTFont

FAMILY = "Sixhop Sans"
WEIGHTS = {"Regular": 400, "Bold": 700}
SIMPLIFIED_CHINESE_FACE = 2
MAX_CURVE_ERROR_UNITS = 1.0
FONTS_DIR = Path(__file__).parents[1] / "services" / "tool" / "fonts"

# Latin with accents, Greek, Cyrillic, punctuation, currencies, arrows, mathematics, shapes,
# CJK punctuation, kana, full-width forms.
RANGES = (
    (0x20, 0x7E),
    (0xA0, 0x17F),
    (0x370, 0x3FF),
    (0x400, 0x45F),
    (0x1E00, 0x1EFF),
    (0x2010, 0x2044),
    (0x20A0, 0x20BF),
    (0x2100, 0x2199),
    (0x2200, 0x2265),
    (0x2460, 0x2473),
    (0x25A0, 0x25CF),
    (0x2605, 0x2606),
    (0x2713, 0x2717),
    (0x3000, 0x303F),
    (0x3041, 0x30FF),
    (0xFF01, 0xFF5E),
    (0xFFE0, 0xFFE6),
)


def _two_byte_characters(encoding: str, leads: range, trails: range) -> set[int]:
    found: set[int] = set()
    for lead in leads:
        for trail in trails:
            try:
                found.update(map(ord, bytes((lead, trail)).decode(encoding)))
            except UnicodeDecodeError:
                continue
    return found


def wanted_characters() -> set[int]:
    """Returns the code points to keep: the ranges, GB 2312, and the common level of Big5."""
    wanted = {point for first, last in RANGES for point in range(first, last + 1)}
    wanted |= _two_byte_characters("gb2312", range(0xA1, 0xF8), range(0xA1, 0xFF))
    wanted |= _two_byte_characters("big5", range(0xA4, 0xC7), range(0x40, 0xFF))
    return wanted


def _as_truetype(variable: TTFont, style: str) -> TTFont:
    characters = variable.getBestCmap()
    kept = {point: characters[point] for point in wanted_characters() if point in characters}
    order = [".notdef", *sorted(set(kept.values()) - {".notdef"}, key=variable.getGlyphID)]
    glyphs = variable.getGlyphSet(location={"wght": WEIGHTS[style]})
    outlines = {}
    for name in order:
        pen = TTGlyphPen(None)
        glyphs[name].draw(Cu2QuPen(pen, MAX_CURVE_ERROR_UNITS, reverse_direction=True))
        outlines[name] = pen.glyph()
    builder = FontBuilder(variable["head"].unitsPerEm, isTTF=True)
    builder.setupGlyphOrder(order)
    builder.setupCharacterMap(kept)
    builder.setupGlyf(outlines)
    sides = {name: (round(glyphs[name].width), outlines[name].xMin) for name in order}
    builder.setupHorizontalMetrics(sides)
    line, marks, names = variable["hhea"], variable["OS/2"], variable["name"]
    builder.setupHorizontalHeader(ascent=line.ascent, descent=line.descent)
    builder.setupNameTable(
        {
            "copyright": names.getDebugName(0) or "",
            "familyName": FAMILY,
            "styleName": style,
            "uniqueFontIdentifier": f"{FAMILY} {style} 1.0",
            "fullName": f"{FAMILY} {style}",
            "version": "Version 1.0; made from Noto Sans CJK SC 2.004",
            "psName": f"{FAMILY.replace(' ', '')}-{style}",
            "licenseDescription": names.getDebugName(13) or "",
            "licenseInfoURL": "https://scripts.sil.org/OFL",
        }
    )
    builder.setupOS2(
        sTypoAscender=marks.sTypoAscender,
        sTypoDescender=marks.sTypoDescender,
        usWinAscent=marks.usWinAscent,
        usWinDescent=marks.usWinDescent,
        sCapHeight=marks.sCapHeight,
        sxHeight=marks.sxHeight,
        usWeightClass=WEIGHTS[style],
        # 0: anyone may embed the font in a document and keep it there.
        fsType=0,
    )
    builder.setupPost(keepGlyphNames=False)
    # A fixed date, so that the same input gives the same bytes.
    builder.font["head"].created = builder.font["head"].modified = 3_800_000_000
    builder.font.recalcTimestamp = False
    return builder.font


def make(source: Path, target_dir: Path) -> None:
    """Writes one TrueType file per weight into `target_dir`."""
    for style in WEIGHTS:
        variable = TTCollection(str(source)).fonts[SIMPLIFIED_CHINESE_FACE]
        face = _as_truetype(variable, style)
        face.save(str(target_dir / f"SixhopSans-{style}.ttf"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, help="NotoSansCJK-VF.otf.ttc; default: the package")
    chosen = parser.parse_args().source
    packaged = importlib.resources.files("manimgx_fonts_cjk") / "NotoSansCJK-VF.otf.ttc"
    make(chosen or Path(str(packaged)), FONTS_DIR)
