"""Client of DSec: sandboxes for training and evaluating language-model agents."""

from libdsec import models_gen as models

__all__ = ["models"]
