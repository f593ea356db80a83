"""The page and the JSON API: thin over the package's functions, as the command is.

    verbs ─► fields ─► ask          which questions there are, their keys, the answer to one
    jobs ─► worker ─► workers       one piece of work; the process that does it; the pool of them
    warm                            compiles the simulator behind them
    first, view, forms, marked      what a template needs of an answer
    pages, api ─► app ─► serve      routes, the application with its limits, the server

Questions are answered in worker processes that open no file and no address that a question names,
and that are ended where one takes too long.
"""
