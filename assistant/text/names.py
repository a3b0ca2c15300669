"""Capital letters for names in a lower-case transcript, so that a reply can repeat them as they are written.

There are two sources: a list of words that are only ever names, and the places where people say their name.
"""

from __future__ import annotations

import re
from typing import Final

GIVEN: Final = tuple(
    str.split("""
    Ada Adam Adrian Agnes Albert Alex Alexander Alice Alison Amanda Amelia Amy Andrea Andrew Angela Anita Ann Anna Anne
    Anthony Arthur Audrey Barbara Beatrice Ben Benjamin Bernard Bianca Boris Brenda Brian Bruce Camilla Carla Carlos
    Carmen Caroline Catherine Cecilia Charles Charlie Charlotte Chloe Chris Christine Christopher Clara Claire Clarence
    Colin Connor Craig Cynthia Daisy Daniel Danielle David Deborah Dennis Derek Diana Diego Donald Doris Dorothy
    Douglas Duncan Dylan Edith Edward Edwin Eleanor Elena Eliza Elizabeth Ella Ellen Elliot Elsa Emily Emma Eric Erica
    Ernest Ethan Eva Evelyn Felix Fiona Florence Frances Francis Fred Gabriel Gary Geoffrey George Gerald Gloria Gordon
    Greta Gregory Hannah Harold Harriet Harry Hazel Heather Hector Heidi Helen Helena Henry Herbert Howard Hugo Ian Ida
    Igor Irene Iris Isaac Isabel Ivan Jack Jacob James Jamie Jane Janet Jason Jean Jeffrey Jennifer Jeremy Jerome
    Jessica Jim Joan Joe Joel Johanna John Jonathan Joseph Joshua Joyce Juan Judith Judy Julia Julian Julie Karen Karl
    Kate Katherine Kathleen Keith Kelly Kenneth Kevin Kim Klaus Kurt Larry Laura Lauren Lawrence Leah Leo Leon Leonard
    Leslie Lewis Lily Linda Lisa Liz Louis Louise Lucas Lucia Lucy Luke Lydia Malcolm Marcel Marcus Margaret Maria Marie
    Marion Marjorie Martha Martin Marvin Mary Matilda Matthew Maurice Max Megan Melissa Michael Michelle Miguel Mike
    Miranda Miriam Molly Monica Morris Nadia Nancy Naomi Natalie Nathan Neil Nicholas Nicole Nigel Nina Noah Nora Norma
    Norman Oliver Olivia Oscar Otto Owen Pamela Patricia Patrick Paul Paula Pauline Pedro Peter Philip Phoebe Phyllis
    Priscilla Rachel Ralph Ramona Raymond Rebecca Regina Rita Robert Roberta Robin Roger Roland Ronald Rosalind
    Rosemary Rudolf Rupert Russell Ruth Ryan Sabrina Sally Sam Samantha Samuel Sandra Sarah Scott Sebastian Sharon
    Sheila Shirley Sidney Simon Sofia Sonia Sophia Sophie Stanley Stella Stephanie Stephen Steve Steven Stewart Stuart
    Susan Sylvia Tamara Teresa Terry Thelma Theo Theodore Theresa Thomas Tim Timothy Tina Tom Tony Tracy Ursula
    Valerie Vanessa Vera Veronica Victor Victoria Vincent Virginia Vivian Walter Wanda Warren Wendy Wilfred William
    Willie Winston Yvonne Zachary Zoe
    """)
)
PLACES: Final = tuple(
    str.split("""
    Africa Algeria America Amsterdam Antarctica Argentina Asia Athens Atlanta Australia Austria Baltimore Barcelona
    Beijing Belgium Berlin Bolivia Boston Brazil Britain Brussels Budapest Bulgaria Cairo California Cambodia Canada
    Chicago Colombia Colorado Copenhagen Croatia Cuba Dallas Delhi Denmark Denver Detroit Dublin Ecuador Edinburgh Egypt
    England Ethiopia Europe Finland Florida France Geneva Germany Ghana Greece Hamburg Havana Hawaii Helsinki Hollywood
    Houston Hungary Iceland India Indiana Indonesia Iowa Iran Iraq Ireland Israel Istanbul Italy Jamaica Jerusalem
    Johannesburg Kansas Kentucky Kenya Korea Lisbon London Louisiana Madrid Malaysia Manchester Manhattan Melbourne
    Mexico Miami Michigan Milan Milwaukee Minnesota Mississippi Missouri Montana Montreal Morocco Moscow Mumbai Munich
    Naples Nebraska Nepal Netherlands Nevada Nigeria Norway Ohio Oklahoma Oregon Oslo Ottawa Oxford Pakistan Panama
    Paris Pennsylvania Peru Philadelphia Philippines Phoenix Pittsburgh Poland Portugal Prague Rome Russia Scotland
    Seattle Shanghai Singapore Slovakia Spain Stockholm Sweden Switzerland Sydney Syria Taiwan Tennessee Texas Thailand
    Tokyo Toronto Tunisia Uganda Ukraine Utah Vancouver Venezuela Venice Vermont Vienna Vietnam Wales Warsaw Washington
    Wisconsin Wyoming Zurich
    """)
)
OTHERS: Final = tuple(
    str.split("""
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February April June July August September October
    November December Christmas Easter Halloween English French German Spanish Italian Russian Chinese Japanese Latin
    Jupiter Saturn Neptune Uranus
    """)
)

_KNOWN: Final = {name.lower(): name for name in GIVEN + PLACES + OTHERS}
_SAID: Final = re.compile(
    r"\b(my name is|my name's|the name is|call me|they call me|you can call me|switch to|talk to|speak to)"
    r" ([a-z]{2,})\b"
)
_NO_NAME: Final = frozenset(
    str.split("""
    a an the not my your someone somebody another other me you him her them it that this later back again tomorrow
    today tonight now please when if in at on for and or by so what who as all any whatever
    """)
)  # fmt: skip
_WORD: Final = re.compile(r"(?<![\w'])[a-z]+(?![\w])")


def capitals(text: str) -> str:
    """The text with names in capitals: `my name is grace` → `my name is Grace`, `in paris` → `in Paris`."""

    def said(match: re.Match[str]) -> str:
        name = match[2] if match[2] in _NO_NAME else match[2].capitalize()
        return f"{match[1]} {name}"

    return _WORD.sub(lambda match: _KNOWN.get(match[0], match[0]), _SAID.sub(said, text))
