"""Pure rendering: what a run found, as text, pages and alerts; nothing is decided or read here."""
