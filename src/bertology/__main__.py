"""`python -m bertology`, which torchrun needs to start several processes."""

from bertology.cli.main import main

if __name__ == "__main__":
    main()
