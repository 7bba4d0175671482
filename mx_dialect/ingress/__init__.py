"""Up to the value level: tensors as checkpoints and other programs store them, to and from `MxArray`."""
