"""The day an image was taken, from what its file says."""

import re
from collections.abc import Mapping
from datetime import date

_TAKEN = ("ACQUISITIONDATETIME", "ACQUISITION_DATETIME", "ACQUISITIONDATE", "ACQUISITION_DATE")
"""Tags that tell when the image was taken (GDAL's name in its IMAGERY domain first)."""

_MADE = ("EXIF_DateTimeOriginal", "TIFFTAG_DATETIME")
"""Tags that tell when the file was made: at times years later, so only a last resort."""

_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_:]?)(\d\d)\2(\d\d)(?!\d)")
"""A day in digits; a NAIP quad's number has seven, so it is never taken for one."""


def date_taken(stem: str, tags: Mapping[str, str]) -> str | None:
    """The ISO date of an image from its tags and the stem of its file name; None if none tells.

    What says "acquired" comes first, then the first day in the name (NAIP's second is the day of
    publication), then the tags that say when the file was made.

    >>> date_taken("m_3412039_nw_10_h_20160616_20161004", {"TIFFTAG_DATETIME": "2017:01:01"})
    '2016-06-16'
    """
    told = [tags.get(name, "") for name in _TAKEN]
    told.append(stem)
    told.extend(tags.get(name, "") for name in _MADE)
    return next((day for text in told if (day := _first_day(text)) is not None), None)


def _first_day(text: str) -> str | None:
    for year, _, month, day in _DAY.findall(text):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:  # Eight digits that are no day, as a serial number.
            continue
    return None
