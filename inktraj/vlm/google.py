"""Google's Gemini interface (google-genai)."""

from __future__ import annotations

from typing import Any

from inktraj.vlm.hosted import Hosted, Malformed, count, total
from inktraj.vlm.protocol import Reply, Request, StopReason, Text

_STOPS: dict[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        [
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "ESCALATION"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR", "PUP_LIMITED_DISABLED"),
        ],
        "refusal",
    ),
}


class Google(Hosted):
    """A model behind Google's Gemini interface."""

    provider = "google"
    package = "google.genai"
    extra_name = "google"
    url_env = "GOOGLE_GEMINI_BASE_URL"

    def _connect(self, key: str) -> Any:
        types = self._sdk.types
        options = types.HttpOptions(
            base_url=self.base_url,
            timeout=round(self.settings.timeout * 1000),
            extra_body=dict(self.settings.extra) or None,
        )
        return self._sdk.Client(api_key=key, vertexai=False, http_options=options)

    def _ask(self, request: Request) -> Reply:
        types = self._sdk.types
        parts = [
            types.Part.from_text(text=part.text)
            if isinstance(part, Text)
            else types.Part.from_bytes(data=part.data, mime_type=part.media_type)
            for part in request.parts
        ]
        config: dict[str, Any] = {"max_output_tokens": request.max_tokens}
        if request.system:
            config["system_instruction"] = request.system
        if request.temperature is not None:
            config["temperature"] = request.temperature
        if request.seed is not None:
            config["seed"] = request.seed
        response = self._client.models.generate_content(
            model=self.model_id,
            contents=[types.Content(role="user", parts=parts)],
            config=types.GenerateContentConfig(**config),
        )
        return read_response(response)


def read_response(response: Any) -> Reply:
    """Read a response of the SDK's; a blocked prompt, which has no candidate, is a refusal."""
    candidate = response.candidates[0] if response.candidates else None
    blocked = getattr(response.prompt_feedback, "block_reason", None)
    if candidate is None and blocked is None:
        raise Malformed("a response with neither a candidate nor a reason for blocking the prompt")
    stop = _word(candidate.finish_reason) if candidate is not None else f"blocked: {_word(blocked)}"
    parts = (candidate.content.parts if candidate is not None and candidate.content else None) or []
    usage = response.usage_metadata
    return Reply(
        "".join(part.text for part in parts if part.text and not part.thought),
        _STOPS.get(stop, "other") if candidate is not None else "refusal",
        total(getattr(usage, "prompt_token_count", None)),
        # An answer that is all thinking, or none, comes without the count of its candidates.
        total(getattr(usage, "candidates_token_count", None) or 0, getattr(usage, "thoughts_token_count", None))
        if usage is not None
        else None,
        response.model_version or "",
        raw_stop=stop,
        cached_tokens=count(getattr(usage, "cached_content_token_count", None)),
        thinking_tokens=count(getattr(usage, "thoughts_token_count", None)),
    )


def _word(value: Any) -> str:
    """Return an enumeration's word, or the text of one that the SDK does not know yet."""
    return "" if value is None else str(getattr(value, "value", value))
