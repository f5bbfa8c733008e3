"""Models in a local folder, through transformers: Qwen-VL, InternVL, Molmo 2 and others of its image-text classes.

Nothing is fetched: the folder must hold weights, configuration, processor and tokenizer, and no code in it is run.
"""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Any

from inktraj.errors import DataError, MissingDependency
from inktraj.vlm.cost import Price
from inktraj.vlm.folder import check_folder, fingerprint, needs_code, own_limits
from inktraj.vlm.hosted import sdk
from inktraj.vlm.limits import ImageLimits
from inktraj.vlm.protocol import ModelClosed, ProviderError, Reply, Request, Text
from inktraj.vlm.table import UNKNOWN_FAMILY, UNKNOWN_FRAME, Table

_PROBE = "inktraj-probe"


class Transformers:
    """A model in a local folder; requests are answered one after the other.

    The answer is the most probable one, token by token, unless a temperature is asked for; a repetition penalty and
    limits of sampling that the folder's generation_config.json sets hold as they do elsewhere.

    Parameters
    ----------
    folder
        As it was saved or downloaded.
    name
        As the user called it.
    frame
        None: by the table, for the ``model_type`` in its config.json, else for the folder's name; `UNKNOWN_FRAME` where
        the table knows neither.
    limits
        None: as its own processor resizes, where that is by Qwen's or Molmo 2's rule; else by the table.
    device
        None: a GPU if there is one.
    table
        Of models.

    Raises
    ------
    DataError
        The folder is none, or not an image-text model's, lacks weights or processor, or needs code of its own.
    MissingDependency
        torch, torchvision or transformers is not installed.
    """

    def __init__(
        self,
        folder: str,
        *,
        name: str,
        frame: str | None,
        limits: ImageLimits | None,
        device: str | None,
        table: Table,
    ) -> None:
        path = Path(folder)
        kind = check_folder(path)
        family = table.family(kind)
        if family is UNKNOWN_FAMILY:
            family = table.family(path.resolve().name)
        self.name = name
        self.model_id = path.resolve().name
        self.frame = frame or (UNKNOWN_FRAME if family is UNKNOWN_FAMILY else family.frame)
        self.prices: tuple[Price, ...] = ()
        package = sdk("transformers", "transformers", f"running {folder}")
        self._torch = sdk("torch", "transformers", f"running {folder}")
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._device = device or ("cuda" if self._torch.cuda.is_available() else "cpu")
        _check_kind(package, path, kind)
        self._processor = _load_processor(package, path, kind)
        self._folds_system = _folds_system(self._processor, folder)
        self.limits = limits or own_limits(self._processor.image_processor, table.limits[family.limits])
        self._model = _load_weights(package, path, kind)
        try:
            self._model.to(self._device)
        except Exception as err:  # no such device, or too little memory on it: torch raises many kinds
            raise DataError(f"{folder} does not go onto the device {self._device!r}: {_short(err)}") from err
        self._told = {
            "transformers": str(package.__version__),
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "sha256": fingerprint(path),
        }
        self._thinks = _thinking_tokens(self._processor.tokenizer)

    def __repr__(self) -> str:
        return f"<Transformers {self.name} on {self._device}>"

    def ask(self, request: Request) -> Reply:
        """Ask and wait for the answer; see `inktraj.vlm.VLM`.

        Raises
        ------
        ProviderError
            The request does not fit the model, or the memory.
        """
        with self._lock:
            if self._closed.is_set():
                raise ModelClosed(f"{self.name} was closed")
            begun = time.monotonic()
            try:
                return self._ask(request, begun)
            except ModelClosed:
                raise
            except Exception as err:  # what a processor, a template or a model raises has no common root
                told = f"{self.name} could not answer: {_short(err)}"
                if isinstance(err, self._torch.OutOfMemoryError):
                    self._torch.cuda.empty_cache()
                    told += ". Smaller images (--input crop) or fewer tokens (--max-tokens) need less"
                raise ProviderError(told) from err

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers; see `inktraj.vlm.VLM`."""
        return {"provider": "transformers", "model": self.model_id, **self._told}

    def close(self) -> None:
        """End a request under way at its next token, and let the weights go."""
        self._closed.set()
        with self._lock:
            self._model = self._processor = None

    def _ask(self, request: Request, begun: float) -> Reply:
        torch = self._torch
        inputs = self._processor.apply_chat_template(
            _messages(request, self._folds_system),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        ).to(self._device, dtype=self._model.dtype)  # of its numbers only those that are not whole are cast
        sampling: dict[str, Any] = {"do_sample": False}
        if request.temperature:
            sampling = {"do_sample": True, "temperature": request.temperature}
        if request.seed is not None:
            torch.manual_seed(request.seed)

        def closed(tokens: Any, *_: Any, **__: Any) -> Any:
            return torch.full((len(tokens),), self._closed.is_set(), device=tokens.device)

        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, max_new_tokens=request.max_tokens, stopping_criteria=[closed], **sampling
            )
        if self._closed.is_set():
            raise ModelClosed(f"{self.name} was closed")
        asked = inputs["input_ids"][0]
        answer = tokens[0, len(asked) :]
        ends = self._model.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        ended = len(answer) > 0 and int(answer[-1]) in ends
        full = len(answer) >= request.max_tokens
        thought = _thought(asked.tolist(), answer.tolist(), *self._thinks)
        return Reply(
            self._processor.decode(answer[thought:], skip_special_tokens=True, clean_up_tokenization_spaces=False),
            "end" if ended else "length" if full else "other",
            len(asked),
            len(answer),
            self.model_id,
            time.monotonic() - begun,
            1,
            "eos" if ended else "max_new_tokens" if full else "",
            thinking_tokens=thought,
        )


def _check_kind(package: Any, path: Path, kind: str) -> None:
    try:
        config = package.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # transformers tells what is wrong with a folder by errors of many kinds
        if "trust_remote_code" in str(err):
            raise needs_code(path, kind) from err
        raise DataError(f"{path} ({kind}) cannot be loaded: {_short(err)}") from err
    if type(config) not in package.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise DataError(f"{path} holds a {kind}, which is no model of images and text that transformers knows")


def _load_processor(package: Any, path: Path, kind: str) -> Any:
    try:
        processor = package.AutoProcessor.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # as above
        if isinstance(err, ImportError) and "torchvision" in str(err).lower():
            raise MissingDependency("torchvision", "transformers", f"the processor of {path}") from err
        if "trust_remote_code" in str(err):
            raise needs_code(path, kind) from err
        raise DataError(
            f"the processor of {path} ({kind}) cannot be loaded: {_short(err)} Its preprocessor_config.json or "
            "processor_config.json and its tokenizer's files belong beside the weights"
        ) from err
    # Where the processor's files are missing, transformers gives a bare tokenizer, which would leave out the images.
    if getattr(processor, "image_processor", None) is None or getattr(processor, "tokenizer", None) is None:
        raise DataError(
            f"{path} ({kind}) has no processor of images and text, only a {type(processor).__name__}; its "
            "preprocessor_config.json or processor_config.json belongs beside the weights"
        )
    return processor


def _load_weights(package: Any, path: Path, kind: str) -> Any:
    own = {"local_files_only": True, "trust_remote_code": False}
    try:
        model, told = package.AutoModelForImageTextToText.from_pretrained(
            path, dtype="auto", output_loading_info=True, **own
        )
    except Exception as err:  # as above
        if "trust_remote_code" in str(err):
            raise needs_code(path, kind) from err
        if isinstance(err, MemoryError) or "allocate memory" in str(err):
            raise DataError(f"the weights of {path} do not fit into the memory of this machine") from err
        raise DataError(f"{path} ({kind}) cannot be loaded as an image-text model: {_short(err)}") from err
    # transformers fills such gaps with random numbers, and says so in its log only.
    if missing := sorted({*told.get("missing_keys", ()), *(key for key, *_ in told.get("mismatched_keys", ()))}):
        raise DataError(
            f"{path} lacks {len(missing)} of its model's weights, such as {missing[0]}; a file of weights may be "
            "missing, or belong to another model"
        )
    return model.eval()


def _folds_system(processor: Any, folder: str) -> bool:
    """Return whether the system prompt must stand in the user's turn, as the template has no place for it."""
    if not getattr(processor, "chat_template", None):
        raise DataError(
            f"{folder} has no chat template (chat_template.jinja or .json), so that it is not known how to ask this "
            "model; a folder of an instruct model has one"
        )
    turn = {"role": "user", "content": [{"type": "text", "text": "?"}]}
    system = {"role": "system", "content": [{"type": "text", "text": _PROBE}]}
    try:
        return _PROBE not in processor.apply_chat_template([system, turn], add_generation_prompt=True)
    except Exception:  # templates refuse a role by an error of jinja2's
        return True


def _messages(request: Request, fold: bool) -> list[dict[str, Any]]:
    from PIL import Image

    content: list[dict[str, Any]] = []
    for part in request.parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
        else:
            content.append({"type": "image", "image": Image.open(io.BytesIO(part.data)).convert("RGB")})
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if request.system and fold:
        content.insert(0, {"type": "text", "text": request.system + "\n\n"})
    elif request.system:
        messages.insert(0, {"role": "system", "content": [{"type": "text", "text": request.system}]})
    return messages


def _thinking_tokens(tokenizer: Any) -> tuple[int | None, int | None]:
    """Return the tokens that begin and end a model's thinking; None for those it does not have."""
    known = tokenizer.get_added_vocab()
    return known.get("<think>"), known.get("</think>")


def _thought(asked: list[int], answer: list[int], begin: int | None, end: int | None) -> int:
    """Return how many tokens at the start of an answer are thinking: all of them where it did not end."""
    if end is None:
        return 0
    if end in answer:
        return len(answer) - answer[::-1].index(end)
    opened = [token for token in (*asked, *answer[:1]) if token in (begin, end)]
    return len(answer) if opened and opened[-1] == begin else 0


def _short(err: BaseException) -> str:
    """Return what an error says, without the advice that transformers adds, such as to ask its server."""
    text = str(err).strip().split("\n\n")[0].split(" If you were trying")[0]
    text = " ".join(text.split()) or type(err).__name__
    return text if len(text) <= 500 else text[:500] + "…"
