"""`python -m tensorstore_py` is `tspy`.

For environments whose scripts are not on the path. Nothing else may live here.
"""

import sys

from tensorstore_py.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
