"""punce: positive-unlabelled contrastive learning.

``import punce`` is cheap: nothing here imports torch until a name that needs it is used.
"""

from __future__ import annotations

__version__ = "0.1.0"
