"""What is computed of whole arrays, block by block: plain arithmetic over the engine."""
