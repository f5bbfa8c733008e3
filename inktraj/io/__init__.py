"""Readers and writers: images, InkML, JSONL, Parquet, SVG. Each takes a path or a file object."""
