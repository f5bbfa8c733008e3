"""Whether a reply without points is a refusal."""

from __future__ import annotations

import re

_LOOKED_AT = 2000  # characters: a refusal says so early

_REFUSAL = re.compile(
    r"\bI(?:'m| am)? (?:can ?not|can't|could ?n[o']t|won't|will not|unable|not able|sorry|afraid)\b"
    r"|\bI (?:do not|don't|must decline|have to decline|decline|apologi[sz]e)\b"
    r"|\b(?:unable|not able|impossible for me|not possible for me) to\b"
    r"|\bcan(?:not|'t) (?:help|assist|comply|provide|do that)\b"
    r"|\b(?:as an ai\b|sorry, (?:but )?)|\bbeyond my (?:abilities|capabilities)\b"
    r"|\bagainst (?:my|the) (?:guidelines|policy|policies)\b"
    # German, French, Spanish, Portuguese, Italian, Dutch
    r"|\bich (?:kann|darf|werde)\b[^.!?\n]{0,60}?\b(?:nicht|kein)|\bleider (?:kann|ist|bin)\b|\btut mir leid\b"
    r"|\bje (?:ne (?:peux|suis|puis)|suis (?:désolée?|dans l'impossibilité))|\bdésolée?\b|\bje regrette\b"
    r"|\bno puedo\b|\blo siento\b|\bno me es posible\b|\bnão (?:posso|consigo)\b|\bdesculpe\b|\binfelizmente\b"
    r"|\bnon (?:posso|sono in grado)\b|\bmi dispiace\b|\bik kan (?:dit |dat |je |u )?[^.!?\n]{0,40}?\bniet\b|\bhelaas\b"
    # Swedish, Danish, Norwegian, Finnish, Hungarian, Romanian
    r"|\btyvärr\b|\bdesværre\b|\bdessverre\b|\bkan (?:inte|ikke)\b|\bvalitettavasti\b|\ben voi\b|\bsajnos\b"
    r"|\bnem tudok\b|\bnu pot\b|\bîmi pare rău\b"
    # Polish, Czech, Russian, Ukrainian, Turkish, Greek
    r"|\bnie mogę\b|\bniestety\b|\bprzepraszam\b|\bbohužel\b|\bnemohu\b|\bне могу\b|\bк сожалению\b|\bизвините\b"
    r"|\bне можу\b|\bна жаль\b|\büzgünüm\b|\bmaalesef\b|\bδεν μπορώ\b|\bλυπάμαι\b"
    # Chinese, Japanese, Korean, Arabic, Persian, Hebrew, Hindi, Vietnamese, Indonesian, Thai
    r"|抱歉|对不起|對不起|很遗憾|无法(?:提供|完成|帮助|协助|识别|处理|生成)|無法(?:提供|完成|協助)|我不能"
    r"|申し訳|すみません|できません|いたしかねます|죄송|수 없습니다|할 수 없|مع الأسف|عذرا|لا أستطيع|لا يمكنني"
    r"|نمی‌توانم|متأسفم|לא יכול|מצטער|माफ़|नहीं कर सकत|\bxin lỗi\b|\bkhông thể\b|\bmaaf\b|\btidak (?:dapat|bisa)\b"
    r"|ขออภัย|ไม่สามารถ",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether a reply says that it will not or cannot answer; in the languages that are common in replies.

    Parameters
    ----------
    text
        A reply without points, as `characters.plain` returns it.
    """
    return _REFUSAL.search(text[:_LOOKED_AT]) is not None
