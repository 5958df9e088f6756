"""GeoParquet of which a reader takes a part: near features stand together, each with its box."""

import io
from collections.abc import Mapping
from pathlib import Path

import geopandas
import numpy as np
import pyarrow.parquet


def write_geoparquet(
    path: Path, frame: geopandas.GeoDataFrame, told: Mapping[str, str], rows: int
) -> None:
    """Write GeoParquet 1.1 with boxes, in the order of Hilbert's curve; the same frame, same bytes.

    `told` goes to the file's metadata; `rows` features are a row group, the unit that a reader
    skips by its boxes. Writes to `path` itself: give it the part of `written_beside`.
    """
    if len(frame):
        frame = frame.iloc[np.argsort(frame.geometry.hilbert_distance(), kind="stable")]
    raw = io.BytesIO()
    frame.to_parquet(
        raw, index=False, compression=None, schema_version="1.1.0", write_covering_bbox=True
    )
    table = pyarrow.parquet.read_table(raw)
    table = table.replace_schema_metadata({**table.schema.metadata, **told})
    pyarrow.parquet.write_table(table, path, compression="zstd", row_group_size=rows)
