"""MATCH_RECOGNIZE: conditions and measures in columns around the compiled search
(`kernels.native.Rows`)."""
