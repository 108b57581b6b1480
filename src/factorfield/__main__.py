"""`python -m factorfield` is the command `factorfield`."""

from factorfield.cli.app import main

if __name__ == "__main__":
    main()
