"""What every part needs and no field has a name for: checks of input, pytrees, compiled programs, files, threads."""
