"""Where toolstream meets the network. Everything is bounded in time and size, and ends in a value, never in a raise."""
