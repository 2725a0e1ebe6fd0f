"""This makes `python -m paddock` the same as the `paddock` command."""

from paddock.cli.main import main

if __name__ == "__main__":
    main()
