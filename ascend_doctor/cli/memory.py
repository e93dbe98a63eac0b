"""``ascend-doctor memory``: will the model fit?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_doctor.cli.options import gate_options, host_options, report_options, rule_folder_options
from ascend_doctor.cli.session import SessionError, chosen_host, chosen_rules, requested_checks, rule_errors

if TYPE_CHECKING:
    from ascend_doctor.engine.rulebook import Rulebook

POSITIVE, RANKS = click.IntRange(1, 1 << 24), click.IntRange(1, 4096)


@click.command("memory")
@host_options
@rule_folder_options
@gate_options
@report_options
@click.option("--model", required=True, metavar="NAME|DIR", help="A model that is known by name, or its folder.")
@click.option("--tp", "--tensor-parallel-size", type=RANKS, default=1, show_default=True)
@click.option("--pp", "--pipeline-parallel-size", type=RANKS, default=1, show_default=True)
@click.option("--dp", "--data-parallel-size", type=RANKS, default=1, show_default=True)
@click.option("--ep", type=RANKS, default=1, show_default=True, help="Ranks that share the experts out.")
@click.option("--dtype", metavar="NAME", help="Numbers of the weights where they are not quantised.")
@click.option("--quantization", metavar="NAME", help="Format of the weights, such as w8a8, w4a8, fp8.")
@click.option("--kv-cache-dtype", metavar="NAME", help="Numbers of the KV cache [default: 16 bits].")
@click.option("--max-model-len", type=POSITIVE, metavar="TOKENS", help="[default: the model's context]")
@click.option("--batch", type=POSITIVE, default=1, show_default=True, help="Sequences of that length at a time.")
@click.option("--max-num-batched-tokens", "batched_tokens", type=POSITIVE, metavar="TOKENS", help="Of one step.")
@click.option("--gpu-memory-utilization", type=click.FloatRange(0.01, 1.0), default=0.9, show_default=True)
@click.option("--enforce-eager", "eager", is_flag=True, help="No captured graphs.")
@click.option(
    "--card", default="live", show_default=True, metavar="NAME|SIZE|live", help="910B3, 64GB, 64GiB, or what is here."
)
def command(
    snapshot: str | None,
    python: str | None,
    timeout: float,
    rules: Sequence[Path],
    rules_pack: Path | None,
    fail_on: str,
    strict: bool,
    outputs: Sequence[Path],
    format_: str,
    lang: str,
    quiet: bool,
    verbose: bool,
    model: str,
    tp: int,
    pp: int,
    dp: int,
    ep: int,
    dtype: str | None,
    quantization: str | None,
    kv_cache_dtype: str | None,
    max_model_len: int | None,
    batch: int,
    batched_tokens: int | None,
    gpu_memory_utilization: float,
    eager: bool,
    card: str,
) -> int:
    """Add up the memory that a model takes on each device, line by line, and say whether it fits.

    Weights and KV cache are computed from the files' headers where --model is a folder, else from the shape; what is
    an estimate says "about".
    """
    from ascend_doctor.cli.reports import tell
    from ascend_doctor.engine.gate import Gate
    from ascend_doctor.engine.run import Asked, preflight
    from ascend_doctor.facts.demand import Wishes, demand
    from ascend_doctor.report.memory import ROWS, answered

    book = chosen_rules(rules, rules_pack)
    _known_words(book, model, card, quantization)
    host = chosen_host(snapshot, python, timeout, book)
    folder = str(Path(model).resolve()) if not snapshot and Path(model).is_dir() else model
    wishes = Wishes(
        folder, tp, pp, ep, dp, quantization, dtype, kv_cache_dtype, max_model_len, batch, batched_tokens,
        gpu_memory_utilization, card, eager,
    )  # fmt: skip
    with rule_errors(book):
        run = preflight(
            host,
            Asked(
                requested_checks(book, ["budget.*"]),
                book,
                gate=Gate(fail_on, strict),
                given=(demand(host, wishes),),
                rows=(ROWS,),
            ),
        )
    run = answered(run)
    tell(run, format_, outputs, lang, quiet, verbose)
    return run.exit_code


def _known_words(book: Rulebook, model: str, card: str, quantization: str | None) -> None:
    """A name that is a slip is a bad call, not something that nobody knows. Raises SessionError."""
    from ascend_doctor.knowledge import cards, models
    from ascend_doctor.knowledge.reading import nearest

    with rule_errors(book):
        known, sizes = models.load(book.rules), cards.load(book.rules)
    if card != "live" and sizes.named(card) is None:
        raise SessionError(f"--card: {card} is no size and no card that is known{nearest(card, sizes.cards)}")
    if quantization and known.format(quantization) is None:
        names = [form.name for form in known.formats]
        raise SessionError(f"--quantization: {quantization} is not known; known: {', '.join(sorted(names))}")
    if not model.startswith("/") and not Path(model).is_dir() and known.named(model) is None:
        names = [one.id for one in known.models]
        hint = nearest(model, names) or f"; known: {', '.join(sorted(names))}, or a folder"
        raise SessionError(f"--model: {model} is no folder and no model that is known{hint}")
