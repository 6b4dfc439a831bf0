"""The words and plots that corpus.py makes stories of.

Templates use two marks: `[one|two|three]` is a choice, and `{slot}` is filled in
from the story's plan. An empty choice, as in `[|He smiled.]`, makes a sentence
optional. Capitals at the start of a sentence are set by corpus.py.

The slots of a character are H (the hero) and F (the friend):
    {H} {F}          the name                   {Hkind} {Fkind}   fox, girl, ...
    {he} {fe}        he / she                   {him} {fim}       him / her
    {his} {fis}      his / her                  {Hhome} {Hfood}   where it lives, what it eats
    {Hgo} {Fgo}      the past tense of how the character moves: hopped, walked, ...
    {new_hero}       "a little fox"             {new_friend}      "a kind old owl"
    {F_comes}        the friend's name, or "an owl named Tess" when not yet known
    {F_first}        the friend's name, or "her friend Tess" when not yet known
He, She, His and Her at the start of a sentence are written {He}, {His}, {Fe}.
"""

# kind: (home, how it moves, what it likes to eat, a usual name for a he, and for a she)
ANIMALS = {
    "fox": ("den", "trotted", "blackberries", "Rusty", "Ruby"),
    "rabbit": ("burrow", "hopped", "carrots", "Hopper", "Clover"),
    "bear": ("cave", "walked", "honey", "Bruno", "Honey"),
    "mouse": ("nest", "scurried", "cheese", "Nibs", "Tilly"),
    "owl": ("hollow tree", "flew", "nut bread", "Oliver", "Olive"),
    "hedgehog": ("nest of leaves", "scurried", "mushrooms", "Spike", "Hazel"),
    "squirrel": ("tree house", "scurried", "acorns", "Chip", "Nutmeg"),
    "frog": ("house of reeds", "hopped", "berry soup", "Fred", "Flora"),
    "duck": ("nest", "waddled", "bread", "Donnie", "Daisy"),
    "turtle": ("cottage", "crawled", "lettuce", "Walter", "Shelly"),
    "cat": ("house", "ran", "fish", "Felix", "Cleo"),
    "kitten": ("basket", "ran", "milk", "Milo", "Mimi"),
    "dog": ("house", "ran", "biscuits", "Max", "Bella"),
    "puppy": ("basket", "ran", "biscuits", "Patch", "Penny"),
    "pig": ("barn", "trotted", "turnips", "Percy", "Polly"),
    "lamb": ("barn", "skipped", "clover", "Lenny", "Lulu"),
    "goat": ("barn", "trotted", "apples", "Gus", "Greta"),
    "pony": ("stable", "trotted", "apples", "Star", "Stella"),
    "deer": ("forest home", "ran", "sweet grass", "Dexter", "Willow"),
    "mole": ("tunnel", "crawled", "root soup", "Monty", "Molly"),
    "badger": ("den", "walked", "mushroom pie", "Barnaby", "Betty"),
    "beaver": ("lodge", "waddled", "pancakes", "Timber", "Maple"),
    "penguin": ("snow house", "waddled", "fish", "Pablo", "Pearl"),
    "elephant": ("big house", "walked", "bananas", "Eddie", "Ella"),
    "lion": ("cave", "walked", "pancakes", "Leo", "Lola"),
    "monkey": ("tree house", "skipped", "bananas", "Momo", "Kiki"),
    "panda": ("bamboo house", "walked", "bamboo", "Bo", "Mei"),
    "raccoon": ("hollow log", "ran", "pears", "Rocky", "Rosie"),
    "sparrow": ("nest", "flew", "seeds", "Jack", "Skye"),
    "bee": ("hive", "flew", "honey", "Buzz", "Bibi"),
    "dragon": ("cave", "flew", "hot soup", "Ember", "Zara"),
    "robot": ("workshop", "rolled", "lemon oil", "Zip", "Dot"),
}
BOY = ("house", "walked", "pancakes", "Tom", "")
GIRL = ("house", "walked", "apple pie", "", "Lily")

HIS_NAMES = """Tom Ben Max Sam Leo Finn Jack Oscar Henry Theo Hugo Felix Milo Otto
Toby Charlie George Arthur Barnaby Bruno Rufus Jasper Teddy Walter Nico Omar Ravi
Peter Simon Edgar Albert Hector Alfie Monty Rory Gus""".split()
HER_NAMES = """Lily Mia Anna Lucy Ella Rosie Emma Daisy Molly Poppy Clara Sophie Ruby
Nora Ivy Hazel Willow Tess Bella Greta Flora Alice Penny Maya Nina Olive Stella
Martha Dora Holly Luna Zara Amina Sara Pearl""".split()
ANY_NAMES = """Pip Dot Bibi Momo Kiki Toto Nibs Pepper Button Pickle Tansy Biscuit
Bramble Nutmeg Sunny Robin Skye Pebble Clover Fern Misty Twig Tiny Ziggy Waffles
Hopper Fluff Patch Maple Juniper""".split()
HIS_ACCENTED_NAMES = "Jos\u00e9 Andr\u00e9 No\u00ebl Ren\u00e9 Bj\u00f6rn S\u00f8ren".split()
HER_ACCENTED_NAMES = "Zo\u00e9 Chlo\u00e9 Ana\u00efs Ren\u00e9e In\u00e9s".split()
NAME_STARTS = "B D F G J K L M N P R S T V W Z Br Fl Pr Tr".split()
NAME_MIDDLES = "a e i o u ee oo ai".split()
NAME_ENDS = "bo ddy lly mmo nny ppin rlo ssa tty vin x k n mp ndle zzy".split()

SIZES = "little small young tiny".split()
TRAITS = """kind brave shy curious cheerful clever sleepy gentle hungry playful busy
friendly quiet merry""".split()

PLACES = """near a green forest|by a slow river|on top of a windy hill|in a quiet village
at the edge of a big meadow|by the sea|under an old oak tree|behind the old mill
next to a round pond|in a sunny valley|in a busy town|high up in the mountains|on a small farm
on a tiny island|in a wild garden|at the end of a long road|beside a clear blue lake
in the middle of the woods|near the old stone bridge""".replace(
    "\n", "|"
).split(
    "|"
)

COLORS = "red blue green yellow golden silver purple orange white".split()
OBJECTS = """kite scarf drum button hat umbrella ball balloon flute lantern blanket key bell
ribbon cup book coat basket wagon whistle spoon feather boat marble shell""".split()
BREAKABLE_OBJECTS = "cup flute whistle boat lantern drum umbrella wagon kite shell".split()

HOBBIES = """sing songs|paint pictures|climb trees|read books|look at the stars|listen to the rain
collect smooth stones|count the clouds|pick flowers|tell stories|splash in puddles|bake cakes
play hide and seek|watch the birds|build little boats|roll down the hill""".replace(
    "\n", "|"
).split(
    "|"
)

WEATHER = {
    "sunny": [
        "The sun was warm and bright.",
        "The sky was blue and the birds were singing.",
        "The sun shone on the grass.",
    ],
    "windy": [
        "The wind blew the leaves all around.",
        "The trees bent and swayed in the wind.",
        "The wind whistled over the hills.",
    ],
    "rainy": [
        "The rain fell softly on the leaves.",
        "There were big puddles everywhere.",
        "Gray clouds filled the sky.",
    ],
    "snowy": [
        "Soft white snow covered the ground.",
        "The snow was deep and sparkled like stars.",
        "Snowflakes danced in the air.",
    ],
    "foggy": [
        "A thick white fog lay over the land.",
        "It was hard to see the trees in the fog.",
        "Everything looked gray and soft.",
    ],
}
TIMES = "morning day afternoon".split()

HIDING_PLACES = """under the bed|behind the door|in the tall grass|behind the big rock|under a pile of leaves
in the kitchen|under the table|behind the bushes|in the old boot|under the wooden bench|beside the well
inside the hollow log|near the gate|on top of the shelf|between the roots of a tree""".replace(
    "\n", "|"
).split(
    "|"
)

OPENINGS = [
    "Once upon a time, there was {new_hero} named {H}. {He} lived {place}.",
    "Once upon a time, there was {new_hero} named {H} who lived {place}.",
    "Once upon a time, {new_hero} named {H} lived {place}.",
    "Once upon a time, {place}, there lived {new_hero} named {H}.",
    "There once was {new_hero} named {H}. {He} lived in a [cozy|small|lovely] {Hhome} {place}.",
    "There was once {new_hero} called {H}. {He} lived {place}.",
    "{H} was {new_hero}. {He} lived in a [cozy|small|lovely] {Hhome} {place}.",
    "{H} was {new_hero} who lived {place}.",
    "{H} the {Hkind} lived {place}. {He} was very {trait}.",
    "Long ago, {new_hero} named {H} lived in a [cozy|small|lovely] {Hhome} {place}.",
    "In a [cozy|small|lovely] {Hhome} {place} lived {new_hero} named {H}.",
    "This is the story of {H}, {new_hero} who lived {place}.",
    "{new_hero} named {H} lived {place}. {He} was very {trait}.",
    "The sun shone {place}, where {new_hero} named {H} lived.",
    "Do you know the story of {H}? {He} was {new_hero} who lived {place}.",
    "{place}, there was a [cozy|small|lovely] {Hhome}. {new_hero} named {H} lived there.",
    "In a faraway land, there was {new_hero} named {H}. {He} loved to {hobby}.",
    "Far, far away, there was {new_hero} whose name was {H}. {He} lived {place}.",
]
PAIR_OPENINGS = [
    "{H} and {F} were best friends. {H} was {new_hero}, and {F} was {new_friend}. They lived {place}.",
    "Once upon a time, there were two friends named {H} and {F}. {H} was {new_hero} and {F} was {new_friend}.",
    "Once upon a time, {new_hero} named {H} and {new_friend} named {F} lived {place}.",
]
HABITS = [
    "{He} loved to {hobby}.",
    "Every day, {he} liked to {hobby}.",
    "{He} was very {trait} and loved to {hobby}.",
    "{He} ate {Hfood} for breakfast every day.",
    "[All the neighbors knew {him}, for {he} was so {trait}.|Everyone said that {H} was very {trait}.]",
    "",
]
FRIEND_HABITS = [
    "{His} best friend was {new_friend} named {F}.",
    "{He} had a good friend, {new_friend} named {F}.",
    "{H} and {his} friend {F}, {new_friend}, liked to {hobby2} together.",
]
CLOSINGS = [
    "From that day on, {H} and {F} were the best of friends.",
    "That night, {H} fell asleep with a smile.",
    "{H} had never been so happy.",
    '"This was the best day ever," said {H}.',
    "And from that day on, {H} always remembered what {F} had done.",
    "The two friends smiled at each other. It had been a very good day.",
    '"You are a true friend," said {H}. {F} smiled and hugged {him}.',
    "And they lived happily ever after.",
]
OUTDOOR_CLOSINGS = CLOSINGS + [
    "And they laughed all the way home.",
    "After that, they sat down together and ate {Hfood}.",
    "Then they went home, tired and happy.",
    "When the stars came out, {H} was still smiling.",
]
BEDTIME_CLOSINGS = [
    "And they slept until the sun came up.",
    "After that, {H} was never afraid of a noise again.",
    "{H} fell asleep with a smile.",
    '"Good night, {F}," said {H}. "Good night, {H}," said {F}.',
]

WHEN = "[One {weather} {time},|One {weather} {time},|On a {weather} {time},|One {time},]"
COMFORT = '"[Do not worry|Don\'t be sad|Do not cry], {H}," said {F}.'
GREET = '"[Hello, {H}|Good {time_of_day}, {H}]! [What is wrong|Why are you sad|What is the matter]?" asked {F}.'

# A plot is what happens after the opening: three paragraphs of sentences, the first of
# which continues the opening. `closings` are the last sentences that fit, `weather`
# and `objects` narrow the choice, `tables` gives extra slots: a story takes one row.
PLOTS = {
    "lost_object": {
        "begin": [
            "{His} favorite thing in the world was [{a_object}|a small {o}|a bright {o}].",
            "[It was a gift from {his} grandmother.|{He} took it everywhere.|{He} played with it every day.]",
        ],
        "middle": [
            WHEN + " {H} could not find the {o}. {sky}",
            "{He} looked {hide1}. {He} looked {hide2}. But the {o} was not there.",
            '"[Oh no|Oh dear]! Where is my {o}?" {he} [cried|asked].',
            "[Just then, {F_comes} came by.|{F_comes} heard {him} and came over.] "
            + COMFORT
            + ' "[We will look for it together|I will help you find it]."',
        ],
        "end": [
            "They looked and looked. At last, {F} looked {hide3}.",
            '[There was the {o}!|And there it was!] "[You found it|Hooray]!" shouted {H}.',
            "{He} hugged {F} and [said thank you|jumped for joy].",
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [{"o": "{color_object}"}],
    },
    "stuck": {
        "begin": ["[{He} always liked to help others.|If anyone needed help, {he} was there.]"],
        "middle": [
            WHEN + " {H} {Hgo} down the path. {sky}",
            'Suddenly, {he} heard a voice. "[Help|Help me|Please help me]!" it cried.',
            "{H} looked around. It was {F_comes}. {Fe} was stuck {trap}.",
            '"I cannot get out," said {F}. [{Fe} looked very scared.|A tear rolled down {fis} cheek.]',
        ],
        "end": [
            '"[Don\'t worry|Stay calm], I will help you," said {H}. {He} [ran and fetched|found] {tool}.',
            "{rescue}",
            '"[Thank you, {H}|Thank you so much]!" said {F}. "You are very {good}."',
            "[To say thank you, {F} gave {H} {gift}.|]",
        ],
        "closings": CLOSINGS,
        "tables": [
            {
                "trap": "in the deep mud",
                "tool": "a long branch",
                "rescue": "{F} held one end and {H} pulled the other. Pop! {F} was out of the mud.",
            },
            {
                "trap": "in a dark hole",
                "tool": "a strong rope",
                "rescue": "{H} let the rope down, and {F} climbed up, one step at a time.",
            },
            {
                "trap": "high up in a tree",
                "tool": "a tall ladder",
                "rescue": "{H} held the ladder, and {F} came down slowly until {fe} stood on the grass.",
            },
            {
                "trap": "in a thorny bush",
                "tool": "a pair of thick gloves",
                "rescue": "{H} moved the thorns away, one by one, until {F} was free.",
            },
            {
                "trap": "on a rock in the river",
                "tool": "a wide plank",
                "rescue": "{H} laid the plank over the water, and {F} walked across it.",
            },
            {
                "trap": "under a heavy log",
                "tool": "a big stick",
                "rescue": "{H} pushed the stick under the log and lifted it. {F} was free at last.",
            },
        ],
    },
    "baking": {
        "begin": ["[{He} was a very good cook.|{His} kitchen always smelled sweet.]"],
        "middle": [
            WHEN + " {H} wanted to make {dish} for {F_first}. It was {F}'s birthday.",
            "{H} took out a big bowl and a spoon. But there was no {need}!",
            '"[Oh dear|Oh no]! How can I make {dish} without {need}?" {he} said.',
            "So {H} put on {his} hat and {Hgo} to {source}. {sky}",
        ],
        "end": [
            '"May I have some {need}, please?" {H} asked. "Of course," said {giver}. "[Take as much as you need|Here you are]."',
            "{H} thanked {giver} and hurried home. [Soon the {dish_short} was ready, and it smelled wonderful.|{He} mixed and stirred, and soon the {dish_short} was ready.]",
            '"Happy birthday, {F}!" said {H}. {F} took a big bite. "[Yum|Oh my]! This is the best {dish_short} in the world," {fe} said.',
        ],
        "closings": CLOSINGS,
        "tables": [
            {
                "dish": "a honey cake",
                "dish_short": "cake",
                "need": "honey",
                "source": "the beehive",
                "giver": "the bees",
            },
            {
                "dish": "an apple pie",
                "dish_short": "pie",
                "need": "fruit",
                "source": "the orchard",
                "giver": "the farmer",
            },
            {
                "dish": "a carrot soup",
                "dish_short": "soup",
                "need": "salt",
                "source": "the shop",
                "giver": "the old shopkeeper",
            },
            {
                "dish": "a loaf of bread",
                "dish_short": "bread",
                "need": "flour",
                "source": "the mill",
                "giver": "the miller",
            },
            {
                "dish": "a berry tart",
                "dish_short": "tart",
                "need": "butter",
                "source": "the dairy",
                "giver": "the brown cow",
            },
            {
                "dish": "a stack of pancakes",
                "dish_short": "stack",
                "need": "milk",
                "source": "the farm",
                "giver": "the farmer",
            },
        ],
    },
    "fear": {
        "begin": ["But there was one thing {H} did not like. {He} was afraid of {fear}."],
        "middle": [
            "{fear_scene}",
            '{H} [hid under the blanket|shook from head to toe|closed {his} eyes]. "I am scared," {he} [whispered|said].',
            '{F_comes} [heard {him} and came in|sat down next to {him}]. "[I was afraid of {fear}, too|Everyone is afraid sometimes]," said {F}.',
            '"But {advice}"',
        ],
        "end": [
            "{H} took a deep breath and [held {F}'s hand|tried to be brave]. {discovery}",
            '"[It is not so bad|I did it]!" said {H}. "I am not afraid anymore."',
            "{F} was very proud of {him}.",
        ],
        "closings": CLOSINGS,
        "tables": [
            {
                "fear": "the dark",
                "fear_scene": "One night, the lamp went out and everything was black.",
                "advice": "when it is dark, you can see the stars.",
                "discovery": "They went outside and looked up. There were a thousand stars in the sky.",
            },
            {
                "fear": "thunder",
                "fear_scene": "One night, there was a big storm. Boom, boom, went the thunder.",
                "advice": "thunder is only the clouds playing the drums.",
                "discovery": "Boom, boom, went the thunder, and {H} clapped {his} hands and laughed.",
            },
            {
                "fear": "deep water",
                "fear_scene": "One hot day, everyone went swimming in the lake, but {H} stayed on the sand.",
                "advice": "you can start with one toe, and I will stay with you.",
                "discovery": "First {he} put in one toe. Then {he} put in two feet. The water was cool and nice.",
            },
            {
                "fear": "high places",
                "fear_scene": "One day, all the friends climbed the big hill, but {H} stopped halfway.",
                "advice": "if you look at me and not down, it is easy.",
                "discovery": "Step by step, they climbed to the top. They could see the whole valley.",
            },
            {
                "fear": "the wind",
                "fear_scene": "One night, the wind howled around the house and the windows shook.",
                "advice": "the wind is only singing a song.",
                "discovery": "They listened and sang along with the wind until it was calm.",
            },
        ],
    },
    "learn": {
        "begin": ["More than anything, {H} wanted to learn to {skill}."],
        "middle": [
            WHEN + " {he} tried to {skill} for the first time. {sky}",
            '{fail} {He} tried again, but it was no use. "I will never learn to {skill}," {he} said sadly.',
            '{F_comes} [was watching|saw it all]. "[Don\'t give up|Try again], {H}," said {F}. "I will [show you how|teach you]."',
        ],
        "end": [
            "Every day, they practiced together. {H} [got a little better each time|did not give up].",
            "Then, one {time}, it happened. {success}",
            '"[I can do it|Look at me]!" {he} [shouted|cried]. {F} clapped and cheered.',
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [
            {
                "skill": "swim",
                "fail": "Splash! {He} sank like a stone.",
                "success": "{H} swam all the way across the pond.",
            },
            {
                "skill": "ride a bicycle",
                "fail": "Crash! {He} fell into the bushes.",
                "success": "{H} rode down the road without falling.",
            },
            {
                "skill": "whistle",
                "fail": "{He} blew and blew, but there was no sound.",
                "success": "{H} whistled a happy song from start to end.",
            },
            {
                "skill": "dance",
                "fail": "Bump! {He} slipped and sat down on the floor.",
                "success": "{H} danced around the room like a leaf in the wind.",
            },
            {
                "skill": "play the violin",
                "fail": "It squeaked like a rusty door.",
                "success": "{H} played a lovely song, and everyone stopped to listen.",
            },
            {
                "skill": "fly a kite",
                "fail": "The kite fell down on {his} head.",
                "success": "The kite flew up, up, up into the sky, and {H} held the string.",
            },
            {
                "skill": "juggle",
                "fail": "All the balls fell on the floor.",
                "success": "{H} threw three balls into the air and caught them all.",
            },
        ],
    },
    "share": {
        "weather": ["sunny", "windy", "rainy"],
        "begin": [WHEN + " {H} found {many} {treat}. {sky}", '"[Yum|Oh my]! They are all mine," {he} said.'],
        "middle": [
            "{H} was just about to eat when {F_comes} came by.",
            '"I have not eaten all day," said {F}. "May I have some of your {treat}, please?"',
            '"[No|No, no], they are mine," said {H}. {F} [looked sad and went away|put {fis} head down and walked away].',
            "{H} began to eat. But the {treat} did not taste good when {he} was all alone.",
        ],
        "end": [
            '{H} [felt bad|thought about {F}]. {He} jumped up and ran after {fim}. "Wait, {F}! Please come back," {he} called.',
            '"I am sorry. Let us share the {treat}," said {H}. So they sat down [under a tree|in the grass] and ate together.',
            'Now the {treat} tasted [sweet and good|better than ever]. "Sharing is more fun," said {H}.',
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [{"treat": t} for t in "strawberries cherries nuts plums cookies pears raspberries apples".split()],
    },
    "storm": {
        "begin": ["{He} was very proud of {his} [little|pretty|cozy] {Hhome}."],
        "middle": [
            "One night, a big storm came. The wind blew [and blew|very hard], and the rain [fell and fell|came down].",
            'In the morning, {H} looked around. {damage} "[Oh no|Oh dear]! My poor home!" {he} cried.',
            '{F_comes} came [running|at once]. "[Do not be sad|Don\'t cry], {H}. We will fix it together," said {F}.',
        ],
        "end": [
            "{F} brought {tool1}, and {H} brought {tool2}. They worked all day long.",
            "[By the evening|When the sun went down], the {Hhome} was [as good as new|even better than before].",
            '"Thank you, {F}. You can stay for supper," said {H}. They ate {Hfood} and [listened to the rain|told stories until late].',
        ],
        "closings": CLOSINGS,
        "tables": [
            {"damage": "The roof was gone.", "tool1": "wood and nails", "tool2": "a big hammer"},
            {"damage": "The door was broken in two.", "tool1": "a new door", "tool2": "a pot of paint"},
            {"damage": "There was mud on everything.", "tool1": "a broom", "tool2": "a bucket of water"},
            {"damage": "A tree had fallen on it.", "tool1": "a long saw", "tool2": "a strong rope"},
        ],
    },
    "lonely": {
        "begin": ["But {H} was lonely. {He} had no one to play with."],
        "middle": [
            WHEN + " {new_friend} named {F} moved in next door. {sky}",
            "{H} wanted to say hello, but {he} was too shy. {He} watched from {his} window.",
            "Then {he} had an idea. {He} took {gift} and {Hgo} to {F}'s door. Knock, knock!",
        ],
        "end": [
            'The door opened. "[Hello|Hi], my name is {H}," {he} said in a small voice. "This is for you."',
            '{F} smiled a big smile. "Thank you! I am {F}. [I do not know anyone here|I was lonely, too]. Will you be my friend?"',
            '"Yes, please!" said {H}. They played all [day|afternoon] and learned to {hobby2} together.',
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [{}],
    },
    "lost_way": {
        "begin": [WHEN + " {he} went to look for {Hfood}. {sky}"],
        "middle": [
            "{H} went [deeper and deeper into the woods|farther and farther from home]. When {he} turned around, {he} did not know the way.",
            '"[Oh no|Oh dear]! I am lost," said {H}. It was getting dark, and {he} was [cold|hungry|scared].',
            'Then {he} saw {F_comes}. "Please, can you help me? I cannot find my way home," said {H}.',
        ],
        "end": [
            '"[Of course|Yes, I can]," said {F}. "{hint}" So they {walk} together, and {F} [told funny stories|sang a song] on the way.',
            'At last, {H} saw {his} {Hhome}. {His} {parent} was [waiting|standing] at the door. "There you are!" {parent_she} cried and hugged {him}.',
            '"Thank you, {F}," said {H}. "Come in and have some {Hfood} with us."',
        ],
        "closings": CLOSINGS,
        "tables": [
            {"hint": "We must follow the river.", "walk": "walked along the water"},
            {"hint": "We can follow the stars.", "walk": "walked under the bright stars"},
            {"hint": "I know a path behind the hill.", "walk": "walked over the hill"},
            {"hint": "I have a lantern to light the way.", "walk": "walked in the warm light"},
        ],
    },
    "quarrel": {
        "objects": BREAKABLE_OBJECTS,
        "begin": ["{He} had a new {o}, and {he} was very proud of it."],
        "middle": [
            WHEN + ' {F_comes} came to play. {sky} "May I hold your {o}?" asked {F}.',
            '"Yes, but please be careful," said {H}. But {F} [slipped|tripped over a stone], and the {o} fell down. [Crack!|Crash!] It was broken.',
            '"You broke my {o}!" shouted {H}. "Go away!" {F} [began to cry and ran home|went home with tears in {fis} eyes].',
        ],
        "end": [
            'The next day, there was a knock at the door. It was {F}. "I am sorry, {H}. I tried to fix it," {fe} said, and {fe} held out the {o}.',
            'It was not perfect, but it [was whole again|looked nice]. {H} felt [warm inside|sorry, too]. "I am sorry that I shouted," {he} said. "You are more important than {a_thing}."',
            "They hugged, and then they played together until [supper|bedtime].",
        ],
        "closings": CLOSINGS,
        "tables": [{"o": "{color_object}"}],
    },
    "garden": {
        "weather": ["sunny", "windy", "rainy"],
        "begin": [WHEN + " {H} found a [tiny|small brown|strange] seed. {sky}"],
        "middle": [
            "{He} [dug a hole|made a little hole] in the garden and planted the seed. {He} gave it water every day.",
            '{H} waited and waited, but nothing happened. "Why does it not grow?" {he} asked {F_first}.',
            '"[You must be patient|Give it time]," said {F}. "A seed needs sun, water and love."',
        ],
        "end": [
            "So {H} waited [a little longer|some more]. {He} sang to the seed and told it stories.",
            "Then, one morning, there was a small green leaf. It grew and grew until it was {plant}.",
            '"[Look, {F}|Come and see, {F}]!" cried {H}. They [danced around it|sat beside it] and were very happy.',
        ],
        "closings": CLOSINGS,
        "tables": [
            {"plant": p}
            for p in (
                "the tallest sunflower in the land",
                "a fine apple tree",
                "a big round pumpkin",
                "a bush full of red roses",
                "a bean plant as high as the roof",
            )
        ],
    },
    "race": {
        "begin": [
            "[Every year|In spring|In autumn], there was a big race, and {H} wanted to win [the golden cup|the first prize]."
        ],
        "middle": [
            WHEN + ' the race began. {sky} "Ready, steady, go!" shouted the {judge}.',
            "{H} ran as fast as {he} could. Soon {he} was in front. Only {F_comes} was close behind {him}.",
            "Then there was a cry. {F} had fallen down and hurt {fis} foot. {H} stopped. {He} could see the end of the race, but {he} could not leave {F} alone.",
        ],
        "end": [
            '{H} turned around and ran back. "[Lean on me|Take my hand], {F}," {he} said. "We will finish together."',
            "Slowly, step by step, they walked to the end. They were the last, but everyone [clapped and cheered|stood up and cheered].",
            '"You did not win the race," said the {judge}, "but you have the biggest heart." And {he3} gave them both [a medal|a big cake].',
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [
            {"judge": j, "he3": p}
            for j, p in (("old goose", "she"), ("wise stork", "he"), ("mayor", "he"), ("teacher", "she"))
        ],
    },
    "moon": {
        "begin": ['Every night, {he} looked at the moon. "How I wish I could hold the moon," {he} said.'],
        "middle": [
            "One [clear|quiet|warm] night, {H} {Hgo} to the pond. There was the moon, shining in the water!",
            '"The moon has fallen into the pond," {he} said. {He} [reached into the water|took a net and tried to catch it], but the moon broke into a hundred pieces.',
            '"[Oh no|Oh dear]! I broke the moon," cried {H}. {F_comes} heard {him}.',
        ],
        "end": [
            '"Look up, {H}," said {F}. {H} looked up. There was the moon, [round and white|big and bright], high in the sky.',
            '"The moon in the water is only a picture," said {F}. "No one can hold the moon, but everyone can look at it."',
            "So they sat down by the pond and looked at the moon together [until they fell asleep|until it was late].",
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [{}],
    },
    "baby_bird": {
        "weather": ["sunny", "windy", "rainy"],
        "begin": ["{He} was always good to those who were smaller than {he} was."],
        "middle": [
            WHEN + " {H} {Hgo} through the [garden|woods|meadow]. {sky}",
            'Peep, peep! Under a tree, {he} found a baby bird. It had fallen out of its nest. "Poor little bird," said {H}. "You must be [cold|scared]."',
            '{He} put the bird in {his} hat and ran to {F_first}. "What can we do?" {he} asked.',
        ],
        "end": [
            '"We must find its mother," said {F}. They looked up into every tree. At last, they saw a nest [in the old oak|high in a pine tree].',
            "{F} held the hat while {H} climbed up. Very gently, {he} put the baby bird back. The mother bird sang a [happy|sweet] song to thank them.",
            "Every [morning|spring] after that, the little bird came to sing at {H}'s window.",
        ],
        "closings": CLOSINGS,
        "tables": [{}],
    },
    "gift": {
        "begin": ["Soon it was {his} {parent}'s birthday, and {H} wanted to give {parent_her} a present."],
        "middle": [
            WHEN + " {he} {Hgo} to the shop. {sky} There was a lovely {o} in the window, but {H} had only one coin.",
            '"That is not enough," said the shopkeeper kindly. {H} walked home [slowly|with {his} head down].',
            "On the way, {he} met {F_comes}. " + GREET + " {H} told {fim} everything.",
        ],
        "end": [
            '"You can make something," said {F}. "A gift from the heart is the best gift." So they [sat down and worked all day|found paper, glue and paint].',
            "{H} made {made}. It was [a little crooked|not perfect], but it was made with love.",
            '"This is the nicest present I have ever had," said {his} {parent}, and {parent_she} kissed {him}.',
        ],
        "closings": CLOSINGS,
        "tables": [
            {"made": m, "o": "{color_object}"}
            for m in (
                "a card with a big heart on it",
                "a picture of the whole family",
                "a necklace of shells",
                "a little wooden bird",
                "a crown of flowers",
            )
        ],
    },
    "noise": {
        "begin": ["One night, {H} was lying in bed when {he} heard a strange sound. {sound}"],
        "middle": [
            '"What is that?" {he} whispered. {He} looked {hide1}, but there was nothing. {sound} There it was again!',
            '{H} ran to {F_first}. "There is a monster [outside|at my window]!" {he} said. "[Let us go and see|We will look together]," said {F}.',
            "They took a lantern and {Fgo} outside. It was very dark. They looked {hide2}, and they looked {hide3}.",
        ],
        "end": [
            'Then {F} began to laugh. "Here is your monster," {fe} said. {reason}',
            '{H} laughed, too. "I was afraid of [such a little thing|nothing at all]," {he} said.',
            "They [drank warm milk|had a cup of tea] and went back to bed.",
        ],
        "closings": BEDTIME_CLOSINGS,
        "tables": [
            {"sound": "Tap, tap, tap!", "reason": "It was only a branch that tapped on the window."},
            {"sound": "Meow, meow!", "reason": "It was only a kitten that wanted to come in."},
            {"sound": "Scratch, scratch!", "reason": "It was only a mouse that was making a nest."},
            {"sound": "Whoo, whoo!", "reason": "It was only the wind in the chimney."},
            {"sound": "Drip, drip, drip!", "reason": "It was only water that dripped into a bucket."},
        ],
    },
    "boat": {
        "weather": ["sunny", "windy", "rainy"],
        "begin": [WHEN + " {he} made a little boat out of {material}. {sky}"],
        "middle": [
            "{H} put the boat on the river, and it [floated very well|danced on the waves]. But then the wind took it. The boat floated [away|farther and farther].",
            '"Stop, little boat!" cried {H}. {He} ran along the river, but the boat was too fast.',
            'On the bridge stood {F_comes}. "Please catch my boat!" called {H}.',
        ],
        "end": [
            '{F} [took a long stick|lay down on the bridge] and waited. When the boat came by, {fe} caught it. "I have it!" {fe} shouted.',
            '"Thank you, {F}," said {H}. "[Next time|Now] I will tie a string to it."',
            "They found a long string, and they played with the boat until [the sun went down|it was time for supper].",
        ],
        "closings": OUTDOOR_CLOSINGS,
        "tables": [{"material": m} for m in ("paper", "wood", "a walnut shell", "bark", "leaves")],
    },
}

GIFTS = [
    "a basket of apples",
    "a jar of honey",
    "a bunch of flowers",
    "a warm scarf",
    "a shiny shell",
    "a bag of nuts",
    "a fresh loaf of bread",
]
GOODNESS = "kind brave clever strong good".split()
HOW_MANY = ["a basket of", "a pile of", "a bag of", "a bowl of"]
