"""The `stuntgpu` command."""

from __future__ import annotations

import click

from stuntgpu import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """A stunt double for your GPU: run GPU programs on a machine that has none."""
