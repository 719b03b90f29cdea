"""Driver `zarr`: arrays in the Zarr version 2 format."""
