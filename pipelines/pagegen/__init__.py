"""Photo-like handwritten pages with their true pen movement.

`notes` holds texts, `hand` writes words as strokes, `sheet` lays them out on paper, `photo` takes the picture.
"""
