"""`python -m mx_dialect.report`."""

import sys

from mx_dialect.report import main

sys.exit(main())
