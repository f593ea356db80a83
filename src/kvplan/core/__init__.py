"""Pure arithmetic: units, formats, layers, models, curves, devices, ledgers. No I/O, no imports."""
