"""`python -m seustream`."""

import sys

from seustream.cli import main

sys.exit(main())
