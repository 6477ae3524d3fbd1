"""`python -m bench peers`."""
