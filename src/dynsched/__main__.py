"""`python -m dynsched` is the program `dynsched`."""

from dynsched.cli.main import main

if __name__ == "__main__":
    main()
