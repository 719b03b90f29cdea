"""How things look to people, in text and in HTML: takes plain facts and knows no store."""
