"""The conversion room: arrays and whole hierarchies from one form, format or store to another.

Everything here is made of what the face offers and stores promise; it is the face of nothing. What
is copied, what of it is done, and how it will look are values; the bodies that move data are the
array's (`_api/copy`) and the store's.
"""
