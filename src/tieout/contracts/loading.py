"""Loading contracts from files, with errors that say file, line, field, what was expected and found."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from tieout.contracts.chains import cycle_of
from tieout.contracts.contract import Contract
from tieout.contracts.document import read_document, shortened
from tieout.contracts.explaining import problems_of
from tieout.contracts.rules import did_you_mean
from tieout.errors import ContractError

SUFFIXES: Final = (".yml", ".yaml")
_LONGEST_PLACE: Final = 200
Loaded = TypeVar("Loaded", bound=BaseModel)


def load_contract(path: Path | str) -> Contract:
    """Return the contract in the file; its relative paths start at the file's folder.

    Raises:
        ContractError: where the file cannot be read or holds no valid contract. It names the first problem's
            line; the others follow in its reason, a line each.
    """
    file = Path(path)
    return load_model(file, Contract).located_in(file.absolute().parent)


def load_model(file: Path, model: type[Loaded]) -> Loaded:
    """Return the value of the model that the YAML file holds; other files are read as contracts are.

    Raises:
        ContractError: where the file cannot be read or holds no such value, as `load_contract` says.
    """
    document = read_document(file)
    try:
        return model.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        problems = problems_of(error, document.value, model)
        lines = [(document.line_of(problem.path), problem) for problem in problems]
        lines.sort(key=lambda item: item[0] or 0)
        first, *others = [
            f"{shortened('.'.join(map(str, path)), _LONGEST_PLACE)}: {reason}" if path else reason
            for _, (path, reason) in lines
        ]
        rest = [
            f"\n{ContractError(str(file), line, text)}"
            for (line, _), text in zip(lines[1:], others, strict=True)
        ]
        raise ContractError(str(file), lines[0][0], "".join([first, *rest])) from error


def load_contracts(*folders: Path | str) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the valid contracts of the folders' `.yml` and `.yaml` files, and one error for each other file.

    Files that name the same pipeline are all errors: nobody can say which of them is meant. So are files whose
    contracts are each after another, in a cycle. A folder that cannot be read is one error. Contracts are ordered by
    file name.
    """
    loaded, errors = _loaded(folders)
    unique, clashes = _unique(loaded)
    straight, cycles = _without_cycles(unique)
    return tuple(contract for _, contract in straight), (*errors, *clashes, *cycles)


def unknown_predecessors(paths: Iterable[Path]) -> tuple[ContractError, ...]:
    """Return an error for each contract of the files and folders that is after one which none of them holds.

    Beside a file its folder is looked at as well. A deployment may keep the other contract elsewhere, so that only who
    asks for a check is told, and nothing is refused.
    """
    given = tuple(paths)
    asked, _ = _loaded(path for path in given if path.is_dir())
    for path in given:
        if not path.is_dir():
            try:
                asked.append((path, load_contract(path)))
            except ContractError:
                continue
    beside, _ = _loaded(dict.fromkeys(path if path.is_dir() else path.absolute().parent for path in given))
    known = dict.fromkeys(contract.pipeline for _, contract in [*beside, *asked])
    return tuple(
        _unknown(file, contract.after.pipeline, known)
        for file, contract in asked
        if contract.after is not None and contract.after.pipeline not in known
    )


def _unknown(file: Path, pipeline: str, known: Iterable[str]) -> ContractError:
    line = read_document(file).line_of(("after",))
    meant = did_you_mean(pipeline, known)
    return ContractError(str(file), line, f"after: no contract here has the pipeline {pipeline}{meant}")


def _loaded(folders: Iterable[Path | str]) -> tuple[list[tuple[Path, Contract]], list[ContractError]]:
    """Return every file of the folders with the contract it holds, and an error for each other one."""
    loaded: list[tuple[Path, Contract]] = []
    errors: list[ContractError] = []
    for folder in map(Path, folders):
        try:
            files = sorted(file for file in folder.iterdir() if _is_contract(file))
        except OSError as error:
            errors.append(
                ContractError(str(folder), None, f"the contracts' folder cannot be read: {error.strerror}")
            )
            continue
        for file in files:
            try:
                loaded.append((file, load_contract(file)))
            except ContractError as error:
                errors.append(error)
            except Exception as error:
                # Whatever one file does to its readers, it does not take the other contracts away.
                reason = f"no contract can be read from it: {type(error).__name__}"
                errors.append(ContractError(str(file), None, reason))
    return loaded, errors


def _is_contract(file: Path) -> bool:
    return file.suffix in SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def _unique(
    loaded: list[tuple[Path, Contract]],
) -> tuple[list[tuple[Path, Contract]], tuple[ContractError, ...]]:
    """Return the contracts whose pipeline is theirs alone, and errors for the others."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for file, contract in loaded:
        files[contract.pipeline].append(file)
    unique = [(file, contract) for file, contract in loaded if len(files[contract.pipeline]) == 1]
    clashes = tuple(
        _clash(file, pipeline, [other for other in claimants if other != file])
        for pipeline, claimants in files.items()
        for file in claimants
        if len(claimants) > 1
    )
    return unique, clashes


def predecessor_of(contract: Contract) -> str | None:
    """Return the pipeline of the hop before a contract's, or None where it is a first hop."""
    return None if contract.after is None else contract.after.pipeline


def _without_cycles(
    loaded: list[tuple[Path, Contract]],
) -> tuple[list[tuple[Path, Contract]], tuple[ContractError, ...]]:
    """Return the contracts that do not come after themselves, and errors for the others."""
    predecessors = {one.pipeline: predecessor_of(one) for _, one in loaded}
    cycles = {name: cycle for name in predecessors if (cycle := cycle_of(name, predecessors))}
    errors = tuple(
        ContractError(
            str(file),
            read_document(file).line_of(("after",)),
            f"after: expected a chain with a first hop, found the cycle {' after '.join(cycles[one.pipeline])}",
        )
        for file, one in loaded
        if one.pipeline in cycles
    )
    return [(file, one) for file, one in loaded if one.pipeline not in cycles], errors


def _clash(file: Path, pipeline: str, others: list[Path]) -> ContractError:
    line = read_document(file).line_of(("pipeline",))
    also = ", ".join(map(str, others))
    return ContractError(
        str(file), line, f"pipeline: {pipeline} is also the name of {also}; names are unique"
    )
