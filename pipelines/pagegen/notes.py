"""Short letters and notes, written for this project."""

from __future__ import annotations

NOTES = (
    """Dear Maria,
Thank you for the basket of apples. We ate them all within two days, and the children asked for more.
The garden is quiet now and the first frost came on Sunday. Please bring the blue jacket when you visit us in March.
With love, Helen""",
    """To do before Friday
Call the dentist at 9:30 and move the appointment to the 14th.
Buy bread, butter, 12 eggs and a bag of flour. Ask Peter about the ladder.
Return three books to the library. Water the plants in the kitchen and leave the key with Mrs. Brown.""",
    """My dear brother,
The train left London at seven and we reached the coast before noon. The sea was grey but calm.
Our room looks over the harbour, and every morning the fishing boats come home with 40 or 50 baskets.
I have written six pages of the new story.
Yours, Edward""",
    """Field notes, 8 June 1974
Walked along the river for two hours. Water level is low, about 35 cm below the old mark.
Saw 7 herons, one otter and many swallows near the bridge. Soil samples were taken at points A, B and C.
Weather: warm, light wind from the west.""",
    """Plum cake for Sunday
Mix 250 grams of flour with sugar, salt and two eggs. Warm the milk, add the yeast and wait for 20 minutes.
Roll out the dough, cover it with plums and bake until golden. Grandmother always added a little cinnamon.
Serve with cream!""",
    """Dear Mr. Taylor,
I am sorry that I missed our meeting on Tuesday. The doctor kept my son until four, and the bus was late again.
Could we meet next week instead? Any morning after 10 would suit me. I enclose the two drawings.
Kind regards, Anna Wilson""",
    """Chapter 3, summary
Light travels in straight lines until it meets a surface. A mirror turns it back, a lens bends it.
The angle of the ray is measured from the normal, not from the glass. Remember this for the exam on Monday!
Read pages 61 to 78 again.
Colours: red is bent least and violet most. Why is the sky blue, then?""",
    """Hello Sam,
the spare key is under the third flower pot. Feed the cat twice a day, but not more, whatever she says.
The heating makes a strange noise at night; just ignore it. We will be back on the 29th.
There is soup in the freezer, and the good chocolate is behind the rice.
Many thanks for everything, Julia and Tom""",
)
