"""Facts of each stage, as plain records: the text and the pictures are drawn from
them, and as JSON they are handed out as they are."""
