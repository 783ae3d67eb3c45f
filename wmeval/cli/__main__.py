"""``python -m wmeval.cli``: the command by whichever interpreter."""

from wmeval.cli import main

if __name__ == "__main__":
    main()
