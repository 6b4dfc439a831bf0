"""Generate short children's stories from a seed: text to train the example models on.

A story is planned first (hero, friend, place, weather, plot) and then written in three
paragraphs: a beginning, a problem and its solution. All names, pronouns and objects come
from the plan, so a model that learns this text must carry them from sentence to sentence.

    python3 corpus.py --seed 1 --stories 10          print ten stories
    python3 corpus.py --heldout heldout.txt          write the held-out text

Paragraphs are lines; an empty line separates stories. The text is original.
"""

import argparse
import random
import re

import story_parts as parts

HELDOUT_SEED = 20240607
HELDOUT_STORIES = 60

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SENTENCE_START = re.compile(r"((?:^|[.!?] )\"?)([a-z])")
_PRONOUNS = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}


def add_article(noun_phrase):
    """Put "a" or "an" before a noun phrase."""
    return ("an " if noun_phrase[0] in "aeiou" else "a ") + noun_phrase


def invent_name(rng):
    """Return a made-up name. With such names, a model has to copy names from the text, not remember them."""
    return rng.choice(parts.NAME_STARTS) + rng.choice(parts.NAME_MIDDLES) + rng.choice(parts.NAME_ENDS)


def pick_name(rng, gender, usual):
    """Return a name that suits "he" or "she": usual for the kind, common, accented or invented."""
    common, accented = (
        (parts.HIS_NAMES, parts.HIS_ACCENTED_NAMES) if gender == "he" else (parts.HER_NAMES, parts.HER_ACCENTED_NAMES)
    )
    dice = rng.random()
    if dice < 0.20:
        return usual
    if dice < 0.55:
        return rng.choice(common)
    if dice < 0.75:
        return rng.choice(parts.ANY_NAMES)
    if dice < 0.80:
        return rng.choice(accented)
    return invent_name(rng)


def pick_character(rng, gender):
    """Return a character: kind, name, home, way of moving, food and introduction."""
    if rng.random() < 0.2:
        kind = "boy" if gender == "he" else "girl"
        about = parts.BOY if gender == "he" else parts.GIRL
    else:
        kind = rng.choice(list(parts.ANIMALS))
        about = parts.ANIMALS[kind]
    home, moved, food, his_name, her_name = about
    words = []
    if rng.random() < 0.25:
        words.append(rng.choice(parts.TRAITS))
    if rng.random() < 0.75:
        words.append(rng.choice(parts.SIZES))
    name = pick_name(rng, gender, his_name if gender == "he" else her_name)
    return {
        "name": name,
        "kind": kind,
        "home": home,
        "go": moved,
        "food": food,
        "intro": add_article(" ".join(words + [kind])),
        "gender": gender,
    }


def pick_pair(rng):
    """Return two characters of different name, kind and pronoun, so that "she" has one meaning."""
    genders = rng.sample(["he", "she"], 2)
    hero, friend = (pick_character(rng, gender) for gender in genders)
    while friend["name"] == hero["name"] or friend["kind"] == hero["kind"]:
        friend = pick_character(rng, genders[1])
    return hero, friend


def make_character_slots(hero, friend, friend_is_known):
    """Return the slots about the two characters (see story_parts.py)."""
    slots = {"new_hero": hero["intro"], "new_friend": friend["intro"]}
    for mark, person in (("H", hero), ("F", friend)):
        slots[mark] = person["name"]
        for key in ("kind", "home", "go", "food"):
            slots[mark + key] = person[key]
    slots["he"], slots["him"], slots["his"] = _PRONOUNS[hero["gender"]]
    slots["fe"], slots["fim"], slots["fis"] = _PRONOUNS[friend["gender"]]
    for pronoun in ("he", "his", "fe"):
        slots[pronoun.capitalize()] = slots[pronoun].capitalize()
    if friend_is_known:
        slots["F_comes"] = slots["F_first"] = friend["name"]
    else:
        slots["F_comes"] = f"{friend['intro']} named {friend['name']}"
        slots["F_first"] = f"{slots['his']} friend {friend['name']}"
    return slots


def make_scene_slots(rng, plot):
    """Return the slots for place, weather, things and relatives that fit the plot."""
    weather = rng.choice(plot.get("weather", list(parts.WEATHER)))
    time = rng.choice(parts.TIMES)
    thing = rng.choice(plot.get("objects", parts.OBJECTS))
    color_object = f"{rng.choice(parts.COLORS)} {thing}"
    hobby, hobby2 = rng.sample(parts.HOBBIES, 2)
    hidden = rng.sample(parts.HIDING_PLACES, 3)
    parent, she, her = rng.choice(
        [("mother", "she", "her"), ("father", "he", "him"), ("grandmother", "she", "her"), ("grandfather", "he", "him")]
    )
    return {
        "place": rng.choice(parts.PLACES),
        "weather": weather,
        "time": time,
        "time_of_day": "morning" if time == "day" else time,
        "sky": rng.choice(parts.WEATHER[weather]) if rng.random() < 0.6 else "",
        "color_object": color_object,
        "a_object": add_article(color_object),
        "a_thing": add_article(thing),
        "hide1": hidden[0],
        "hide2": hidden[1],
        "hide3": hidden[2],
        "hobby": hobby,
        "hobby2": hobby2,
        "trait": rng.choice(parts.TRAITS),
        "gift": rng.choice(parts.GIFTS),
        "good": rng.choice(parts.GOODNESS),
        "many": rng.choice(parts.HOW_MANY),
        "parent": parent,
        "parent_she": she,
        "parent_her": her,
    }


def expand(template, slots, rng):
    """Make the choices of a template, innermost first, and fill its slots, also nested ones."""
    while "[" in template or "{" in template:
        template = _CHOICE.sub(lambda match: rng.choice(match.group(1).split("|")), template)
        template = template.format_map(slots)
    return template


def tidy(paragraph):
    """Return the text with single spaces, and a capital at the start of each sentence."""
    text = re.sub(r" +", " ", paragraph).strip()
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)


def make_story(rng):
    """Return a story: three paragraphs, each on its own line."""
    name = rng.choice(list(parts.PLOTS))
    plot = parts.PLOTS[name]
    hero, friend = pick_pair(rng)
    dice = rng.random()
    friend_is_known = name != "lonely" and dice < 0.45
    slots = {
        **make_scene_slots(rng, plot),
        **rng.choice(plot["tables"]),
        **make_character_slots(hero, friend, friend_is_known),
    }
    if friend_is_known and dice < 0.15:
        begin = [rng.choice(parts.PAIR_OPENINGS)]
    else:
        begin = [rng.choice(parts.OPENINGS)]
        if name != "lonely":
            begin.append(rng.choice(parts.HABITS))
        if friend_is_known:
            begin.append(rng.choice(parts.FRIEND_HABITS))
    end = plot["end"] + [rng.choice(plot["closings"])]
    return "\n".join(
        tidy(" ".join(expand(sentence, slots, rng) for sentence in paragraph))
        for paragraph in (begin + plot["begin"], plot["middle"], end)
    )


def make_stories(seed, count):
    """Return `count` stories; the same seed gives the same stories."""
    rng = random.Random(seed)
    return [make_story(rng) for _ in range(count)]


def read_stories(path):
    """Return the stories of a file that write_stories wrote."""
    with open(path, encoding="utf-8") as file:
        return file.read().rstrip("\n").split("\n\n")


def write_stories(path, stories):
    """Write stories with an empty line between them and one newline at the end."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n\n".join(stories) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stories", type=int, default=5)
    parser.add_argument("--heldout", metavar="FILE", help="write the held-out text and stop")
    args = parser.parse_args()
    if args.heldout:
        write_stories(args.heldout, make_stories(HELDOUT_SEED, HELDOUT_STORIES))
    else:
        print("\n\n".join(make_stories(args.seed, args.stories)))


if __name__ == "__main__":
    main()
