"""HTTP. `app` puts it together from what it is given; contracts translate names and shapes and hold no rules."""
