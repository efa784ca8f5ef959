"""Run `python -m official_bert COMMAND ...`, like `official-bert COMMAND ...`."""

from official_bert.command_line.start import main

if __name__ == "__main__":
    main()
