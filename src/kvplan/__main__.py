"""`python -m kvplan`: the command, where no script is on the path."""

from kvplan.cli import main

if __name__ == "__main__":
    main()
