"""The command line: ``demo`` infers from real data, privatized, and ``doctor`` tells what dpjax runs on."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dpjax import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by `arguments`, by default those of the process."""
    options = build_parser().parse_args(arguments)
    options.run(options)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line; each command stores the function that runs it as `run`."""
    parser = argparse.ArgumentParser(
        prog="python -m dpjax", description="Bayesian inference from differentially private releases."
    )
    parser.add_argument("--version", action="version", version=f"dpjax {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="privatize real data, infer, and compare",
        description="Privatize real data, infer from the releases, and print each posterior beside the "
        "non-private answer and the naive one that ignores the noise. A figure is saved.",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("dpjax-demo"),
        metavar="DIR",
        help="where the figure goes (default: %(default)s)",
    )
    demo.set_defaults(run=run_demo)
    about = "Print versions, devices, threads, precision and the folder for compiled programs, with advice."
    commands.add_parser("doctor", help="tell what dpjax runs on", description=about).set_defaults(run=run_doctor)
    return parser


def run_demo(options: argparse.Namespace) -> None:
    """Run the demonstration; imported here because it needs the `plots` and `data` extras."""
    from dpjax.demo import main as demo

    demo(options.output)


def run_doctor(options: argparse.Namespace) -> None:
    """Print the report; what it asks of JAX starts the devices, so it is imported here."""
    from dpjax.doctor import report

    print(report())


if __name__ == "__main__":
    main()
