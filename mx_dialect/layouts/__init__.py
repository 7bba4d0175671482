"""Physical layouts of block-scaled tensors: index formulas, and numpy functions that apply them."""
