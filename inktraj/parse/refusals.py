"""Whether a reply without points is a refusal."""

from __future__ import annotations

import re

_LOOKED_AT = 2000  # characters: a refusal says so early

_REFUSAL = re.compile(
    # One word border for all: tried once a word, where each of them by itself would be tried at every character.
    r"\b(?:I(?:'m| am)? (?:can ?not|can't|could ?n[o']t|won't|will not|unable|not able|sorry|afraid)\b"
    r"|I (?:do not|don't|must decline|have to decline|decline|apologi[sz]e)\b"
    r"|(?:unable|not able|impossible for me|not possible for me) to\b"
    r"|can(?:not|'t) (?:help|assist|comply|provide|do that)\b"
    r"|(?:as an ai\b|sorry, (?:but )?)|beyond my (?:abilities|capabilities)\b"
    r"|against (?:my|the) (?:guidelines|policy|policies)\b"
    # German, French, Spanish, Portuguese, Italian, Dutch
    r"|ich (?:kann|darf|werde)\b[^.!?\n]{0,60}?\b(?:nicht|kein)|leider (?:kann|ist|bin)\b|tut mir leid\b"
    r"|je (?:ne (?:peux|suis|puis)|suis (?:désolée?|dans l'impossibilité))|désolée?\b|je regrette\b"
    r"|no puedo\b|lo siento\b|no me es posible\b|não (?:posso|consigo)\b|desculpe\b|infelizmente\b"
    r"|non (?:posso|sono in grado)\b|mi dispiace\b|ik kan (?:dit |dat |je |u )?[^.!?\n]{0,40}?\bniet\b|helaas\b"
    # Swedish, Danish, Norwegian, Finnish, Hungarian, Romanian
    r"|tyvärr\b|desværre\b|dessverre\b|kan (?:inte|ikke)\b|valitettavasti\b|en voi\b|sajnos\b"
    r"|nem tudok\b|nu pot\b|îmi pare rău\b"
    # Polish, Czech, Russian, Ukrainian, Turkish, Greek
    r"|nie mogę\b|niestety\b|przepraszam\b|bohužel\b|nemohu\b|не могу\b|к сожалению\b|извините\b"
    r"|не можу\b|на жаль\b|üzgünüm\b|maalesef\b|δεν μπορώ\b|λυπάμαι\b"
    # Vietnamese, Indonesian
    r"|xin lỗi\b|không thể\b|maaf\b|tidak (?:dapat|bisa)\b)"
    # Chinese, Japanese, Korean, Arabic, Persian, Hebrew, Hindi, Thai
    r"|抱歉|对不起|對不起|很遗憾|无法(?:提供|完成|帮助|协助|识别|处理|生成)|無法(?:提供|完成|協助)|我不能"
    r"|申し訳|すみません|できません|いたしかねます|죄송|수 없습니다|할 수 없|مع الأسف|عذرا|لا أستطيع|لا يمكنني"
    r"|نمی‌توانم|متأسفم|לא יכול|מצטער|माफ़|क्षमा करें|असमर्थ|नहीं (?:[^\s।]{1,20} ){0,2}सकत"
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
