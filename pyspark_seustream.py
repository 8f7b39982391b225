"""What Spark looks for: it registers the `DefaultSource` of each module called `pyspark_*` by itself, so
that `format("seustream")` is known wherever the package is installed."""

from seustream.spark_feeder.source import Seustream as DefaultSource

__all__ = ["DefaultSource"]
